package soak

import (
	"cmp"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/soloist-dev/soloist/internal/redistest"
)

var (
	lasts = flag.Duration("soak.for", 20*time.Second, "how long TestSoak goes on")
	seed  = flag.Uint64("soak.seed", 0, "of the faults; 0: by the clock")
)

const (
	sidecars = 3
	workers  = 12
	lease    = "3s"
	slow     = 4 * time.Second // longer than that: a worker that stands still
)

// history is what the workers have seen.
type history struct {
	mu    sync.Mutex
	ops   []porcupine.Operation
	holds []hold
	held  int // releases that said so
	lost  int
}

func TestSoak(t *testing.T) {
	redistest.CheckLeaks(t)
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again: -soak.for=%v -soak.seed=%d", *lasts, *seed)
	s := redistest.Start(t, redistest.AppendOnly())
	binary := build(t)
	var all []*sidecar
	for i := range sidecars {
		all = append(all, newSidecar(t, binary, fmt.Sprintf("pod-%d", i), s))
	}
	ctx, cancel := context.WithTimeout(t.Context(), *lasts)
	defer cancel()
	for _, c := range all {
		c.answers(t.Context())
	}
	var (
		h       history
		reg     register
		working sync.WaitGroup
	)
	began := time.Now()
	for w := range workers {
		working.Go(func() { work(ctx, w, all, &reg, &h, began) })
	}
	faults := disturb(ctx, mathrand.New(mathrand.NewPCG(*seed, 0)), s, all, binary)
	working.Wait()
	client.CloseIdleConnections()

	slices.SortFunc(h.holds, func(a, b hold) int { return cmp.Compare(a.fence, b.fence) })
	if a, b, ok := overlap(h.holds); ok {
		t.Errorf("worker %d might believe until %v, worker %d from %v: %+v, %+v", a.worker, a.to, b.worker, b.from, a, b)
	}
	done := 0
	for _, op := range h.ops {
		if op.Output.(increment).done {
			done++
		}
	}
	if reg.value != done {
		t.Errorf("%d increments were done, and the register is %d: updates were lost", done, reg.value)
	}
	if !porcupine.CheckOperations(counter, h.ops) {
		t.Error("no single register could have had this history")
	}
	if done == 0 || h.held == 0 {
		t.Errorf("%d increments, %d releases: nothing was tested", done, h.held)
	}
	t.Logf("%d increments in %d holds; %d releases said held, %d lost; %d refused by the fence; faults: %v",
		done, len(h.holds), h.held, h.lost, len(h.ops)-done, faults)
	residue(t, s, all)
}

// work increments the register under the lock until ctx is done. Now and then it stands
// still for longer than its lease, as a process does that was paused.
func work(ctx context.Context, worker int, all []*sidecar, reg *register, h *history, began time.Time) {
	for ctx.Err() == nil {
		c := all[mathrand.IntN(len(all))]
		asked := time.Now()
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		got, err := c.do(call, http.MethodPost, "/locks/register", map[string]any{
			"wait": "3s", "lease": lease, "request": rand.Text(), "owner": fmt.Sprint(worker), "at_most_for": "5s",
		})
		cancel()
		if err != nil || got.Token == "" {
			continue
		}
		granted := time.Now()
		// It may have waited in line, so that it does not know from when on this counts, but
		// from the answer on it surely has not more.
		valid := time.Duration(got.ValidForMS) * time.Millisecond
		if granted.Sub(asked) > valid/10 {
			asked = time.Now()
			call, cancel := context.WithTimeout(ctx, time.Second)
			again, err := c.do(call, http.MethodPut, "/locks/register", map[string]any{"token": got.Token})
			cancel()
			if err != nil || again.Error != "" {
				give(ctx, all, got.Token)
				continue
			}
			valid = time.Duration(again.ValidForMS) * time.Millisecond
			granted = time.Now()
		}
		until := asked.Add(valid)
		op := porcupine.Operation{ClientId: worker, Call: int64(time.Since(began))}
		value, ok := reg.read(got.Fence)
		pause := time.Duration(mathrand.IntN(10)) * time.Millisecond
		if mathrand.IntN(30) == 0 {
			pause = slow
		}
		time.Sleep(pause) // real time: this is the work
		ok = ok && reg.write(value+1, got.Fence)
		op.Return, op.Output = int64(time.Since(began)), increment{value, ok}
		ended := time.Now()
		if ended.After(until) {
			ended = until // after that it did not believe; the fence decides
		}

		out, err := give(ctx, all, got.Token)
		h.mu.Lock()
		h.ops = append(h.ops, op)
		if granted.Before(until) {
			h.holds = append(h.holds, hold{worker, got.Fence, granted, ended})
		}
		switch {
		case err != nil:
		case out.Held:
			h.held++
		case out.Error == "lost":
			h.lost++
		}
		h.mu.Unlock()
	}
}

