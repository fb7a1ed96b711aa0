package elector_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

const lock = "city-ids"

var timing = lease.Timing{LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 400 * time.Millisecond}

// pod is an elector that runs, on a clock and a link of its own.
type pod struct {
	*elector.Elector
	t     *testing.T
	clock *leasetest.Clock
	link  *leasetest.Link
	gate  *gate
	stop  context.CancelFunc // a planned stop
	done  chan struct{}      // closed when Run has returned

	mu   sync.Mutex
	lost []elector.Reason
}

func bubble(t *testing.T, f func(t *testing.T, server *leasetest.Memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, leasetest.NewMemory(leasetest.Config{Lease: timing.LeaseDuration}))
	})
}

func start(t *testing.T, server *leasetest.Memory, name string, change ...func(*elector.Config)) *pod {
	t.Helper()
	p := &pod{
		t: t, clock: leasetest.NewClock(1), link: leasetest.NewLink(server.NewProcess("")),
		gate: newGate(), done: make(chan struct{}),
	}
	c := elector.Config{
		Lock: lock, Identity: lease.Identity{Name: name}, Store: p.link, Timing: timing,
		Clock: p.clock.Now, Gate: p.gate, OnLost: func(r elector.Reason) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.lost = append(p.lost, r)
		},
	}
	for _, f := range change {
		f(&c)
	}
	var err error
	if p.Elector, err = elector.New(c); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	p.stop = stop
	go func() { // the cleanup waits for it
		defer close(p.done)
		p.Run(ctx)
	}()
	t.Cleanup(func() {
		p.stop()
		<-p.done
		p.link.Close()
	})
	synctest.Wait()
	return p
}

// crash cuts the pod off for good.
func (p *pod) crash() { p.link.SetDown(true) }

// await waits until the pod says phase for reason, for at most d, and returns how long it took.
func (p *pod) await(phase elector.Phase, reason elector.Reason, d time.Duration) time.Duration {
	p.t.Helper()
	from := time.Now()
	for {
		v := p.View()
		if v.Phase == phase && v.Reason == reason {
			return time.Since(from)
		}
		if time.Since(from) > d {
			p.t.Fatalf("%s says %s (%s) after %v, want %s (%s)", v.Name, v.Phase, v.Reason, d, phase, reason)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
	}
}

func (p *pod) mustSay(phase elector.Phase, reason elector.Reason) elector.View {
	p.t.Helper()
	synctest.Wait()
	v := p.View()
	if v.Phase != phase || v.Reason != reason || v.Leading != (phase == elector.Leader) {
		p.t.Fatalf("%s says %s (%s), leading %v; want %s (%s)", v.Name, v.Phase, v.Reason, v.Leading, phase, reason)
	}
	return v
}

func (p *pod) losses() []elector.Reason {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]elector.Reason(nil), p.lost...)
}

// gate is set by the test.
type gate struct {
	mu      sync.Mutex
	reason  elector.Reason
	changed chan struct{}
}

func newGate() *gate { return &gate{changed: make(chan struct{})} }

func (g *gate) Check() (elector.Reason, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reason, g.changed
}

func (g *gate) set(r elector.Reason) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reason = r
	close(g.changed)
	g.changed = make(chan struct{})
}
