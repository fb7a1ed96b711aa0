package leasetest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

const (
	day    = 24 * time.Hour
	burned = 8 // how many released tokens a lock remembers
)

// record holds the keys of one lock.
type record struct {
	fn     fn
	line   line
	leases map[string]*value // by key
	runs   map[string]run    // done
}

// run is the record of a run.
type run struct {
	lease.Run
	dies int64 // ms
}

// fn is the hash of what outlives a lease.
type fn struct {
	fence   uint64
	burned  []burnt // latest first
	kind    string
	slots   int
	revoked uint64     // the highest fence revoked
	last    *lease.Run // done last
	dies    int64      // ms
}

// burnt is a token that was released.
type burnt struct {
	token lease.Token
	held  bool // a slot, then
}

// line is the sorted set of waiters.
type line struct {
	places []place
	dies   int64 // ms
}

type place struct {
	member string
	joined int64 // µs
}

// value is a lease, a slot at rest, or a reservation.
type value struct {
	kept    string // the waiter that it is reserved for; "": none
	resting bool   // released, and kept from all
	token   lease.Token
	fence   uint64
	holder  lease.Holder
	dies    int64 // ms
}

func millis(us int64) int64 { return us / 1000 }

// expired is Redis's rule: a key with p milliseconds left lives for p more, and is
// gone one later.
func expired(dies, now int64) bool { return millis(now) > dies }

// mine reports whether v is a lease of token.
func (v *value) mine(token lease.Token) bool { return v.live() && v.token == token }

// live reports whether v is a lease.
func (v *value) live() bool { return v != nil && v.kept == "" && !v.resting }

// keptFor reports whether v is a reservation for member.
func (v *value) keptFor(member string) bool { return v != nil && member != "" && v.kept == member }

func (v *value) left(now int64) time.Duration {
	return time.Duration(v.dies-millis(now)) * time.Millisecond
}

// extend makes v last for ttl, unless it lasts longer.
func (v *value) extend(ttl time.Duration, now int64) {
	v.dies = max(v.dies, millis(now)+ttl.Milliseconds())
}

// public is what others may see of v.
func (v *value) public() (uint64, lease.Holder) {
	if v == nil || v.kept != "" {
		return 0, lease.Holder{}
	}
	return v.fence, v.holder
}

// record returns what is left of a lock's keys at a time.
func (m *Memory) record(lock string, now int64) *record {
	r := m.locks[lock]
	if r == nil {
		r = &record{leases: map[string]*value{}, runs: map[string]run{}}
		m.locks[lock] = r
	}
	if expired(r.fn.dies, now) {
		r.fn = fn{}
	}
	if expired(r.line.dies, now) {
		r.line = line{}
	}
	maps.DeleteFunc(r.leases, func(_ string, v *value) bool { return expired(v.dies, now) })
	maps.DeleteFunc(r.runs, func(_ string, v run) bool { return expired(v.dies, now) })
	return r
}

func cloneAll(locks map[string]*record) map[string]*record {
	out := make(map[string]*record, len(locks))
	for name, r := range locks {
		c := &record{fn: r.fn, line: r.line, leases: make(map[string]*value, len(r.leases)), runs: maps.Clone(r.runs)}
		c.fn.burned = slices.Clone(r.fn.burned)
		c.line.places = slices.Clone(r.line.places)
		for key, v := range r.leases {
			v := *v
			c.leases[key] = &v
		}
		out[name] = c
	}
	return out
}

// keep lets the hash live for another 30 days.
func (f *fn) keep(now int64) { f.dies = millis(now) + (30 * day).Milliseconds() }

// find returns where a token is among the burned, or -1.
func (f *fn) find(token lease.Token) int {
	return slices.IndexFunc(f.burned, func(b burnt) bool { return b.token == token })
}

// remember burns a token, and returns whether it held a slot at its first release.
func (f *fn) remember(token lease.Token, held bool, now int64) bool {
	if i := f.find(token); i >= 0 {
		return f.burned[i].held
	}
	f.burned = append([]burnt{{token, held}}, f.burned...)
	f.burned = f.burned[:min(len(f.burned), burned)]
	f.keep(now)
	return held
}

// front returns the first in line, or "".
func (l *line) front() string {
	if len(l.places) == 0 {
		return ""
	}
	return l.places[0].member
}

func (l *line) rank(member string) int {
	return slices.IndexFunc(l.places, func(p place) bool { return p.member == member })
}

func (l *line) remove(member string) {
	l.places = slices.DeleteFunc(l.places, func(p place) bool { return p.member == member })
}

// join gives member a place, and reports whether it had none.
func (l *line) join(member string, now int64) bool {
	l.dies = millis(now) + day.Milliseconds()
	if l.rank(member) >= 0 {
		return false
	}
	l.places = append(l.places, place{member, now})
	slices.SortFunc(l.places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.joined, b.joined), strings.Compare(a.member, b.member))
	})
	return true
}
