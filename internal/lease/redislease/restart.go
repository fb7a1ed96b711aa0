package redislease

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/soloist-dev/soloist/internal/lease"
)

// restart keeps new leases from a server that may have forgotten old ones. A
// connection lives in one incarnation of a server, so each new one asks which that is;
// a server without an append-only file that is younger than a lease is waited for.
type restart struct {
	mode  DelayedRestart
	lease time.Duration
	log   *slog.Logger

	mu    sync.Mutex
	runID string
	until time.Time // nothing is acquired before; zero: no wait
	why   string
}

// check returns a *lease.WaitError while the server is too young.
func (r *restart) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.until.IsZero() {
		return nil
	}
	left := time.Until(r.until)
	if left <= 0 {
		r.until = time.Time{}
		return nil
	}
	return &lease.WaitError{For: left, Reason: r.why}
}

// onConnect runs on every new connection before anything else is sent on it.
func (r *restart) onConnect(ctx context.Context, cn *redis.Conn) error {
	if r.mode == DelayOff {
		return nil
	}
	server, err := cn.Info(ctx, "server").Result()
	if err != nil {
		return r.tolerate(err)
	}
	runID := infoField(server, "run_id")
	r.mu.Lock()
	known := runID == r.runID
	r.mu.Unlock()
	if known || runID == "" {
		return nil
	}
	persistence, err := cn.Info(ctx, "persistence").Result()
	if err != nil {
		return r.tolerate(err)
	}
	uptime, err := strconv.ParseInt(infoField(server, "uptime_in_seconds"), 10, 64)
	if err != nil {
		return nil //nolint:nilerr // a server that does not say how old it is can't be waited for
	}
	r.learn(runID, time.Duration(uptime)*time.Second, infoField(persistence, "aof_enabled") == "1")
	return nil
}

// tolerate lets a connection live whose server does not answer INFO, if it answered.
func (r *restart) tolerate(err error) error {
	switch kindOf(err) {
	case KindNoPerm, KindOther:
		r.log.Warn("can't tell when the store started: a restart that loses data is not waited for",
			"error", err, "do", "allow INFO, or set --delayed-restart=on")
		return nil
	}
	return err
}

// learn takes in a new incarnation. The uptime counts whole seconds between two
// truncated ones, so a second less than it says has surely passed.
func (r *restart) learn(runID string, uptime time.Duration, aof bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runID = runID
	r.until = time.Time{}
	wait := r.lease + r.lease/100 - max(uptime-time.Second, 0)
	if wait <= 0 || (aof && r.mode != DelayOn) {
		return
	}
	r.until = time.Now().Add(wait)
	r.why = fmt.Sprintf("redis started %v ago without an append-only file and may have forgotten leases; "+
		"switch appendonly on, or set --delayed-restart=off", uptime)
	if aof {
		r.why = fmt.Sprintf("redis started %v ago and --delayed-restart=on", uptime)
	}
	r.log.Warn("waiting for leases from before the store's restart to end",
		"wait", wait, "uptime", uptime, "run_id", runID, "why", r.why)
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
