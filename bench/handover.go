package main

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-dev/soloist/bench/internal/rig"
	"github.com/soloist-dev/soloist/bench/internal/systems"
)

const (
	handful = 4
	hundred = 100
)

// lease is client-go's default, and ours.
const leaseDuration = 15 * time.Second

// handover measures a planned hand-over in the store: from the call that gives the
// lock back to the return of the call that gets it.
func (b *bench) handover(ctx context.Context) ([]*rig.Table, error) {
	t := &rig.Table{
		Title:   "Planned hand-over in the store, release to next grant",
		Budget:  "p50 ≤ 1 ms, p99 ≤ 8 ms",
		Columns: []string{"waiters", "system", "p50", "p99", "max", "p50 / ours"},
	}
	for _, n := range []int{handful, hundred} {
		samples := map[string][]rig.Samples{}
		failed := map[string]error{}
		for run := range b.runs {
			for _, s := range alternate(b.systems(true), run) {
				b.logf("  %d waiters, run %d, %s", n, run+1, s.Name)
				got, err := b.handoverRun(ctx, s, n)
				if ctx.Err() != nil {
					return nil, err
				}
				if err != nil {
					failed[s.Name] = err
				}
				samples[s.Name] = append(samples[s.Name], got)
			}
		}
		var ours time.Duration
		for i, s := range b.systems(true) {
			runs := samples[s.Name]
			if err := failed[s.Name]; err != nil {
				t.Add(fmt.Sprint(n), s.Name, "failed: "+err.Error(), "", "", "")
				continue
			}
			p50 := rig.MedianOf(runs, median)
			if i == 0 {
				ours = p50
			}
			t.Add(fmt.Sprint(n), s.Name, rig.Ms(p50), rig.Ms(rig.MedianOf(runs, p99)), rig.Ms(rig.Pool(runs).Max()),
				rig.Times(float64(p50), float64(ours)))
		}
	}
	trips, err := b.roundTrips(ctx)
	if err != nil {
		return nil, err
	}
	t.Add("-", "one PING", rig.Ms(median(trips)), rig.Ms(p99(trips)), rig.Ms(trips.Max()), "")
	t.Note("Median over %d runs of %d hand-overs each; max is over all runs. The holder rests 10 to 30 ms. "+
		"redislock polls each 100 ms as in its README, redsync each 50 to 250 ms, which is its default; rueidislock is told "+
		"of each release, with a limit of 1 s for one try instead of 20 ms. One PING, after the same rest, shows what this "+
		"machine needs for a round trip between processes that sleep; a hand-over is two of them and a message.",
		b.runs, b.handoverCount())
	return []*rig.Table{t}, nil
}

// roundTrips measures a request that does nothing, after as long a rest as a holder takes.
func (b *bench) roundTrips(ctx context.Context) (rig.Samples, error) {
	srv, err := rig.StartRedis(ctx, b.server)
	if err != nil {
		return nil, err
	}
	defer srv.Close()
	var samples rig.Samples
	for range b.handoverCount() {
		if err := rig.Sleep(ctx, rest()); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := srv.Admin.Ping(ctx).Err(); err != nil {
			return nil, err
		}
		samples = append(samples, time.Since(began))
	}
	return samples, nil
}

func (b *bench) handoverCount() int { return pick(b, 200, 50) }

func (b *bench) handoverRun(ctx context.Context, s systems.System, n int) (rig.Samples, error) {
	c, err := b.gather(ctx, s, n, leaseDuration)
	if err != nil {
		return nil, err
	}
	defer c.close()
	// All are in line, and past their first requests.
	if err := rig.Sleep(ctx, 500*time.Millisecond+time.Duration(n)*5*time.Millisecond); err != nil {
		return nil, err
	}
	return c.handovers(ctx, b.handoverCount())
}

func median(s rig.Samples) time.Duration { return s.Quantile(0.5) }
func p99(s rig.Samples) time.Duration    { return s.Quantile(0.99) }

// alternate begins each run with another element, so that none always comes first.
func alternate[T any](list []T, run int) []T {
	n := run % len(list)
	return append(append([]T{}, list[n:]...), list[:n]...)
}
