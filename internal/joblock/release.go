package joblock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// Released says what a release has found.
type Released struct {
	// Held is whether the lock was held to the end: until the release was asked for.
	Held bool
	// Unknown is whether the store has not confirmed the release: others may then be kept
	// out until the lease has run out, and a run that is done may not be recorded.
	Unknown bool
	Count   int // handles that are left
}

// releasing is a release under way. got and err are set before done is closed.
type releasing struct {
	done chan struct{}
	got  Released
	err  error
}

// outcome is how something ended: what a release found, or why the term was lost.
type outcome struct {
	released Released
	lost     error
	asked    bool // a release was sent that brought no answer, and may have ended it
}

// Release gives up what token stands for, and says whether it was held to the end. done
// records the run of [Ask.Once] if it was. Repeated, it tells the same again.
//
// [lease.ErrLost] is a verdict: it had ended before, or others may have held it, so what was
// done under it must be rolled back. Any other error but [lease.ErrInvalid] and
// [ErrElsewhere] means that neither is known. It blocks for two retry periods of the lease's
// timing at most, whatever becomes of ctx.
func (l *Locks) Release(ctx context.Context, lock string, token Token, done bool) (Released, error) {
	got, err := l.release(ctx, lock, token, done)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.released(got, err)
	return got, err
}

func (l *Locks) release(ctx context.Context, lock string, token Token, done bool) (Released, error) {
	if done && token.finish.Done == "" {
		return Released{}, fmt.Errorf("%w: done is for locks acquired with once", lease.ErrInvalid)
	}
	l.mu.Lock()
	if h := l.held[token.lease]; h != nil && h.ask.Lock == lock && h.has(token) {
		return l.give(ctx, h, token, done) // unlocks
	}
	end, known := l.ended.get(token)
	l.mu.Unlock()
	switch {
	case known && errors.Is(end.lost, lease.ErrLost):
		return Released{}, lease.ErrLost
	case known && end.lost == nil && !end.asked && !end.released.Unknown:
		return end.released, nil
	case token.handle > 0 && !known:
		return Released{}, ErrElsewhere
	}
	// Not held here: it is another's, or the store is yet to say what became of it.
	c := lease.Candidate{Store: l.cfg.Store, Timing: lease.JobTiming(token.ttl), Clock: l.cfg.Clock}
	held, err := c.Finish(ctx, token.claim(lock), token.ending(done))
	if errors.Is(err, lease.ErrInvalid) {
		return Released{}, err
	}
	end.asked = end.asked || err != nil
	switch {
	case held:
		end = outcome{released: Released{Held: true}}
	case end.released.Held: // as its own clock said when it was first asked for
		end.released.Unknown = err != nil || done // the run may never have been recorded
		err = nil
	case err == nil && end.asked:
		err = lease.ErrUnknown
	case err == nil:
		err = lease.ErrLost
		end = outcome{lost: err}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended.put(token, end)
	return end.released, err
}

// give releases a handle, and with the last one the lease. Locks.mu is held; give unlocks.
func (l *Locks) give(ctx context.Context, h *holding, token Token, done bool) (Released, error) {
	if r := h.release; r != nil { // asked twice at once
		l.mu.Unlock()
		<-r.done
		return r.got, r.err
	}
	held := l.left(h.term) > 0 // decided now: what comes later is not the client's fault
	if n := len(h.handles) - 1; n > 0 {
		l.forget(requestKey{h.ask.Lock, h.ask.Owner, h.handles[token.handle]})
		delete(h.handles, token.handle)
		got := Released{Held: held, Count: n}
		l.ended.put(token, outcome{released: got})
		l.mu.Unlock()
		return got, nil
	}
	r := &releasing{done: make(chan struct{})}
	h.release = r
	l.mu.Unlock()

	released, err := h.term.Finish(ctx, token.ending(done))
	switch {
	case err == nil && !released:
		r.err = lease.ErrLost
	case err == nil:
		r.got = Released{Held: true}
	case held && !lease.IsVerdict(err):
		r.got = Released{Held: true, Unknown: true}
	default:
		r.err = err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	end := outcome{released: r.got}
	if end.asked = r.err != nil && !errors.Is(r.err, lease.ErrLost); !end.asked {
		end.lost = r.err
	}
	l.ended.put(token, end)
	l.drop(h)
	close(r.done)
	return r.got, r.err
}

// Renew prolongs what token stands for: it is renewed for another [Ask.AtMost] from now on.
// [lease.ErrLost] says that it has ended, whatever the store says now: others may hold it.
// Any other error means that the store did not answer; it may still be held. It blocks for
// two retry periods of the lease's timing at most, and less if ctx is done.
//
// Through another process than the one that holds it, it extends the lease once.
func (l *Locks) Renew(ctx context.Context, lock string, token Token) (Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*lease.JobTiming(token.ttl).RetryPeriod)
	defer cancel()
	l.mu.Lock()
	h := l.held[token.lease]
	_, ended := l.ended.get(token)
	switch {
	case h != nil && h.ask.Lock == lock && h.has(token) && h.release == nil:
		return l.prolong(ctx, h, token) // unlocks
	case ended || h != nil && h.ask.Lock == lock:
		l.mu.Unlock()
		return Lease{}, lease.ErrLost
	}
	l.mu.Unlock()
	if token.handle > 0 {
		return Lease{}, ErrElsewhere
	}
	timing := lease.JobTiming(token.ttl)
	stamp := l.cfg.Clock() // before the request is sent
	g := lease.Grant{Claim: token.claim(lock), Slot: token.slot}
	if _, err := l.cfg.Store.Extend(ctx, g, lease.Extension{TTL: token.ttl}); err != nil {
		return Lease{}, err
	}
	v := lease.Validity{Stamp: stamp, For: timing.Belief()}
	_, left := v.At(l.cfg.Clock())
	return Lease{Lock: lock, Slot: token.slot, Slots: token.slots, Token: token, Count: 1, Valid: left}, nil
}

// prolong waits until a renewal that was sent from now on is confirmed. Locks.mu is held;
// prolong unlocks.
func (l *Locks) prolong(ctx context.Context, h *holding, token Token) (Lease, error) {
	defer l.mu.Unlock()
	asked := l.cfg.Clock()
	h.term.Prolong()
	for {
		changed := h.changed
		if v := h.term.Validity(); v.For > 0 && v.Stamp.Since(asked) >= 0 {
			return l.lease(h, token), nil
		}
		l.mu.Unlock()
		var err error
		select {
		case <-h.term.Ended():
			err = lease.ErrLost
		case <-changed:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		l.mu.Lock()
		if err != nil {
			return Lease{}, err
		}
	}
}

// Close ends what is held, and waits for attempts under way, which fail. With a grace above
// 0 clients have that long to release what they hold; what they do not is left to run
// out. Without, they are known to have ended, and it is released. No lock is granted any more.
func (l *Locks) Close(ctx context.Context, grace time.Duration) {
	l.mu.Lock()
	l.close(ErrClosing)
	l.settle()
	l.mu.Unlock()
	if grace > 0 {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-l.idle:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	for _, h := range l.held {
		if h.release != nil {
			continue
		}
		h.release = &releasing{done: make(chan struct{}), err: ErrClosing}
		close(h.release.done)
		l.running.Go(func() {
			h.term.Stop(ErrClosing)
			if grace == 0 {
				_, _ = h.term.Release(ctx) // unknown: it runs out by itself
			}
		})
	}
	l.mu.Unlock()
	l.running.Wait()
}
