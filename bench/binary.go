package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"github.com/soloist-dev/soloist/bench/internal/rig"
	"github.com/soloist-dev/soloist/internal/lease"
)

// sse measures a planned hand-over as two apps see it: from POST /resign on one
// sidecar to the event on the other's stream.
func (b *bench) sse(ctx context.Context) ([]*rig.Table, error) {
	n := pick(b, 200, 40)
	server, err := rig.StartRedis(ctx, b.server)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	events := make(chan leaderEvent, 16)
	var cars []*sidecar
	for i, name := range []string{"pod-a", "pod-b"} {
		s, err := b.startSidecar(ctx, server, "bench", name)
		if err != nil {
			return nil, err
		}
		defer s.kill()
		if i == 0 {
			err = s.untilLeading(ctx)
		} else {
			err = s.untilStandby(ctx)
		}
		if err != nil {
			return nil, err
		}
		cars = append(cars, s)
		if err := s.listen(ctx, i, events); err != nil {
			return nil, err
		}
	}
	first, err := nextEvent(ctx, events)
	if err != nil {
		return nil, err
	}
	var samples rig.Samples
	for leader := first.sidecar; len(samples) < n; {
		if err := rig.Sleep(ctx, 30*time.Millisecond+rand.N(30*time.Millisecond)); err != nil {
			return nil, err
		}
		if err := untilInLine(ctx, server, "bench"); err != nil {
			return nil, err
		}
		start := time.Now()
		if err := cars[leader].resign(ctx); err != nil {
			return nil, fmt.Errorf("after %d hand-overs: %w", len(samples), err)
		}
		e, err := nextEvent(ctx, events)
		if err != nil {
			return nil, fmt.Errorf("after %d hand-overs: %w", len(samples), err)
		}
		samples = append(samples, e.at.Sub(start))
		leader = e.sidecar
	}
	t := &rig.Table{
		Title:   "Planned hand-over as the app sees it, POST /resign to the other's event",
		Columns: []string{"system", "p50", "p99", "max"},
	}
	t.Add("two sidecars", rig.Ms(median(samples)), rig.Ms(p99(samples)), rig.Ms(samples.Max()))
	t.Note("%d hand-overs to and fro between two processes of the real binary, by {\"done\":true,\"hold_off\":\"1ms\"}: "+
		"the app has finished, and its sidecar may lead again.", n)
	return []*rig.Table{t}, nil
}

// untilInLine waits until somebody waits for the lock.
func untilInLine(ctx context.Context, server *rig.Redis, lock string) error {
	for deadline := time.Now().Add(sidecarLimit); time.Now().Before(deadline); {
		n, err := server.Admin.ZCard(ctx, "soloist:{"+lock+"}:q").Result()
		if err != nil || n > 0 {
			return err
		}
		if err := rig.Sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("nobody waits for %s after %v", lock, sidecarLimit)
}

func nextEvent(ctx context.Context, events <-chan leaderEvent) (leaderEvent, error) {
	limit := time.NewTimer(sidecarLimit)
	defer limit.Stop()
	select {
	case e := <-events:
		return e, nil
	case <-limit.C:
		return leaderEvent{}, fmt.Errorf("no event said leader within %v", sidecarLimit)
	case <-ctx.Done():
		return leaderEvent{}, context.Cause(ctx)
	}
}

// start measures from exec to the first 200 of /leader, on a Redis that is up.
func (b *bench) start(ctx context.Context) ([]*rig.Table, error) {
	n := pick(b, 30, 10)
	server, err := rig.StartRedis(ctx, b.server)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	if _, err := b.binary(ctx); err != nil {
		return nil, err
	}
	var samples rig.Samples
	for i := range n {
		begin := time.Now()
		s, err := b.startSidecar(ctx, server, fmt.Sprintf("start-%d", i), "pod-a")
		if err != nil {
			return nil, err
		}
		err = s.untilLeading(ctx)
		samples = append(samples, time.Since(begin))
		s.kill()
		if err != nil {
			return nil, err
		}
	}
	t := &rig.Table{
		Title:   "Start to first leadership, Redis local",
		Budget:  "≤ 60 ms",
		Columns: []string{"system", "p50", "p90", "max"},
	}
	t.Add("sidecar", rig.Ms(median(samples)), rig.Ms(samples.Quantile(0.9)), rig.Ms(samples.Max()))
	t.Note("%d starts, each with a new lock: exec of the binary to the first 200 of /leader, asked without a pause.", n)
	return []*rig.Table{t}, nil
}

// idle measures what a leader and a standby cost that nobody asks anything, and the
// size of the binary.
func (b *bench) idle(ctx context.Context) ([]*rig.Table, error) {
	window := pick(b, 60*time.Second, 20*time.Second)
	server, err := rig.StartRedis(ctx, b.server)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	leader, err := b.startSidecar(ctx, server, "bench", "pod-a")
	if err != nil {
		return nil, err
	}
	defer leader.kill()
	if err := leader.untilLeading(ctx); err != nil {
		return nil, err
	}
	standby, err := b.startSidecar(ctx, server, "bench", "pod-b")
	if err != nil {
		return nil, err
	}
	defer standby.kill()
	if err := standby.untilStandby(ctx); err != nil {
		return nil, err
	}
	pinger, err := rig.StartChild("_ping", server.Addr, lease.DefaultTiming.RetryPeriod.String())
	if err != nil {
		return nil, err
	}
	defer pinger.Kill()
	if err := rig.Sleep(ctx, 5*time.Second); err != nil {
		return nil, err
	}
	t := &rig.Table{
		Title:   "An idle sidecar",
		Budget:  "RSS ≤ 18 MB, CPU ≤ 1 millicore; binary ≤ 16 MiB",
		Columns: []string{"what", "RSS", "of it anonymous", "CPU"},
	}
	pids := []int{leader.pid(), standby.pid(), pinger.PID()}
	var before []time.Duration
	for _, pid := range pids {
		before = append(before, rig.CPUTime(pid))
	}
	start := time.Now()
	b.logf("  watching for %v", window)
	if err := rig.Sleep(ctx, window); err != nil {
		return nil, err
	}
	took := time.Since(start)
	for i, pid := range pids {
		millicores := 1000 * float64(rig.CPUTime(pid)-before[i]) / float64(took)
		t.Add([]string{"leader", "standby", "bare PING"}[i], rig.Memory(pid, "VmRSS"), rig.Memory(pid, "RssAnon"), fmt.Sprintf("%.2f millicores", millicores))
	}
	file, err := os.Stat(b.sidecar)
	if err != nil {
		return nil, fmt.Errorf("size of the binary: %w", err)
	}
	t.Add("binary, stripped, static", fmt.Sprintf("%.1f MiB", float64(file.Size())/(1<<20)), "", "")
	t.Note("RSS after %v of idleness; CPU is the scheduler's own count of the process' threads over %v, to the nanosecond. Lease %v. "+
		"Bare PING is a program that sends one as often as a leader renews, and does nothing else: what the machine charges "+
		"for waking up is in it, too.",
		5*time.Second+window, window, leaseDuration)
	return []*rig.Table{t}, nil
}

// rolePing sends a PING each period: ADDR PERIOD.
func rolePing(ctx context.Context, args []string, _ io.Writer) error {
	period, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", args[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() { // until the connection is closed
		reply := make([]byte, 7)
		for tick := time.NewTicker(period); ; <-tick.C {
			if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
				return
			}
			if _, err := io.ReadFull(conn, reply); err != nil {
				return
			}
		}
	}()
	rig.UntilOrphaned(ctx)
	return nil
}
