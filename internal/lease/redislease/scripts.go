package redislease

import (
	_ "embed" // the scripts
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/soloist-dev/soloist/internal/lease"
)

var (
	//go:embed common.lua
	common string
	//go:embed acquire.lua
	acquireLua string
	//go:embed extend.lua
	extendLua string
	//go:embed release.lua
	releaseLua string
	//go:embed revoke.lua
	revokeLua string
	//go:embed rate.lua
	rateLua string

	acquireScript = redis.NewScript(common + acquireLua)
	extendScript  = redis.NewScript(common + extendLua)
	releaseScript = redis.NewScript(common + releaseLua)
	revokeScript  = redis.NewScript(common + revokeLua)
	rateScript    = redis.NewScript(rateLua)
)

// Kinds of lock, as stored.
const (
	plain   = "plain"
	slotted = "slots"
)

func kindName(slots int) string {
	if slots == 0 {
		return plain
	}
	return slotted
}

func (s *Store) key(lock, name string) string { return s.prefix + ":{" + lock + "}:" + name }

func (s *Store) slotKey(lock string, slots, slot int) string {
	if slots == 0 {
		return s.key(lock, "lk")
	}
	return s.key(lock, "lk:"+strconv.Itoa(slot))
}

// keys returns fn, q and the key of every slot.
func (s *Store) keys(c lease.Claim) []string {
	n := max(c.Slots, 1)
	keys := make([]string, 2, 2+n)
	keys[0], keys[1] = s.key(c.Lock, "fn"), s.key(c.Lock, "q")
	for slot := range n {
		keys = append(keys, s.slotKey(c.Lock, c.Slots, slot))
	}
	return keys
}

// errReply is a reply that no script of ours gives.
var errReply = errors.New("unexpected reply")

// A reply is an array of integers and strings.
type reply []any

// num returns element i as an integer, or an error if it is none.
func (r reply) num(i int) (int64, error) {
	if i < len(r) {
		switch v := r[i].(type) {
		case int64:
			return v, nil
		case string:
			if n, err := strconv.ParseInt(v, 10, 64); err == nil {
				return n, nil
			}
		}
	}
	return 0, fmt.Errorf("%w: element %d of %d is no integer", errReply, i, len(r))
}

// nums returns elements from..from+n-1 as integers.
func (r reply) nums(from, n int) ([]int64, error) {
	out := make([]int64, n)
	for i := range out {
		var err error
		if out[i], err = r.num(from + i); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r reply) str(i int) string {
	if i < len(r) {
		s, _ := r[i].(string)
		return s
	}
	return ""
}

// holderRecord is what a lease's value says after the token and the fence's place.
func holderRecord(id lease.Identity) string {
	return field(id.Name) + " " + field(id.PodUID) + " " + field(id.Address)
}

// field makes s fit between spaces.
func field(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, s)
}

func unfield(s string) string {
	if s == "-" {
		return ""
	}
	return s
}

// parsePublic reads "<fence> <since ms> <name> <uid> <address>". Anything else, which
// is no lease of ours, gives the zero Holder.
func parsePublic(s string) (fence uint64, h lease.Holder) {
	f := strings.Split(s, " ")
	if len(f) != 5 {
		return 0, lease.Holder{}
	}
	fence, err := strconv.ParseUint(f[0], 10, 64)
	since, err2 := strconv.ParseInt(f[1], 10, 64)
	if err != nil || err2 != nil {
		return 0, lease.Holder{}
	}
	return fence, lease.Holder{
		Identity: lease.Identity{Name: unfield(f[2]), PodUID: unfield(f[3]), Address: unfield(f[4])},
		Since:    time.UnixMilli(since),
	}
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
