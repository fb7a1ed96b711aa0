package lease

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// maxNap bounds how long a term sleeps without looking at the clock: its timers
// stand still in a suspend, the belief does not.
const maxNap = time.Second

// minNap keeps a term from spinning where its timers run a little faster than its clock.
const minNap = 100 * time.Microsecond

// A Term is one holding of a slot. It renews itself until it ends, and it ends
// when the store says that it is lost, when it was not renewed in time, or when its
// owner stops it. It is safe for concurrent use. Its owner must call Stop or Release.
type Term struct {
	c     *Candidate
	grant Grant

	validity atomic.Pointer[Validity] // zero once the term has ended; written only by keep
	renewed  chan struct{}            // a mailbox of one
	verify   chan struct{}            // a mailbox of one
	waiting  atomic.Int64

	from      atomic.Pointer[Instant] // where Candidate.AtMost begins to count
	prolonged chan struct{}           // a mailbox of one

	ttl   time.Duration // that the last confirmed request asked for; only keep uses it
	stop  context.CancelCauseFunc
	ended chan struct{} // closed after validity is zero and err is set
	err   error
	quiet chan struct{} // closed when keep has returned: no request of the term is under way
}

func (c *Candidate) hold(ctx context.Context, g Grant, v Validity) *Term {
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	t := &Term{
		c: c, grant: g, stop: stop,
		renewed:   make(chan struct{}, 1),
		verify:    make(chan struct{}, 1),
		prolonged: make(chan struct{}, 1),
		ended:     make(chan struct{}),
		quiet:     make(chan struct{}),
	}
	t.validity.Store(&v)
	t.from.Store(&v.Stamp)
	t.ttl, _ = c.entitled(v.Stamp, v.Stamp)
	t.waiting.Store(int64(g.Waiting))
	go t.keep(ctx) // Stop and Release wait for it
	return t
}

// String names the term without its token.
func (t *Term) String() string {
	return fmt.Sprintf("term %d of %s", t.grant.Fence, t.grant.Lock)
}

// Grant returns what was granted. It does not block.
func (t *Term) Grant() Grant { return t.grant }

// Validity returns what the last confirmed request entitles to believe; the zero
// Validity once the term has ended. It does not block.
func (t *Term) Validity() Validity { return *t.validity.Load() }

// Waiting returns how many candidates were in line at the last renewal.
func (t *Term) Waiting() int { return int(t.waiting.Load()) }

// Renewed receives after renewals: at least once after the latest of them.
func (t *Term) Renewed() <-chan struct{} { return t.renewed }

// Ended is closed when the term has ended, within a millisecond or two of the end of
// its belief if this process runs.
func (t *Term) Ended() <-chan struct{} { return t.ended }

// Err returns why the term ended: [ErrLost], [ErrExpired], [ErrLimit], the cause given to Stop,
// or nil while it lasts.
func (t *Term) Err() error {
	select {
	case <-t.ended:
		return t.err
	default:
		return nil
	}
}

// Verify makes the term look at the clock now, and renew at once if its belief is
// unverified. It does not block. A reader that finds the belief so calls it.
func (t *Term) Verify() { put(t.verify) }

// Prolong renews the term now, and lets [Candidate.AtMost] count anew. It does not block:
// the Validity that comes of it has a Stamp from after the call. What has ended stays so.
func (t *Term) Prolong() {
	now := t.c.now()
	t.from.Store(&now)
	put(t.prolonged)
}

// Stop ends the belief for cause (nil: ErrStopped) and the renewals, and leaves the
// lease to run out. It waits for a renewal under way, which it cancels.
func (t *Term) Stop(cause error) {
	if cause == nil {
		cause = ErrStopped
	}
	t.stop(cause)
	<-t.quiet
}

// Release stops the term and gives the lease up. It reports whether the lease was
// still held then; false with a nil error means that it had ended before. [ErrUnknown]
// means that it is not held any more, and another error that the store did not answer: the
// lease then runs out by itself.
//
// It lasts at most two retry periods, whatever becomes of ctx, whose values alone it uses.
func (t *Term) Release(ctx context.Context) (bool, error) { return t.Finish(ctx, Finish{}) }

// Finish is Release, and does what f says if the lease was still held. Its error matches
// [ErrInvalid] where the Store is no [Finisher] and f is not zero; nothing is released then.
func (t *Term) Finish(ctx context.Context, f Finish) (bool, error) {
	t.stop(ErrStopped)
	// The request under way goes first: a store may see them in any order, and
	// a release is best the last thing that it hears of a token.
	select {
	case <-t.quiet:
	case <-time.After(t.c.Timing.RetryPeriod):
	}
	return t.c.Finish(ctx, t.grant.Claim, f)
}

