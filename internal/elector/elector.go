package elector

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// A Gate says whether the app may lead.
type Gate interface {
	// Check returns why the app may not lead now ("" if it may), and a channel that is
	// closed when that changes. It does not block and is safe for concurrent use.
	Check() (Reason, <-chan struct{})
}

// Config says what to campaign for, and how. Lock, Identity.Name, Store and a valid
// Timing are required.
type Config struct {
	Lock     string
	Slots    int // 0: a plain lock
	Identity lease.Identity
	Store    lease.Store
	Timing   lease.Timing
	Clock    lease.Clock // nil: lease.SystemClock
	Gate     Gate        // nil: always open
	// Reclaim: this process has bound Identity.Address, so whoever holds the lease under
	// the same pod and address is its dead predecessor.
	Reclaim bool
	// Failure is asked by the first in line whether the leader is dead; nil: nobody is.
	Failure lease.FailureDetector
	// OnGrant is called with the fence of each term before anybody is told that it has
	// begun. It must be quick. nil: nothing.
	OnGrant func(fence uint64)
	// DrainTimeout is how long a planned stop waits for the app to say that it is done.
	// 0: the app is known to have ended.
	DrainTimeout time.Duration
	// OnLost is called, once the state says so, when a term ended that nobody meant to
	// end: lost, expired, or the app unhealthy or silent. It must not block, unless nothing is to
	// follow: the elector goes on when it returns. nil: nothing.
	OnLost func(Reason)
	Log    *slog.Logger // nil: discard
}

// Elector runs one election. Its methods are safe for concurrent use.
type Elector struct {
	cfg       Config
	candidate lease.Candidate
	log       *slog.Logger

	state atomic.Pointer[State] // written by publish alone, in Run's goroutine
	subs  subscribers
	term  atomic.Pointer[lease.Term] // nil unless leading

	resigns chan resignation // received while leading or handing over
	drained chan struct{}    // closed by Drain
	drain   func()           // closes drained, once
	jumps   chan struct{}    // a mailbox of one: the term's belief is unverified

	// Run's own.
	reclaim   bool         // nothing has been heard yet that speaks against it
	drainEnd  time.Time    // of a planned stop under way; zero: none
	known     time.Time    // when the lease of State.Holder will have run out
	failing   bool         // the store does not answer; logged once
	lastError atomic.Value // string: the last renewal that brought no answer, in this term
	stats     stats
	loop      watch // Run's own waits
	lease     watch // the candidate's and the term's
}

