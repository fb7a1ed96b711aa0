package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/soloist-dev/soloist/bench/internal/rig"
	"github.com/soloist-dev/soloist/bench/internal/systems"
)

// pairLease is far longer than a pair takes, so that nothing is renewed or expires.
const pairLease = 30 * time.Second

// pairs measures acquire+release pairs per second, each worker on a lock of its own:
// nobody waits for anybody.
func (b *bench) pairs(ctx context.Context) ([]*rig.Table, error) {
	repeats := pick(b, 2*b.runs+1, b.runs)
	stretch := pick(b, time.Second, 400*time.Millisecond)
	workers := []int{1, 16, 48}
	all := b.systems(false)
	t := &rig.Table{
		Title:  "Acquire+release pairs per second, every worker on a lock of its own (not contended)",
		Budget: "ahead of redislock with 1 worker, level with the best with 16 and 48",
		Columns: []string{"system", "1 worker", "× ours", "16 workers", "× ours", "48 workers", "× ours",
			"p50 with 1", "commands' time in the server"},
	}
	c := &rig.Table{
		Title: "Processor time for one acquire+release pair",
		Columns: []string{"system", "client, 1 worker", "server", "client, 16 workers", "server",
			"client, 48 workers", "server"},
	}
	type key struct{ system, workers int }
	results := map[key][]pairResult{}
	for _, w := range workers {
		for run := range repeats {
			b.logf("  %d workers, run %d of %d", w, run+1, repeats)
			for i := range all {
				i := (i + run) % len(all)
				got, err := b.pairRun(ctx, all[i], w, stretch)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", all[i].Name, err)
				}
				results[key{i, w}] = append(results[key{i, w}], got)
			}
		}
	}
	rate := func(r pairResult) float64 { return r.rate }
	for i, s := range all {
		cells, cpu := []string{s.Name}, []string{s.Name}
		for _, w := range workers {
			runs := results[key{i, w}]
			cells = append(cells, rig.Rate(medianOf(runs, rate)),
				rig.Times(medianOf(runs, rate), medianOf(results[key{0, w}], rate)))
			cpu = append(cpu, micros(medianOf(runs, func(r pairResult) float64 { return r.client })),
				micros(medianOf(runs, func(r pairResult) float64 { return r.server })))
		}
		one := results[key{i, 1}]
		t.Add(append(cells, micros(medianOf(one, func(r pairResult) float64 { return r.p50 })),
			micros(medianOf(one, func(r pairResult) float64 { return r.commands })))...)
		c.Add(cpu...)
	}
	t.Note("Medians of %d runs of %v for each number of workers, systems alternating, one client (one process' connections) for all workers, "+
		"default pools. The commands' time in the server is what INFO commandstats charges to what the clients send, with 1 worker. "+
		"\"soloist\" keeps the lock as the sidecar does (term, renewal loop, belief), as rueidislock does; "+
		"\"store alone\" is the two requests and no more, as in redislock and redsync.", repeats, stretch)
	c.Note("From the same runs. Unlike a rate it hardly depends on what else the machine does.")
	return []*rig.Table{t, c}, nil
}

func micros(us float64) string { return fmt.Sprintf("%.1f µs", us) }

func medianOf(runs []pairResult, f func(pairResult) float64) float64 {
	var v []float64
	for _, r := range runs {
		v = append(v, f(r))
	}
	return rig.MedianFloat(v)
}

// pairResult is what one run found.
type pairResult struct {
	rate           float64 // pairs per second
	p50            float64 // µs, with one worker
	commands       float64 // µs per pair that the server charges to the commands
	client, server float64 // µs of processor time per pair
}

func (b *bench) pairRun(ctx context.Context, s systems.System, workers int, stretch time.Duration) (pairResult, error) {
	var res pairResult
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
	if _, _, err := work(ctx, client, workers, stretch/4); err != nil { // scripts, connections, caches
		return res, err
	}
	read, err := server.ServerTime(ctx, s.PairCommands)
	if err != nil {
		return res, err
	}
	start, self, other := time.Now(), selfTime(), server.CPUTime()
	pairs, latency, err := work(ctx, client, workers, stretch)
	if err != nil {
		return res, err
	}
	per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(pairs) }
	res.rate = float64(pairs) / time.Since(start).Seconds()
	res.client, res.server = per(selfTime()-self), per(server.CPUTime()-other)
	res.p50 = float64(median(latency).Nanoseconds()) / 1000
	used, _, err := read()
	res.commands = per(used)
	return res, err
}

// selfTime returns how long this process has run on processors.
func selfTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it can't fail for oneself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// work makes pairs for d with so many workers; with one, it also times each.
func work(ctx context.Context, client systems.Client, workers int, d time.Duration) (int, rig.Samples, error) {
	end := time.Now().Add(d)
	var total atomic.Int64
	var samples rig.Samples // written by the only worker
	var failures atomic.Int64
	errs := make(chan error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		lock := lockName("pair", w)
		wg.Go(func() {
			n := 0
			for now := time.Now(); now.Before(end); n++ {
				if err := client.Pair(ctx, lock); err != nil {
					// A rare time-out on a busy machine is not what is measured.
					if failures.Add(1) > int64(workers+n/1000) || ctx.Err() != nil {
						errs <- err
						break
					}
				}
				was := now
				now = time.Now()
				if workers == 1 {
					samples = append(samples, now.Sub(was))
				}
			}
			total.Add(int64(n))
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return 0, nil, err
	default:
		return int(total.Load()), samples, nil
	}
}
