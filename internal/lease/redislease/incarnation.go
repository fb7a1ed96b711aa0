package redislease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/soloist-dev/soloist/internal/lease"
)

// incarnation knows the run of the server that the connections lead to, and whether it
// can be trusted with a new lease. A connection lives in one run, so each new one asks
// which that is. A run that started less than a lease ago without an append-only file
// may have forgotten leases, and is waited for; one that may evict keys is refused.
type incarnation struct {
	delay  DelayedRestart
	strict bool // refuse a server that may evict
	lease  time.Duration
	log    *slog.Logger

	mu      sync.Mutex
	runID   string
	until   time.Time // no new lease before; zero: no wait
	why     string
	evicts  string    // how the server may evict locks; "" if it does not
	checked time.Time // when evicts was read
}

// trusted returns nil, a *lease.WaitError while the server is too young, or a *lease.StoreError of
// KindEviction.
func (in *incarnation) trusted() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.strict && in.evicts != "" {
		return newError("check", KindEviction, errors.New(in.evicts))
	}
	if left := time.Until(in.until); left > 0 {
		return &lease.WaitError{For: left, Reason: in.why}
	}
	return nil
}

// onConnect runs on every new connection before anything else is sent on it.
func (in *incarnation) onConnect(ctx context.Context, cn *redis.Conn) error {
	server, err := cn.Info(ctx, "server").Result()
	if err != nil {
		return in.tolerate(err)
	}
	runID := infoField(server, "run_id")
	in.mu.Lock()
	known := runID == in.runID
	in.mu.Unlock()
	if known {
		return nil
	}
	info, err := cn.Info(ctx).Result()
	if err != nil {
		return in.tolerate(err)
	}
	in.learn(info)
	return nil
}

// recheck reads again what made the server refused: an operator may have changed it.
func (in *incarnation) recheck(ctx context.Context, c *redis.Client) {
	in.mu.Lock()
	due := in.evicts != "" && time.Since(in.checked) > time.Second
	in.mu.Unlock()
	if !due {
		return
	}
	info, err := c.Info(ctx, "memory").Result()
	if err != nil {
		return // what was known stands
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.evicts, in.checked = eviction(info), time.Now()
	if in.evicts == "" {
		in.log.Info("the store no longer evicts keys")
	}
}

// tolerate lets a connection live whose server refuses INFO, if it gave an answer.
func (in *incarnation) tolerate(err error) error {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return err
	}
	switch kindOf(err) {
	case KindNoPerm, lease.KindOther:
		in.log.Warn("can't tell whether the store evicts locks, nor when it started: a restart that loses data is not waited for",
			"error", err, "do", "allow INFO (+info)")
		return nil
	}
	return err
}

// learn takes in a new incarnation.
func (in *incarnation) learn(info string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.runID = infoField(info, "run_id")
	in.evicts, in.checked = eviction(info), time.Now()
	if in.evicts != "" {
		in.log.Error("the store may throw locks away", "why", in.evicts, "do", advice[KindEviction], "refused", in.strict)
	}
	in.until, in.why = time.Time{}, ""
	seconds, err := strconv.ParseInt(infoField(info, "uptime_in_seconds"), 10, 64)
	if err != nil {
		return // a server that does not say how old it is can't be waited for
	}
	aof := infoField(info, "aof_enabled") == "1"
	// The uptime is the difference of two truncated times: a second less has surely passed.
	wait := in.lease + in.lease/100 - max(time.Duration(seconds-1)*time.Second, 0)
	if wait <= 0 || in.delay == DelayOff || (aof && in.delay != DelayOn) {
		return
	}
	in.until = time.Now().Add(wait)
	in.why = fmt.Sprintf("redis started %d s ago without an append-only file and may have forgotten leases; "+
		"switch appendonly on, or set --delayed-restart=off", seconds)
	if aof {
		in.why = fmt.Sprintf("redis started %d s ago, and --delayed-restart=on", seconds)
	}
	in.log.Warn("waiting for leases from before the store's restart to end",
		"wait", wait, "why", in.why, "run_id", in.runID)
}

// eviction says how the server described by info may evict locks; "" if it does not.
func eviction(info string) string {
	policy, limit := infoField(info, "maxmemory_policy"), infoField(info, "maxmemory")
	if policy == "" || policy == "noeviction" || limit == "0" || limit == "" {
		return ""
	}
	return fmt.Sprintf("maxmemory-policy is %s with maxmemory %s", policy, limit)
}

// infoField reads one line of INFO.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