// give releases the lock, through whatever sidecar.
func give(ctx context.Context, all []*sidecar, token string) (answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return all[mathrand.IntN(len(all))].do(ctx, http.MethodDelete, "/locks/register", map[string]any{"token": token})
}

// disturb does one thing after another to the sidecars and the server, and undoes it.
func disturb(ctx context.Context, r *mathrand.Rand, s *redistest.Server, all []*sidecar, binary string) map[string]int {
	count := map[string]int{}
	for {
		sleep(ctx, time.Duration(500+r.IntN(2500))*time.Millisecond)
		if ctx.Err() != nil {
			return count
		}
		c := all[r.IntN(len(all))]
		span := time.Duration(r.IntN(4000)) * time.Millisecond
		switch kind := []string{"kill", "freeze", "cut", "redis-freeze", "redis-kill", "scripts"}[r.IntN(6)]; kind {
		case "kill":
			c.kill()
			sleep(ctx, span/4)
			c.start(binary)
			count[kind]++
		case "freeze":
			c.signal(syscall.SIGSTOP)
			sleep(ctx, span)
			c.signal(syscall.SIGCONT)
			count[kind]++
		case "cut":
			hole := c.proxy.On(func(redistest.Command) bool { return true }, redistest.LoseRequest(), 0)
			sleep(ctx, span)
			hole.Remove()
			c.proxy.CloseAll()
			count[kind]++
		case "redis-freeze":
			s.Pause()
			sleep(ctx, span)
			s.Resume()
			count[kind]++
		case "redis-kill":
			s.Kill()
			sleep(ctx, span/4)
			s.Restart()
			count[kind]++
		case "scripts":
			s.Must("SCRIPT", "FLUSH")
			count[kind]++
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// residue demands that nothing is left behind: every key expires, nobody holds or waits, and
// there is one channel for each sidecar at most.
func residue(t *testing.T, s *redistest.Server, all []*sidecar) {
	t.Helper()
	for _, c := range all {
		c.answers(t.Context())
	}
	// Those that were killed in line are dropped by the next who comes.
	last, err := all[0].do(t.Context(), http.MethodPost, "/locks/register", map[string]any{"wait": "20s", "lease": lease})
	if err != nil || last.Error != "" {
		t.Errorf("the last acquire: %+v, %v", last, err)
	} else if out, err := all[0].do(t.Context(), http.MethodDelete, "/locks/register", map[string]any{"token": last.Token}); err != nil || !out.Held {
		t.Errorf("the last release: %+v, %v", out, err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		var left []string
		for _, key := range s.Must("KEYS", "*").([]any) {
			name, _ := key.(string)
			if ttl, _ := s.Must("PTTL", name).(int64); ttl == -1 {
				t.Errorf("key %s never expires", name)
			}
			if strings.Contains(name, ":lk") {
				left = append(left, name)
			}
		}
		if n, _ := s.Must("ZCARD", "soloist:{register}:q").(int64); n > 0 {
			left = append(left, fmt.Sprintf("%d waiters", n))
		}
		for _, c := range all {
			var list struct{ Locks []any }
			if err := c.get(t.Context(), "/locks", &list); err != nil || len(list.Locks) > 0 {
				left = append(left, fmt.Sprintf("%s: %v %v", c.name, list.Locks, err))
			}
		}
		channels, _ := s.Must("PUBSUB", "CHANNELS", "*").([]any)
		if len(channels) > len(all) {
			left = append(left, fmt.Sprintf("%d channels", len(channels)))
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("left behind: %v", left)
			return
		}
		time.Sleep(50 * time.Millisecond) // real time: leases run out
	}
}
