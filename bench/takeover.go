package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/bench/internal/rig"
	"github.com/soloist-dev/soloist/bench/internal/systems"
)

// crashLease is short, so that a run does not take all day. What is measured begins
// where it ends.
const crashLease = 3 * time.Second

// takeover measures what comes on top of the lease when the holder's process is
// killed: from the millisecond in which the key expires to the next grant.
func (b *bench) takeover(ctx context.Context) ([]*rig.Table, error) {
	rounds := pick(b, 20, 6)
	t := &rig.Table{
		Title:   "Takeover beyond the end of the lease after kill -9",
		Budget:  "p50 ≤ 3 ms, max ≤ 15 ms; Redis itself needs 1",
		Columns: []string{"system", "p50", "max", "min", "p50 / ours"},
	}
	all := b.systems(true)
	samples := make([]rig.Samples, len(all))
	errs := make([]error, len(all))
	b.logf("  %d crashes, lease %v, the systems side by side", rounds, crashLease)
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() { samples[i], errs[i] = b.crashes(ctx, s, rounds) })
	}
	wg.Wait()
	for i, s := range all {
		if errs[i] != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, errs[i])
		}
		p50 := samples[i].Quantile(0.5)
		t.Add(s.Name, rig.Ms(p50), rig.Ms(samples[i].Max()), rig.Ms(samples[i].Quantile(0)),
			rig.Times(float64(p50), float64(samples[0].Quantile(0.5))))
	}
	t.Note("%d crashes each, %d waiters, lease %v. The holder is a process of its own; the end of the lease is the key's "+
		"PEXPIRETIME, read after the kill, on the same machine's clock. A key lives through the millisecond in which it expires.",
		rounds, handful, crashLease)
	return []*rig.Table{t}, nil
}

// crashes kills a holder so many times.
func (b *bench) crashes(ctx context.Context, s systems.System, rounds int) (rig.Samples, error) {
	server, err := rig.StartRedis(ctx, b.server)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	clients, err := dial(ctx, s, server.Addr, handful, crashLease)
	if err != nil {
		return nil, err
	}
	defer closeAll(clients)
	var samples rig.Samples
	for round := range rounds {
		took, err := crash(ctx, s, server, clients, fmt.Sprintf("crash-%d", round))
		if err != nil {
			return nil, err
		}
		samples = append(samples, took)
	}
	return samples, nil
}

// crash starts a holder, lets the clients wait, kills the holder, and returns how long
// after the end of its lease the first client had the lock.
func crash(ctx context.Context, s systems.System, server *rig.Redis, clients []systems.Client, prefix string) (time.Duration, error) {
	holder, err := rig.StartChild("_hold", s.Name, server.Addr, crashLease.String(), prefix, "1")
	if err != nil {
		return 0, err
	}
	defer holder.Kill()
	if _, err := holder.Line(); err != nil {
		return 0, err
	}
	waiting, cancel := context.WithTimeout(ctx, crashLease+grantLimit)
	defer cancel()
	type turn struct {
		at   time.Time
		held systems.Held
	}
	turns := make(chan turn, len(clients))
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			held, err := c.Hold(waiting, lockName(prefix, 0))
			if at := time.Now(); err == nil {
				turns <- turn{at, held}
			}
		})
	}
	if err := rig.Sleep(ctx, 500*time.Millisecond+rand.N(time.Second)); err != nil {
		return 0, err
	}
	holder.Kill()
	expiry, err := server.Expiry(ctx, s.Key(lockName(prefix, 0)))
	if err != nil {
		return 0, err
	}
	var first turn
	select {
	case first = <-turns:
	case <-waiting.Done():
		return 0, context.Cause(waiting)
	}
	cancel()
	_ = first.held.Release(ctx)
	wg.Wait()
	close(turns)
	for late := range turns { // granted before they were called off
		_ = late.held.Release(ctx)
	}
	return first.at.Sub(expiry), nil
}
