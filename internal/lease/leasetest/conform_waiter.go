package leasetest

import (
	"errors"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// A waiter is a client of its own that waits for the bench's lock.
type waiter struct {
	b     *bench
	store lease.Store
	inbox lease.Inbox
	r     lease.Request
}

// join returns a waiter that has not asked yet.
func (b *bench) join(r lease.Request) *waiter {
	b.Helper()
	w := &waiter{b: b, store: b.open(), r: r}
	inbox, err := w.store.(lease.Waker).Join(b.Context(), b.lock)
	if err != nil {
		b.Fatalf("Join: %v", err)
	}
	b.Cleanup(inbox.Leave)
	w.inbox, w.r.Waiter = inbox, inbox.Waiter
	return w
}

// waiters returns n waiters that stand in line in their order, or that just wait.
func (b *bench) waiters(n int) []*waiter {
	b.Helper()
	out := make([]*waiter, n)
	for i := range out {
		out[i] = b.join(b.plain())
		rank, waiting := i, i+1
		if b.suite.Unordered {
			rank, waiting = -1, 0
		}
		if h := out[i].refused(); h.Rank != rank || h.Waiting != waiting {
			b.Fatalf("waiter %d has rank %d of %d", i, h.Rank, h.Waiting)
		}
	}
	return out
}

// uncalled returns n waiters in line for a lease that has run out.
func (b *bench) uncalled(n int) []*waiter {
	b.Helper()
	for lasts := b.suite.Short; ; lasts *= 2 {
		r := b.plain()
		r.TTL = lasts
		b.grant(r)
		line := make([]*waiter, n)
		early := false
		for i := range line {
			line[i] = b.join(b.plain())
			_, err := line[i].store.Acquire(b.Context(), line[i].r)
			var held *lease.HeldError
			early = early || !errors.As(err, &held) || held.Holder == (lease.Holder{})
		}
		if !early {
			b.runOut()
			return line
		}
		// A slow machine: it had run out before all were in line. Once more, with more time.
		for _, w := range line {
			_, _ = w.store.Release(b.Context(), w.r.Claim)
		}
	}
}

func (w *waiter) refused() lease.Held {
	w.b.Helper()
	return w.b.refusedBy(w.store, w.r)
}

func (w *waiter) grant() lease.Grant {
	w.b.Helper()
	return w.b.grantBy(w.store, w.r)
}

// hears waits for a notice that ok accepts.
func (w *waiter) hears(what string, ok func(lease.Notice) bool) lease.Notice {
	w.b.Helper()
	timer := time.NewTimer(patient)
	defer timer.Stop()
	var heard []lease.Notice
	for {
		select {
		case n := <-w.inbox.Notices:
			if ok(n) {
				return n
			}
			heard = append(heard, n)
		case <-timer.C:
			w.b.Fatalf("%s: not told so within %v; was told %+v", what, patient, heard)
		}
	}
}

func (w *waiter) called() {
	w.b.Helper()
	w.hears("look again at once", func(n lease.Notice) bool { return n.Now })
}

// takeTurns lets n candidates acquire, hold and release the lock.
func (b *bench) takeTurns(n int) {
	timing := lease.Timing{LeaseDuration: long, RenewDeadline: long / 2, RetryPeriod: patient}
	terms, errs := make(chan *lease.Term, n), make(chan error, n)
	for range n {
		c := &lease.Candidate{Store: b.open(), Timing: timing}
		go func() { // ends when it is granted, or with the test's context
			term, err := c.Acquire(b.Context(), lease.Request{Claim: lease.Claim{Lock: b.lock}, Holder: identity("pod")})
			if err != nil {
				errs <- err
				return
			}
			terms <- term
		}()
	}
	timer := time.NewTimer(patient)
	defer timer.Stop()
	var last uint64
	for i := range n {
		select {
		case term := <-terms:
			if f := term.Grant().Fence; f <= last {
				b.Errorf("fence %d after %d", f, last)
			}
			last = term.Grant().Fence
			if belief, _ := term.Validity().At(lease.SystemClock()); belief != lease.Valid {
				b.Errorf("term %d begins with belief %v", i, belief)
			}
			if released, err := term.Release(b.Context()); err != nil || !released {
				b.Errorf("Release: %v, %v", released, err)
			}
		case err := <-errs:
			b.Fatalf("Acquire: %v", err)
		case <-timer.C:
			b.Fatalf("%d of %d candidates held the lock within %v", i, n, patient)
		}
	}
}