// reply is what came of one renewal.
type reply struct {
	stamp  Instant // read before it was sent
	ttl    time.Duration
	belief time.Duration
	ext    Extended
	err    error
}

// keep renews until the term ends. Only a confirmed renewal moves the validity; the
// loop looks at it on every turn, whether or not a renewal is under way.
func (t *Term) keep(ctx context.Context) {
	defer close(t.quiet)
	calls, cancel := context.WithCancel(ctx)
	defer cancel()

	var (
		timing   = t.c.Timing
		replies  = make(chan reply, 1)
		underway bool
		from     = t.Validity().Stamp // the next renewal is due pause after this
		pause    = timing.RetryPeriod
		jumped   bool // an unverified belief was seen and not yet confirmed
	)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for t.err == nil {
		now := t.c.now()
		v := t.Validity()
		belief, left := v.At(now)
		if belief == Over {
			t.end(t.over(v))
			break
		}
		if belief == Unverified && !jumped {
			jumped, pause = true, 0
			if t.c.Trace.ClockJump != nil {
				t.c.Trace.ClockJump(now.WallAhead(v.Stamp))
			}
		}
		due := pause - now.Since(from)
		if due <= 0 && !underway {
			underway = true
			go func() { replies <- t.extend(calls) }() // received below, or after the loop
		}
		nap := min(left, maxNap, timing.RetryPeriod)
		if !underway {
			nap = min(nap, due)
		}
		nap = max(nap, minNap)
		t.c.beat(nap)
		timer.Reset(nap)
		select {
		case <-timer.C:
		case <-t.verify:
		case <-t.prolonged:
			from, pause = t.c.now(), 0
		case <-ctx.Done():
			t.end(context.Cause(ctx))
		case r := <-replies:
			underway = false
			if from, pause = r.stamp, timing.RetryPeriod; r.err != nil {
				from, pause = t.c.now(), timing.RetryPeriod/4
			}
			if since := *t.from.Load(); since.Since(r.stamp) > 0 {
				pause = 0 // prolonged meanwhile
			}
			jumped = jumped && r.err != nil
			t.renew(v, r)
		}
	}
	cancel()
	if underway {
		<-replies
	}
}

func (t *Term) extend(ctx context.Context) reply {
	from := *t.from.Load()
	stamp := t.c.now() // before the request is sent: nothing later may count
	ttl, belief := t.c.entitled(from, stamp)
	ctx, cancel := context.WithTimeout(ctx, t.c.Timing.RetryPeriod)
	defer cancel()
	ext, err := t.c.Store.Extend(ctx, t.grant, Extension{TTL: ttl})
	return reply{stamp, ttl, belief, ext, err}
}

// over returns why a belief is over that was not ended: v was the last.
func (t *Term) over(v Validity) error {
	if v.For < t.c.Timing.Belief() {
		return ErrLimit // which cut it short
	}
	return ErrExpired
}

// renew takes in the reply to a renewal; v is the validity before it.
func (t *Term) renew(v Validity, r reply) {
	now := t.c.now()
	switch belief, _ := v.At(now); {
	case belief == Over:
		// Somebody may have read that it is over: what has ended stays ended.
		t.end(t.over(v))
	case r.err == nil:
		t.validity.Store(&Validity{Stamp: r.stamp, For: r.belief})
		t.waiting.Store(int64(r.ext.Waiting))
		put(t.renewed)
		// The store saw the last one after v.Stamp, so at least this much was left
		// when it saw this one, had its clock run as ours did.
		took := now.Since(v.Stamp)
		missing := t.ttl - took - took/driftShare - slack - r.ext.Left
		t.ttl = r.ttl
		if missing > maxWallAhead && t.c.Trace.StoreJump != nil {
			t.c.Trace.StoreJump(missing)
		}
	case errors.Is(r.err, ErrLost):
		t.end(r.err)
	case t.c.Trace.RenewFailed != nil:
		t.c.Trace.RenewFailed(r.err)
	}
}

// end ends the belief first, then tells. Only keep calls it.
func (t *Term) end(cause error) {
	if t.err != nil {
		return
	}
	t.validity.Store(&Validity{})
	t.err = cause
	close(t.ended)
}

// put leaves a note in a mailbox of one.
func put(mailbox chan<- struct{}) {
	select {
	case mailbox <- struct{}{}:
	default:
	}
}
