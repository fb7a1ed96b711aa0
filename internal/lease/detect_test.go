package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// detector answers with what is sent to it.
type detector struct {
	asked  chan lease.Held
	answer chan bool
}

func newDetector() *detector {
	return &detector{asked: make(chan lease.Held, 10), answer: make(chan bool)}
}

func (d *detector) Dead(ctx context.Context, h lease.Held) bool {
	d.asked <- h
	select {
	case dead := <-d.answer:
		return dead
	case <-ctx.Done():
		return false
	}
}

// want wants one question, about this fence, once all is quiet.
func (d *detector) want(t *testing.T, fence uint64) {
	t.Helper()
	synctest.Wait()
	select {
	case h := <-d.asked:
		if h.Term != fence || h.Holder.Name != "a" {
			t.Errorf("asked about %+v, want the term %d of a", h, fence)
		}
	default:
		t.Error("the detector was not asked")
	}
	d.quiet(t)
}

func (d *detector) quiet(t *testing.T) {
	t.Helper()
	synctest.Wait()
	select {
	case h := <-d.asked:
		t.Errorf("the detector was asked about %+v", h)
	default:
	}
}

// await acquires in the background, until the term or the test's end.
func (r *rig) await(name string) <-chan *lease.Term {
	ctx, cancel := context.WithCancel(r.t.Context())
	got, done := make(chan *lease.Term, 1), make(chan struct{})
	go func() { // the cleanup waits for it
		defer close(done)
		if term, err := r.Acquire(ctx, request(name)); err == nil {
			got <- term
		}
	}()
	r.t.Cleanup(func() {
		cancel()
		<-done
		select {
		case term := <-got:
			term.Stop(nil)
		default:
		}
	})
	return got
}

// The first in line takes a dead leader's lease at once, under a higher fence.
func TestTheDeadAreNotWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := newRig(t, server, 1), newRig(t, server, 1)
		d := newDetector()
		b.Failure = d
		term := a.acquire(time.Second)
		got := b.await("b")
		d.want(t, term.Grant().Fence)
		time.Sleep(10 * timing.LeaseDuration) // renewed all the while, and not asked again
		d.quiet(t)
		a.link.SetDown(true)
		from := time.Now()
		d.answer <- true
		next := <-got
		defer next.Stop(nil)
		if took := time.Since(from); took > 10*time.Millisecond {
			t.Errorf("took over after %v", took)
		}
		if g := next.Grant(); !g.FromDead || g.Fence <= term.Grant().Fence {
			t.Errorf("grant %+v after fence %d", g, term.Grant().Fence)
		}
	})
}

// A death that is proven late hurts nobody who has the lease since.
func TestALateProofHurtsNobody(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b, c := newRig(t, server, 1), newRig(t, server, 1), newRig(t, server, 1)
		d := newDetector()
		b.Failure = d
		term := a.acquire(time.Second)
		got := b.await("b")
		d.want(t, term.Grant().Fence)
		// b, first in line, is asleep in the instant of the release, and c takes the lock.
		b.link.SetDown(true)
		term.Release(t.Context())
		next := c.acquire(timing.LeaseDuration)
		b.link.SetDown(false)
		d.answer <- true
		time.Sleep(2 * timing.LeaseDuration)
		select {
		case term := <-got:
			t.Errorf("took over with %+v", term.Grant())
		default:
		}
		if cause := next.Err(); cause != nil {
			t.Errorf("the living lost its term: %v", cause)
		}
	})
}

// Only the first in line asks, and one that can't say is not asked again about the same.
func TestOnlyTheFirstInLineAsks(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b, c := newRig(t, server, 1), newRig(t, server, 1), newRig(t, server, 1)
		first, second := newDetector(), newDetector()
		b.Failure, c.Failure = first, second
		term := a.acquire(time.Second)
		b.await("b")
		first.want(t, term.Grant().Fence)
		c.await("c")
		second.quiet(t)
		first.answer <- false
		time.Sleep(10 * timing.LeaseDuration)
		first.quiet(t)
		second.quiet(t)
	})
}

// Who gives up waits for the detector, and leaves nothing of it.
func TestTheDetectorEndsWithItsCandidate(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := newRig(t, server, 1), newRig(t, server, 1)
		d := newDetector()
		b.Failure = d
		term := a.acquire(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := b.Acquire(ctx, request("b"))
			done <- err
		}()
		d.want(t, term.Grant().Fence)
		cancel()
		if err := <-done; err == nil {
			t.Error("no error")
		}
	}) // the bubble demands that no goroutine is left
}
