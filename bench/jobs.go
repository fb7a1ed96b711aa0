package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-dev/soloist/bench/internal/rig"
	"github.com/soloist-dev/soloist/bench/internal/systems"
)

// jobs measures job locks as an app has them, over HTTP from its sidecar, beside the same in
// its own process.
func (b *bench) jobs(ctx context.Context) ([]*rig.Table, error) {
	redislock, err := systems.Named("redislock")
	if err != nil {
		return nil, err
	}
	all := []systems.System{b.overHTTP(0), systems.Soloist(), systems.SoloistStore(), redislock}
	pairs, err := b.jobPairs(ctx, all)
	if err != nil {
		return nil, err
	}
	waits, err := b.jobHandover(ctx, []systems.System{all[0], all[1], redislock})
	if err != nil {
		return []*rig.Table{pairs}, err
	}
	sales, err := b.sales(ctx, redislock)
	if err != nil {
		return []*rig.Table{pairs, waits}, err
	}
	return []*rig.Table{pairs, waits, sales}, nil
}

// jobPairs measures acquire+release pairs per second, each client on a lock of its own.
func (b *bench) jobPairs(ctx context.Context, all []systems.System) (*rig.Table, error) {
	stretch := pick(b, time.Second, 400*time.Millisecond)
	t := &rig.Table{
		Title:   "Job locks: acquire+release pairs per second, every client on a lock of its own",
		Columns: []string{"system", "1 client", "× over HTTP", "16 clients", "× over HTTP", "64 clients", "× over HTTP", "p50 with 1"},
	}
	rows := make([][]string, len(all))
	for i, s := range all {
		rows[i] = []string{s.Name}
	}
	var p50 []string
	for _, w := range []int{1, 16, 64} {
		results := make([][]pairResult, len(all))
		for run := range b.runs {
			b.logf("  %d clients, run %d of %d", w, run+1, b.runs)
			for i := range all {
				i := (i + run) % len(all)
				got, err := b.pairRun(ctx, all[i], w, stretch)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", all[i].Name, err)
				}
				results[i] = append(results[i], got)
			}
		}
		rate := func(r pairResult) float64 { return r.rate }
		for i := range all {
			mine := medianOf(results[i], rate)
			rows[i] = append(rows[i], rig.Rate(mine), rig.Times(mine, medianOf(results[0], rate)))
			if w == 1 {
				p50 = append(p50, micros(medianOf(results[i], func(r pairResult) float64 { return r.p50 })))
			}
		}
	}
	for i := range rows {
		t.Add(append(rows[i], p50[i])...)
	}
	t.Note("Medians of %d runs of %v, systems alternating. Over HTTP the client is Go's net/http with keep-alive and JSON, the "+
		"sidecar a process of its own: all of it, and Redis, on one machine's processors.", b.runs, stretch)
	return t, nil
}

// jobHandover measures from a release to the next waiter's grant.
func (b *bench) jobHandover(ctx context.Context, all []systems.System) (*rig.Table, error) {
	t := &rig.Table{
		Title:   "Job locks: from the release to the next waiter's 200",
		Columns: []string{"waiters", "system", "p50", "p99", "max", "p50 / over HTTP"},
	}
	samples := make([][]rig.Samples, len(all))
	for run := range b.runs {
		for i := range all {
			i := (i + run) % len(all)
			b.logf("  %d waiters, run %d, %s", handful, run+1, all[i].Name)
			got, err := b.handoverRun(ctx, all[i], handful)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", all[i].Name, err)
			}
			samples[i] = append(samples[i], got)
		}
	}
	first := rig.MedianOf(samples[0], median)
	for i, s := range all {
		p50 := rig.MedianOf(samples[i], median)
		t.Add(fmt.Sprint(handful), s.Name, rig.Ms(p50), rig.Ms(rig.MedianOf(samples[i], p99)), rig.Ms(rig.Pool(samples[i]).Max()),
			rig.Times(float64(p50), float64(first)))
	}
	trips, err := b.roundTrips(ctx)
	if err != nil {
		return nil, err
	}
	t.Add("-", "one PING", rig.Ms(median(trips)), rig.Ms(p99(trips)), rig.Ms(trips.Max()), "")
	t.Note("Medians over %d runs of %d hand-overs each, five clients with a sidecar each. redislock polls each 100 ms.", b.runs, b.handoverCount())
	return t, nil
}