// New judges c and returns an Elector that has yet to Run. Its version starts at the
// time in microseconds, so that it rises over a restart.
func New(c Config) (*Elector, error) {
	if c.Lock == "" || c.Identity.Name == "" || c.Store == nil {
		return nil, errors.New("elector: Lock, Identity.Name and Store are required")
	}
	if err := c.Timing.Validate(); err != nil {
		return nil, err
	}
	if c.Clock == nil {
		c.Clock = lease.SystemClock
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Gate == nil {
		c.Gate = openGate{}
	}
	e := &Elector{
		cfg: c, log: c.Log.With("lock", c.Lock),
		reclaim: c.Reclaim,
		resigns: make(chan resignation), jumps: make(chan struct{}, 1),
		drained: make(chan struct{}),
	}
	e.drain = sync.OnceFunc(func() { close(e.drained) })
	e.lastError.Store("")
	e.candidate = lease.Candidate{Store: c.Store, Timing: c.Timing, Clock: c.Clock, Failure: c.Failure, Trace: lease.Trace{
		Refused:     e.refused,
		RenewFailed: e.renewFailed,
		ClockJump:   e.clockJump,
		StoreJump:   e.storeJump,
		Beat:        e.lease.beat,
	}}
	now := time.Now()
	e.state.Store(&State{
		Lock: c.Lock, Slots: c.Slots, Name: c.Identity.Name, Phase: Unknown, Reason: Starting,
		Since: now, Rank: -1, Version: now.UnixMicro(),
	})
	return e, nil
}

type openGate struct{}

func (openGate) Check() (Reason, <-chan struct{}) { return "", nil }

// Lock returns the name of the lock.
func (e *Elector) Lock() string { return e.cfg.Lock }

// Timing returns the timing it campaigns with.
func (e *Elector) Timing() lease.Timing { return e.cfg.Timing }

// State returns the newest snapshot. It does not block.
func (e *Elector) State() *State { return e.state.Load() }

// View returns the newest snapshot judged now. It does not block. One that finds the
// belief unverified has it renewed at once.
func (e *Elector) View() View { return e.Judge(e.State()) }

// Judge judges s, a state of this elector, now.
func (e *Elector) Judge(s *State) View {
	v := s.At(e.cfg.Clock())
	if v.Phase == Unknown && s.Phase == Leader {
		if t := e.term.Load(); t != nil {
			t.Verify()
		}
	}
	return v
}

// Subscribe returns a subscription whose first state is the present one. The caller
// owes it a Close.
func (e *Elector) Subscribe() *Subscription { return e.subs.add(e.State) }

// publish makes s the state. If what it says differs from what its predecessor says
// now, it is a transition: the version rises and one line is logged.
func (e *Elector) publish(s State, attrs ...any) {
	old := e.state.Load()
	s.Version = old.Version
	changed := s.Phase != old.Phase || s.Reason != old.Reason || s.Holder != old.Holder ||
		s.Draining != old.Draining || s.HandingOver != old.HandingOver ||
		(s.Phase == Leader && s.Fence != old.Fence)
	if changed {
		s.Version++
	}
	e.state.Store(&s)
	e.subs.send(&s)
	if !changed {
		return
	}
	e.stats.transition(s.Reason)
	e.log.Info("transition", append([]any{
		"phase", string(s.Phase), "reason", string(s.Reason), "holder", s.Holder, "fence", s.Fence, "version", s.Version,
		"waiting", s.Waiting,
	}, attrs...)...)
}

// follow publishes that this candidate does not lead, for reason.
func (e *Elector) follow(reason Reason, attrs ...any) { e.followSince(time.Now(), reason, attrs...) }

func (e *Elector) followSince(since time.Time, reason Reason, attrs ...any) {
	s := *e.State()
	if s.Phase == Leader || s.Phase == Unknown {
		s.Since = since
		if s.Holder == s.Name {
			s.Holder = ""
		}
	}
	s.Phase, s.Reason, s.Validity, s.Rank = Standby, reason, lease.Validity{}, -1
	s.Draining, s.HandingOver = false, false
	e.publish(s, attrs...)
}

// Run campaigns and leads until ctx is done, then stops as planned: it lets the app
// drain, ends the belief, and releases the lease. It returns within DrainTimeout plus
// two retry periods after that. Call it once.
func (e *Elector) Run(ctx context.Context) {
	defer e.loop.rest()
	defer e.lease.rest()
	for ctx.Err() == nil {
		if e.draining() {
			// What ended the term is worth more than that the pod ends.
			if r := e.State().Reason; r != Lost && r != Expired {
				e.follow(Ending)
			}
			<-ctx.Done()
			break
		}
		if !e.awaitGate(ctx) {
			break
		}
		if e.draining() {
			continue
		}
		term, err := e.campaign(ctx)
		e.lease.rest()
		if err != nil {
			e.pauseAfter(ctx, err)
			continue
		}
		e.reclaim = false
		e.term.Store(term)
		holdOff := e.lead(ctx, term)
		e.term.Store(nil)
		e.lease.rest()
		holdOff.wait(ctx, e)
	}
	if s := e.State(); s.Reason != DrainOver {
		e.follow(Stopped)
	}
}

// Drain says that this pod is about to end: it leads on if it leads, so that the app can
// finish, and campaigns no more. It does not block and may be called again.
func (e *Elector) Drain() { e.drain() }

func (e *Elector) draining() bool {
	select {
	case <-e.drained:
		return true
	default:
		return false
	}
}

// awaitGate waits until the app may lead, and reports whether ctx still allows it.
func (e *Elector) awaitGate(ctx context.Context) bool {
	for {
		reason, changed := e.cfg.Gate.Check()
		if reason == "" {
			return true
		}
		if e.State().Reason != reason {
			e.follow(reason)
		}
		if !e.pause(ctx, e.cfg.Timing.RetryPeriod, changed) {
			return false
		}
		if e.draining() {
			return true
		}
	}
}

// pause waits for d, or until early is closed, and reports whether ctx lasts.
func (e *Elector) pause(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	e.loop.beat(d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-early:
	case <-ctx.Done():
		return false
	}
	return true
}
