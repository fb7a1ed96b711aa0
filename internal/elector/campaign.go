package elector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// errGate is the cause with which a campaign ends when the app may no longer lead, or the
// pod is about to end.
var errGate = errors.New("elector: the app may not lead")

// campaign stands in line until it is granted the lease, ctx is done, or the app may no
// longer lead.
func (e *Elector) campaign(ctx context.Context) (*lease.Term, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watcher sync.WaitGroup
	defer watcher.Wait()
	defer cancel(nil)
	watcher.Go(func() {
		for {
			reason, changed := e.cfg.Gate.Check()
			if reason != "" {
				cancel(errGate)
				return
			}
			select {
			case <-changed:
			case <-e.drained:
				cancel(errGate)
				return
			case <-ctx.Done():
				return
			}
		}
	})
	e.loop.rest() // the candidate's loop is the one that runs
	return e.candidate.Acquire(ctx, lease.Request{
		Claim:     lease.Claim{Lock: e.cfg.Lock, Slots: e.cfg.Slots},
		Holder:    e.cfg.Identity,
		FenceHint: e.State().Fence,
		Reclaim:   e.reclaim,
	})
}

// pauseAfter judges why a campaign brought no term. Only what can't be right pauses.
func (e *Elector) pauseAfter(ctx context.Context, err error) {
	if ctx.Err() != nil || errors.Is(err, errGate) {
		return
	}
	if e.State().Reason != Refused {
		e.follow(Refused, "error", err)
	}
	e.pause(ctx, e.cfg.Timing.RetryPeriod, nil)
}

// refused takes in an answer that is no grant, or the lack of one. Acquire calls it, in
// Run's goroutine.
func (e *Elector) refused(err error) {
	var held *lease.HeldError
	if !errors.As(err, &held) {
		e.unanswered(err)
		return
	}
	e.reclaim = false // the holder is alive, or not our predecessor
	if e.failing {
		e.failing = false
		e.log.Info("the store answers again")
	}
	s := *e.State()
	s.StoreError = ""
	s.Rank, s.Waiting = held.Rank, held.Waiting
	s.Fence = max(s.Fence, held.Fence)
	if held.Left < 0 {
		e.log.Error("the lock's key never expires: nobody can take over",
			"do", "find out who wrote it; then delete it")
	}
	e.known = time.Now().Add(max(held.Left, 0))
	if held.Holder.Name != "" || s.Phase == Unknown {
		if s.Holder != held.Holder.Name || s.Phase == Unknown {
			s.Since = time.Now()
		}
		s.Holder = held.Holder.Name
		if !held.Holder.Since.IsZero() {
			s.Since = held.Holder.Since
		}
		s.Phase, s.Reason = Standby, HeldByPeer
	}
	e.publish(s)
}

// unanswered takes in a failure. It is logged once until the store answers again.
func (e *Elector) unanswered(err error) {
	s := *e.State()
	s.StoreError = err.Error()
	if !e.failing {
		e.failing = true
		e.log.Warn("no answer from the store; going on trying", "error", err)
	}
	if s.Phase == Standby && s.Reason == HeldByPeer && time.Now().After(e.known) {
		s.Phase, s.Reason, s.Holder, s.Since = Unknown, Unanswered, "", time.Now()
	}
	e.publish(s)
}

// holdOff keeps a candidate that resigned from taking the lock back.
type holdOff struct {
	on    bool
	fence uint64        // of its term
	asked time.Duration // > 0: for so long, whoever leads
}

// wait waits until another has led, for at most a lease; or for as long as was asked.
func (h holdOff) wait(ctx context.Context, e *Elector) {
	if !h.on {
		return
	}
	limit, step := h.asked, h.asked
	if h.asked == 0 {
		limit = e.cfg.Timing.LeaseDuration
		step = min(limit/15, time.Second)
	}
	for end := time.Now().Add(limit); time.Now().Before(end); {
		if !e.pause(ctx, min(step, time.Until(end)), nil) {
			return
		}
		if h.asked == 0 && e.another(ctx, h.fence) {
			return
		}
	}
}

// another reports whether somebody has led since the term with this fence.
func (e *Elector) another(ctx context.Context, fence uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timing.RetryPeriod)
	defer cancel()
	info, err := e.cfg.Store.Inspect(ctx, e.cfg.Lock)
	if err != nil || info.Fence <= fence {
		return false
	}
	s := *e.State()
	s.Fence = info.Fence
	if len(info.Holders) > 0 {
		s.Holder, s.Since, s.Reason = info.Holders[0].Name, info.Holders[0].Since, HeldByPeer
		e.known = time.Now().Add(info.Holders[0].Left)
	}
	e.publish(s)
	return true
}

func (e *Elector) renewFailed(err error) {
	e.stats.count(func(s *Stats) { s.Unanswered++ })
	e.log.Debug("renewal without an answer", "error", err)
	e.lastError.Store(fmt.Sprint(err))
}

func (e *Elector) clockJump(ahead time.Duration) {
	e.stats.count(func(s *Stats) { s.ClockJumps++ })
	e.log.Warn("the wall clock ran ahead of elapsed time: not leading until a renewal confirms it", "ahead", ahead)
	select {
	case e.jumps <- struct{}{}:
	default:
	}
}

func (e *Elector) storeJump(missing time.Duration) {
	e.stats.count(func(s *Stats) { s.StoreJumps++ })
	e.log.Warn("the lease had less left than it should have: the store's clock jumped, or somebody shortened it",
		"missing", missing)
}
