package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// firstBackoff is the first pause after no answer; each next one is up to twice as
// long, with full jitter, to at most a retry period.
const firstBackoff = 20 * time.Millisecond

// A Candidate competes for a lock and keeps what it gets. Store and Timing must be
// set and the Timing valid. Its fields are read only; it is safe for concurrent use.
type Candidate struct {
	Store  Store
	Timing Timing
	Clock  Clock // nil: SystemClock
	Trace  Trace
	// Failure is asked, while this candidate is first in line, whether the holder is dead;
	// nil: the lease is waited for.
	Failure FailureDetector
	// AtMost, if not 0, is how long a term may last, its lease with it, from when it was
	// asked for or from its latest [Term.Prolong]; at least a lease duration. It then ends
	// with [ErrLimit].
	AtMost time.Duration
}

// Trace is told what a candidate meets. Its functions are called from the loops
// that they report on, so they must not block; nil ones are skipped.
type Trace struct {
	// Refused is called with each answer to an Acquire that is not a grant, and with
	// what the store tells waiters.
	Refused func(error)
	// RenewFailed is called with each renewal that brought no answer.
	RenewFailed func(error)
	// ClockJump is called when the wall clock ran ahead of elapsed time by more than
	// it may: belief is unverified until a renewal succeeds.
	ClockJump func(ahead time.Duration)
	// StoreJump is called when a lease had less left than it should have had: the
	// store's clock jumped, or somebody shortened it.
	StoreJump func(missing time.Duration)
	// Beat is called by every loop with the time within which it will call again.
	Beat func(within time.Duration)
}

func (c *Candidate) now() Instant {
	if c.Clock == nil {
		return SystemClock()
	}
	return c.Clock()
}

// beat leaves the loop a call's time beyond what it plans to sleep.
func (c *Candidate) beat(sleep time.Duration) {
	if c.Trace.Beat != nil {
		c.Trace.Beat(sleep + 2*c.Timing.RetryPeriod)
	}
}

// Acquire competes until r is granted, ctx is done or the request turns out to be
// one that can't be granted ([ErrInvalid], [ErrKind]). It stays in line through any
// other failure. r.Token must be fresh or empty.
//
// When it gives up it leaves the line and releases what it may have been granted,
// on a context of its own that lasts at most a retry period; its error then matches
// ctx's cause. The caller owes the Term a Stop or a Release.
func (c *Candidate) Acquire(ctx context.Context, r Request) (*Term, error) {
	if r.Token == "" {
		r.Token = NewToken()
	}
	inbox, err := c.join(ctx, r.Lock)
	if err != nil {
		return nil, err
	}
	defer inbox.Leave()
	r.Waiter = inbox.Waiter

	detect := detection{detector: c.Failure}
	defer detect.end()
	var failures int
	for {
		select {
		case <-inbox.Notices: // told before this try, which will say more
		default:
		}
		c.beat(0)
		t, stamp, err := c.ask(ctx, r)
		if err == nil {
			return t, nil
		}
		if ctx.Err() != nil {
			c.giveUp(ctx, r.Claim)
			return nil, context.Cause(ctx)
		}
		if c.Trace.Refused != nil {
			c.Trace.Refused(err)
		}

		if errors.Is(err, ErrBurned) {
			r.Token = NewToken()
		}
		var (
			held *HeldError
			wait *WaitError
			next Held
		)
		switch {
		case errors.As(err, &held):
			failures = 0
			r.Reclaim = false // the holder is alive, or not our predecessor
			next = held.Held
			if next.Turn {
				// What was left was left after the request was sent: the answer's way
				// back is not waited for once more.
				next.LookAgain -= min(c.now().Since(stamp), next.LookAgain)
			}
		case errors.As(err, &wait):
			next.LookAgain = wait.For
		case errors.Is(err, ErrInvalid), errors.Is(err, ErrKind):
			return nil, err
		case errors.Is(err, ErrExpired):
			c.giveUp(ctx, r.Claim)
			r.Token = NewToken()
		case errors.Is(err, ErrBurned):
		default:
			failures++
			next.LookAgain = backoff(failures, c.Timing.RetryPeriod)
		}
		if r.Skip, err = c.sleep(ctx, next, inbox.Notices, &detect); err != nil {
			c.giveUp(ctx, r.Claim)
			return nil, err
		}
		r.Dead = detect.dead
		r.FenceHint = max(r.FenceHint, next.Fence)
	}
}

