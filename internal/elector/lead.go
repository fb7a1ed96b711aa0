package elector

import (
	"context"
	"errors"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// lead publishes a term until it ends, and sees to its lease. It returns what keeps
// this candidate from campaigning again.
func (e *Elector) lead(ctx context.Context, term *lease.Term) holdOff {
	g := term.Grant()
	e.take(term)

	stopping, ending := ctx.Done(), (<-chan struct{})(e.drained)
	var drained <-chan time.Time
	tick := time.NewTicker(e.cfg.Timing.RetryPeriod) // only to say that the loop runs
	defer tick.Stop()
	for {
		e.loop.beat(e.cfg.Timing.RetryPeriod)
		reason, changed := e.cfg.Gate.Check()
		if reason != "" && drained == nil && !e.over(term) {
			e.endEarly(ctx, term, reason)
			return holdOff{}
		}
		select {
		case <-tick.C:
		case <-changed:
		case <-term.Renewed():
			e.renewed(term)
		case <-e.jumps:
			e.unverified()
		case <-term.Ended():
			e.ended(term)
			return holdOff{}
		case r := <-e.resigns:
			err := r.judge(g.Fence)
			if e.over(term) {
				err = ErrNotLeading
			}
			if err != nil {
				r.answer <- err
				continue
			}
			h := holdOff{on: true, fence: g.Fence, asked: r.HoldOff}
			if r.Done {
				e.follow(Resigned)
				r.answer <- nil
				e.release(ctx, term)
				return h
			}
			if drained != nil { // the stop goes on: nothing more to wait for but the validity
				h.on = false
			}
			e.endEarly(ctx, term, Resigned, r.answer)
			return h
		case <-stopping:
			if e.over(term) {
				stopping = nil
				continue
			}
			if e.cfg.DrainTimeout == 0 {
				e.follow(Stopped)
				e.release(ctx, term)
				return holdOff{}
			}
			stopping = nil
			drained = e.drainOver()
			s := *e.State()
			s.Draining = true
			e.publish(s, "drain_timeout", e.cfg.DrainTimeout)
		case <-ending:
			ending = nil
			s := *e.State()
			s.Draining = true
			e.publish(s)
		case <-drained:
			if e.over(term) {
				drained = nil
				continue
			}
			e.abandon(term)
			return holdOff{}
		}
	}
}

// over reports whether the term's time is up, and has the term say so at once. After a
// freeze of the process all that has happened is seen in one moment, in any order: what
// ended the term is then what came first, its time.
func (e *Elector) over(term *lease.Term) bool {
	if belief, _ := term.Validity().At(e.cfg.Clock()); belief != lease.Over {
		return false
	}
	term.Verify()
	return true
}

// take publishes the term's beginning.
func (e *Elector) take(term *lease.Term) {
	g := term.Grant()
	s := *e.State()
	waited := time.Since(s.Since)
	s.Phase, s.Reason, s.Holder, s.Since = Leader, Acquired, s.Name, time.Now()
	switch {
	case g.Reclaimed:
		s.Reason = Reclaimed
	case g.FromDead:
		s.Reason = Failover
	}
	if e.cfg.OnGrant != nil {
		e.cfg.OnGrant(g.Fence)
	}
	s.Fence, s.Slot, s.Validity, s.Waiting, s.Rank = g.Fence, g.Slot, term.Validity(), term.Waiting(), -1
	s.StoreError = ""
	e.failing = false
	e.lastError.Store("")
	e.publish(s, "slot", g.Slot, "after", waited)
}

// renewed publishes the term's new validity. What has once been read as ended stays so.
func (e *Elector) renewed(term *lease.Term) {
	v := term.Validity()
	switch belief, _ := e.State().Validity.At(e.cfg.Clock()); {
	case belief == lease.Over || v == (lease.Validity{}):
		term.Stop(lease.ErrExpired)
		return
	case belief == lease.Unverified:
		e.unverified() // somebody may have read so: it is said before it is taken back
	}
	s := *e.State()
	e.stats.count(func(s *Stats) { s.Renewals++ })
	e.log.Debug("renewed", "fence", s.Fence, "waiting", term.Waiting())
	if s.Phase != Leader {
		s.Phase, s.Reason, s.Holder = Leader, Verified, s.Name
	}
	s.Validity, s.Waiting = v, term.Waiting()
	e.publish(s)
}

// unverified publishes that the belief needs a renewal, unless one has come already.
func (e *Elector) unverified() {
	s := *e.State()
	if belief, _ := s.Validity.At(e.cfg.Clock()); belief != lease.Unverified {
		return
	}
	s.Phase, s.Reason, s.Holder = Unknown, Unverified, ""
	e.publish(s) // no change if it was said already
}

// ended publishes the end of a term that nobody meant to end.
func (e *Elector) ended(term *lease.Term) {
	reason := Expired
	if errors.Is(term.Err(), lease.ErrLost) {
		reason = Lost
	}
	was, end := *e.State(), time.Now()
	stale := e.cfg.Clock().Since(was.Validity.Stamp)
	if reason == Expired {
		end = end.Add(was.Validity.For - stale)
	}
	e.followSince(end, reason, "held_for", end.Sub(was.Since), "since_renewal", stale, "last_error", e.lastError.Load())
	term.Stop(nil) // waits for a renewal under way
	e.lost(reason)
}

func (e *Elector) lost(reason Reason) {
	if e.cfg.OnLost != nil {
		e.cfg.OnLost(reason)
	}
}

// endEarly ends the term for the app at once and answers who asked for it; then it
// keeps the lease until the last validity handed out has run out, or the app is done.
func (e *Elector) endEarly(ctx context.Context, term *lease.Term, reason Reason, answers ...chan<- error) {
	was := *e.State()
	s := was
	s.Phase, s.Reason, s.Validity, s.HandingOver, s.Draining = Standby, reason, lease.Validity{}, true, false
	s.Holder, s.Since = "", time.Now()
	e.publish(s, "held_for", s.Since.Sub(was.Since))
	for _, a := range answers {
		a <- nil
	}
	term.Stop(nil)
	if reason != Resigned {
		e.lost(reason)
	}
	e.lease.rest()
	if !e.outlast(ctx, was.Validity, was.Fence) {
		e.abandon(term)
		return
	}
	e.follow(reason)
	e.release(ctx, term)
}

// drainOver returns a channel that receives when a planned stop has waited long enough for
// the app.
func (e *Elector) drainOver() <-chan time.Time {
	if e.drainEnd.IsZero() {
		e.drainEnd = time.Now().Add(e.cfg.DrainTimeout)
	}
	return time.After(time.Until(e.drainEnd))
}

// abandon ends the term and leaves its lease to run out: the app may still be at work,
// and the lease outlives all that it was told.
func (e *Elector) abandon(term *lease.Term) {
	e.follow(DrainOver)
	term.Stop(nil)
	e.lease.rest()
}

// outlast waits until v is over or the app has said that it is done, and reports so. A
// planned stop cuts it short: at once where it means that the app has ended, else when
// the time to drain is over, and then the lease must be left alone.
func (e *Elector) outlast(ctx context.Context, v lease.Validity, fence uint64) bool {
	stopping := ctx.Done()
	var drained <-chan time.Time
	for {
		belief, left := v.At(e.cfg.Clock())
		if belief == lease.Over {
			return true
		}
		nap := min(left, time.Second) // timers stand still in a suspend; the clock does not
		e.loop.beat(nap)
		select {
		case <-time.After(nap):
		case <-stopping:
			if e.cfg.DrainTimeout == 0 {
				return true
			}
			stopping, drained = nil, e.drainOver()
		case <-drained:
			return false
		case r := <-e.resigns:
			err := r.judge(fence)
			r.answer <- err
			if r.Done && err == nil {
				return true
			}
		}
	}
}

// release gives the lease up. Nothing depends on the answer: it runs out by itself.
func (e *Elector) release(ctx context.Context, term *lease.Term) {
	e.loop.beat(3 * e.cfg.Timing.RetryPeriod)
	e.lease.rest()
	released, err := term.Release(ctx)
	if err != nil {
		e.log.Warn("no answer to the release: the lease runs out by itself", "error", err)
		return
	}
	e.log.Debug("released", "held", released)
}