// A sale is many buyers who want the same at once, and pay with it in hand.
const (
	buyers   = 64
	segments = 20
	paying   = 2 * time.Millisecond
)

// sales measures how many can buy in a second: one at a time, or one in each segment.
func (b *bench) sales(ctx context.Context, redislock systems.System) (*rig.Table, error) {
	stretch := pick(b, 5*time.Second, 2*time.Second)
	one, slots := b.overHTTP(0), b.overHTTP(segments)
	cases := []struct {
		system systems.System
		label  string
		locks  int
	}{
		{one, "one lock", 1},
		{slots, fmt.Sprintf("one lock with %d slots", segments), 1},
		{one, fmt.Sprintf("%d locks", segments), segments},
		{redislock, "one lock", 1},
		{redislock, fmt.Sprintf("%d locks", segments), segments},
	}
	t := &rig.Table{
		Title:   fmt.Sprintf("Flash sale: %d buyers at once, each pays for %v with the lock in hand", buyers, paying),
		Columns: []string{"system", "stock", "sales per second", "× the first", "client", "sidecar", "server"},
	}
	results := make([][]saleResult, len(cases))
	for run := range b.runs {
		for i := range cases {
			i := (i + run) % len(cases)
			b.logf("  sale, run %d, %s, %s", run+1, cases[i].system.Name, cases[i].label)
			got, err := b.sale(ctx, cases[i].system, cases[i].locks, stretch)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", cases[i].system.Name, err)
			}
			results[i] = append(results[i], got)
		}
	}
	median := func(i int, of func(saleResult) float64) float64 {
		var v []float64
		for _, r := range results[i] {
			v = append(v, of(r))
		}
		return rig.MedianFloat(v)
	}
	rate := func(r saleResult) float64 { return r.rate }
	for i, c := range cases {
		cells := []string{c.system.Name, c.label, rig.Rate(median(i, rate)), rig.Times(median(i, rate), median(0, rate))}
		for p := range processes {
			cells = append(cells, micros(median(i, func(r saleResult) float64 { return r.cpu[p] })))
		}
		t.Add(cells...)
	}
	t.Note("Medians of %d runs of %v. With one lock no more than %d per second could be sold, were hand-overs free. Over HTTP all "+
		"buyers ask one sidecar, and wait in line; those of redislock look each 100 ms, whoever was first. Client, sidecar, server: "+
		"processor time for one sale.", b.runs, stretch, time.Second/paying)
	return t, nil
}

const processes = 3 // client, sidecar, server

type saleResult struct {
	rate float64            // sales per second
	cpu  [processes]float64 // µs of processor time per sale
}

func (b *bench) sale(ctx context.Context, s systems.System, locks int, stretch time.Duration) (saleResult, error) {
	var res saleResult
	server, err := rig.StartRedis(ctx, b.server)
	if err != nil {
		return res, err
	}
	defer server.Close()
	client, err := s.Dial(ctx, server.Addr, pairLease)
	if err != nil {
		return res, err
	}
	defer client.Close()
	used := func() (times [processes]time.Duration) {
		times[0], times[2] = selfTime(), server.CPUTime()
		if c, ok := client.(*httpClient); ok {
			times[1] = rig.CPUTime(c.sidecar.pid())
		}
		return times
	}
	before := used()
	ctx, stop := context.WithTimeout(ctx, stretch)
	defer stop()
	var sold atomic.Int64
	errs := make(chan error, buyers)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range buyers {
		lock := lockName("sale", i%locks)
		wg.Go(func() {
			for ctx.Err() == nil {
				held, err := client.Hold(ctx, lock)
				if err == nil {
					_ = rig.Sleep(ctx, paying) // cut short, the sale is the last
					err = held.Release(context.WithoutCancel(ctx))
				}
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					errs <- err
					return
				}
				sold.Add(1)
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return res, err
	default:
	}
	n := max(float64(sold.Load()), 1)
	for i, after := range used() {
		res.cpu[i] = float64((after - before[i]).Microseconds()) / n
	}
	res.rate = n / time.Since(began).Seconds()
	return res, nil
}