// Try asks for r once, without a place in line. r.Token must be fresh or empty. Its error is
// a verdict, a *[WaitError], ctx's cause, or says that there was no answer: it is then not
// held, or is released on a context of its own. It lasts at most three retry periods. The
// caller owes the Term a Stop or a Release.
func (c *Candidate) Try(ctx context.Context, r Request) (*Term, error) {
	if r.Token == "" {
		r.Token = NewToken()
	}
	r.Waiter = ""
	var wait *WaitError
	t, _, err := c.ask(ctx, r)
	if err != nil && !IsVerdict(err) && !errors.As(err, &wait) && ctx.Err() == nil {
		t, _, err = c.ask(ctx, r) // the first may have met a dead connection
	}
	if err != nil && !IsVerdict(err) && !errors.As(err, &wait) {
		c.giveUp(ctx, r.Claim)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}
	return t, err
}

// join gets an inbox from a store that has them, however long that takes.
func (c *Candidate) join(ctx context.Context, lock string) (Inbox, error) {
	waker, ok := c.Store.(Waker)
	if !ok {
		return Inbox{Leave: func() {}}, nil
	}
	for failures := 1; ; failures++ {
		c.beat(0)
		call, cancel := context.WithTimeout(ctx, c.Timing.RetryPeriod)
		inbox, err := waker.Join(call, lock)
		cancel()
		if err == nil {
			return inbox, nil
		}
		if ctx.Err() != nil {
			return Inbox{}, context.Cause(ctx)
		}
		if c.Trace.Refused != nil {
			c.Trace.Refused(err)
		}
		if _, err := c.sleep(ctx, Held{LookAgain: backoff(failures, c.Timing.RetryPeriod)}, nil, &detection{}); err != nil {
			return Inbox{}, err
		}
	}
}

// ask sends one request, and returns the time before it was sent.
func (c *Candidate) ask(ctx context.Context, r Request) (*Term, Instant, error) {
	stamp := c.now() // before the request is sent: nothing later may count
	ttl, belief := c.entitled(stamp, stamp)
	r.TTL = ttl
	call, cancel := context.WithTimeout(ctx, c.Timing.RetryPeriod)
	defer cancel()
	grant, err := c.Store.Acquire(call, r)
	if err != nil {
		return nil, stamp, err
	}
	v := Validity{Stamp: stamp, For: belief}
	if b, _ := v.At(c.now()); b == Over {
		return nil, stamp, ErrExpired // granted, but told too late to believe
	}
	return c.hold(ctx, grant, v), stamp, nil
}

// entitled returns which lease a request sent at stamp may ask for, and what its
// confirmation entitles to, in a term that counts from from.
func (c *Candidate) entitled(from, stamp Instant) (ttl, belief time.Duration) {
	ttl, belief = c.Timing.LeaseDuration, c.Timing.Belief()
	if c.AtMost > 0 {
		rest := c.AtMost - stamp.Since(from)
		belief = min(belief, rest-(ttl-belief))
		ttl = min(ttl, max(rest, time.Millisecond))
	}
	return ttl, belief
}

// sleep waits until it is time to look again, and returns how many waiters ahead
// have missed their turn by then.
func (c *Candidate) sleep(ctx context.Context, h Held, notices <-chan Notice, detect *detection) (skip int, err error) {
	c.beat(h.LookAgain)
	timer := time.NewTimer(h.LookAgain)
	defer timer.Stop()
	for {
		detect.ask(ctx, h)
		select {
		case detect.dead = <-detect.proven:
			return 0, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case n := <-notices:
			if n.Now {
				return 0, nil
			}
			h = n.Held
			if c.Trace.Refused != nil {
				c.Trace.Refused(&HeldError{h})
			}
			c.beat(h.LookAgain)
			timer.Reset(h.LookAgain)
		case <-timer.C:
			if h.Turn {
				return h.Rank, nil
			}
			return 0, nil
		}
	}
}

// giveUp releases what claim may hold, and burns its token.
func (c *Candidate) giveUp(ctx context.Context, claim Claim) {
	_, _ = c.Finish(ctx, claim, Finish{}) // unknown: the lease runs out by itself
}

// Finish is [Term.Finish] for who has the claim alone: it lasts at most a retry period,
// whatever becomes of ctx, whose values alone it uses. A first try that brings no answer is
// repeated once, since it may have met a dead connection.
func (c *Candidate) Finish(ctx context.Context, claim Claim, f Finish) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Timing.RetryPeriod)
	defer cancel()
	first, stop := context.WithTimeout(ctx, c.Timing.RetryPeriod/2)
	released, err := finish(first, c.Store, claim, f)
	stop()
	if err == nil || IsVerdict(err) {
		return released, err
	}
	released, err = finish(ctx, c.Store, claim, f)
	if err == nil && !released {
		err = ErrUnknown // the first may have been seen, and be forgotten
	}
	return released, err
}

// backoff returns a pause after the n-th failure in a row (n ≥ 1).
func backoff(n int, limit time.Duration) time.Duration {
	d := min(firstBackoff<<min(n-1, 16), limit)
	return d/2 + rand.N(d/2+1)
}
