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
// may have forgotten leases, and is waited for; one that may evict keys is refused. How
// long a forgotten lease was is not known: at most as long as the one that is asked for, if
// all who use a lock ask for the same, or as those that this process expects.
type incarnation struct {
	delay  DelayedRestart
	strict bool          // refuse a server that may evict
	lease  time.Duration // the least that is waited for
	log    *slog.Logger
	// changed is called when connections have begun to lead elsewhere. It does not block.
	changed func()

	mu      sync.Mutex
	runID   string
	started time.Time // or a little later; zero: there is nothing to wait for
	advice  string    // what to do about the wait
	evicts  string    // how the server may evict locks; "" if it does not
	checked time.Time // when evicts was read
}

// trusted returns nil, a *lease.WaitError while the server is too young for a lease of ttl,
// or a *lease.StoreError of KindEviction.
func (in *incarnation) trusted(ttl time.Duration) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.strict && in.evicts != "" {
		return newError("check", KindEviction, errors.New(in.evicts))
	}
	if left := in.wait(ttl); left > 0 {
		return &lease.WaitError{For: left, Reason: in.why()}
	}
	return nil
}

// wait returns for how long a lease of ttl may not be granted. mu is held.
func (in *incarnation) wait(ttl time.Duration) time.Duration {
	if in.started.IsZero() {
		return 0
	}
	longest := max(ttl, in.lease)
	return time.Until(in.started.Add(longest + longest/100))
}

// why says so to people. mu is held.
func (in *incarnation) why() string {
	return fmt.Sprintf("redis started %d s ago %s", time.Since(in.started)/time.Second, in.advice)
}

// onConnect runs on every new connection before anything else is sent on it.
func (in *incarnation) onConnect(ctx context.Context, cn *redis.Conn) error {
	server, err := cn.Info(ctx, "server").Result()
	if err != nil {
		return in.tolerate(err)
	}
	if infoField(server, "redis_mode") == "sentinel" {
		return nil // asked for the way, and for nothing else
	}
	runID := infoField(server, "run_id")
	in.mu.Lock()
	known := runID == in.runID
	other := !known && in.runID != ""
	in.mu.Unlock()
	if known {
		return nil
	}
	if other && in.changed != nil {
		defer in.changed()
	}
	info, err := cn.Info(ctx).Result()
	if err != nil {
		return in.tolerate(err)
	}
	in.learn(info)
	return nil
}

// recheck reads again what made the server refused: an operator may have changed it.
func (in *incarnation) recheck(ctx context.Context, c redis.Cmdable) {
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
	in.started = time.Time{}
	seconds, err := strconv.ParseInt(infoField(info, "uptime_in_seconds"), 10, 64)
	if err != nil {
		return // a server that does not say how old it is can't be waited for
	}
	aof := infoField(info, "aof_enabled") == "1"
	if in.delay == DelayOff || (aof && in.delay != DelayOn) {
		return
	}
	// The uptime is the difference of two truncated times: a second less has surely passed.
	in.started = time.Now().Add(-max(time.Duration(seconds-1), 0) * time.Second)
	in.advice = "without an append-only file and may have forgotten leases; switch appendonly on, or set --delayed-restart=off"
	if aof {
		in.advice = "and --delayed-restart=on"
	}
	if wait := in.wait(0); wait > 0 {
		in.log.Warn("waiting for leases from before the store's restart to end",
			"wait", wait, "why", in.why(), "run_id", in.runID)
	}
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
