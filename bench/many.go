package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/bench/internal/rig"
	"github.com/soloist-dev/soloist/bench/internal/systems"
)

const (
	manyLocks = 1000
	manyLease = 15 * time.Second
)

// many measures a thousand locks with three candidates each: three processes' worth of
// connections, each with a candidate for every lock. The leaders of all live in one
// process, which is killed.
func (b *bench) many(ctx context.Context) ([]*rig.Table, error) {
	window := pick(b, 30*time.Second, 10*time.Second)
	t := &rig.Table{
		Title: fmt.Sprintf("%d locks with 3 candidates each; all leaders vanish at once", manyLocks),
		Columns: []string{"system", "commands/s", "calls by scripts/s", "taken over", "p50 after the lease's end",
			"p99", "max", "commands"},
	}
	for _, s := range b.systems(true) {
		if polls(s) {
			continue // two thousand pollers fill the machine
		}
		b.logf("  %s", s.Name)
		if err := b.manyRun(ctx, s, window, t); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			t.Add(s.Name, "failed: "+err.Error(), "", "", "", "", "", "")
		}
	}
	t.Note("Lease %v. Commands per second are those of all 3000 candidates over %v, the renewals of %d leaders among them. "+
		"The end of a lease is its key's PEXPIRETIME. All leaders are acquired within a second or so, and so they expire.",
		manyLease, window, manyLocks)
	return []*rig.Table{t}, nil
}

// taken is a lock that changed hands.
type taken struct {
	lock int
	at   time.Time
}

func (b *bench) manyRun(ctx context.Context, s systems.System, window time.Duration, t *rig.Table) error {
	server, err := rig.StartRedis(ctx, b.server)
	if err != nil {
		return err
	}
	defer server.Close()
	leaders, err := rig.StartChild("_hold", s.Name, server.Addr, manyLease.String(), "many", strconv.Itoa(manyLocks))
	if err != nil {
		return err
	}
	defer leaders.Kill()
	if _, err := leaders.Line(); err != nil {
		return err
	}
	clients, err := dial(ctx, s, server.Addr, 2, manyLease)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	grants := make(chan taken, 2*manyLocks)
	var wg sync.WaitGroup
	defer func() { // nothing is released on the way out: the server is about to go
		cancel()
		server.Close()
		closeAll(clients)
		wg.Wait()
	}()
	for _, c := range clients {
		for i := range manyLocks {
			wg.Go(func() {
				if _, err := c.Hold(ctx, lockName("many", i)); err == nil {
					grants <- taken{i, time.Now()}
				}
			})
		}
	}
	if err := rig.Sleep(ctx, standbySettle); err != nil {
		return err
	}
	m, err := rig.StartMonitor(server)
	if err != nil {
		return err
	}
	defer m.Close()
	m.Take()
	start := time.Now()
	if err := rig.Sleep(ctx, window); err != nil {
		return err
	}
	counts, took := m.Take(), time.Since(start).Seconds()
	m.Close()

	samples, missing, err := killLeaders(ctx, s, server, leaders, grants)
	if err != nil {
		return err
	}
	t.Add(s.Name, rig.Rate(float64(counts.Total())/took), rig.Rate(float64(counts.Script)/took),
		fmt.Sprintf("%d of %d", manyLocks-missing, manyLocks), rig.Ms(median(samples)), rig.Ms(p99(samples)), rig.Ms(samples.Max()),
		strings.ToLower(counts.String()))
	return nil
}

// killLeaders kills the process that holds all locks, and returns for each how long
// after the end of its lease another had it, and how many nobody took within a minute.
func killLeaders(ctx context.Context, s systems.System, server *rig.Redis, leaders *rig.Child, grants <-chan taken) (rig.Samples, int, error) {
	leaders.Kill()
	expiry := make([]time.Time, manyLocks)
	for i := range manyLocks {
		var err error
		if expiry[i], err = server.Expiry(ctx, s.Key(lockName("many", i))); err != nil {
			return nil, 0, err
		}
	}
	var samples rig.Samples
	seen := map[int]bool{}
	limit := time.NewTimer(manyLease + time.Minute)
	defer limit.Stop()
	for len(seen) < manyLocks {
		select {
		case g := <-grants:
			if !seen[g.lock] {
				seen[g.lock] = true
				samples = append(samples, g.at.Sub(expiry[g.lock]))
			}
		case <-limit.C:
			return samples, manyLocks - len(seen), nil
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		}
	}
	return samples, 0, nil
}
