package joblock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// entry is how one owner comes into a lock: the first attempt, and then the lease that came
// of it, which its other attempts share.
type entry struct {
	holding *holding      // nil: under way
	decided chan struct{} // closed when the attempt has ended
}

// Acquire asks for a lock, and waits in line for it for at most a.Wait; then for as long as
// the store may take to answer (three retry periods of the lease's timing). When ctx is done
// it leaves the line, releases what it may have been granted, and returns ctx's cause.
//
// Its errors are *[DoneError], a *[lease.HeldError], [lease.ErrKind], [lease.ErrInvalid]
// (the ask, or the store, can't be right), [ErrTooMany], [ErrClosing], [ErrReleased]; any
// other means that the store did not answer: nothing is held, but others may be kept out
// for up to a lease.
func (l *Locks) Acquire(ctx context.Context, a Ask) (Lease, error) {
	a, err := a.withDefaults()
	if err == nil {
		_, finisher := l.cfg.Store.(lease.Finisher)
		if !finisher && (a.Once != "" || a.AtLeast > 0) {
			err = fmt.Errorf("%w: this store knows neither once nor at_least_for", lease.ErrInvalid)
		}
	}
	var got Lease
	if err == nil {
		got, err = l.shared(ctx, a)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.asked(err)
	return got, err
}

// enter shares the lease of an owner that has one already, or competes for one.
func (l *Locks) enter(ctx context.Context, a Ask) (Lease, error) {
	if !a.Reenter {
		return l.compete(ctx, a, nil)
	}
	key := ownerKey{a.Lock, a.Owner}
	// However short the wait: what is under way here is decided within a retry period or two.
	busy := &lease.HeldError{Held: lease.Held{Rank: -1, LookAgain: time.Second}}
	waited, cancel := context.WithTimeoutCause(ctx, max(a.Wait, 2*lease.JobTiming(a.Lease).RetryPeriod), busy)
	defer cancel()
	for {
		l.mu.Lock()
		e := l.owners[key]
		switch {
		case e == nil:
			e = &entry{decided: make(chan struct{})}
			l.owners[key] = e
			l.mu.Unlock()
			return l.first(ctx, a, key, e)
		case e.holding != nil && e.holding.release == nil && l.left(e.holding.term) > 0:
			e.holding.term.Prolong()
			got := l.lease(e.holding, e.holding.handle(a))
			l.mu.Unlock()
			return got, nil
		}
		over := e.decided
		if e.holding != nil {
			over = e.holding.changed // which is closed at its end, too
		}
		l.mu.Unlock()
		select {
		case <-over:
		case <-waited.Done():
			return Lease{}, context.Cause(waited)
		}
	}
}

// first competes for an owner that others may be waiting to be.
func (l *Locks) first(ctx context.Context, a Ask, key ownerKey, e *entry) (Lease, error) {
	got, err := l.compete(ctx, a, e)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && l.owners[key] == e {
		delete(l.owners, key)
	}
	close(e.decided)
	return got, err
}

// compete asks the store.
func (l *Locks) compete(ctx context.Context, a Ask, e *entry) (Lease, error) {
	if err := l.admit(); err != nil {
		return Lease{}, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(l.life, func() { stop(ErrClosing) })()
	term, err := l.obtain(ctx, a)
	if err == nil && ctx.Err() != nil { // nobody is there to take it
		_, _ = term.Release(ctx) // unknown: it runs out by itself
		err = context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.settle()
	l.asking--
	if err != nil {
		return Lease{}, err
	}
	h := l.hold(a, term)
	if e != nil {
		e.holding = h
	}
	token := h.handle(a)
	got := l.lease(h, token)
	l.log.Debug("job lock acquired", "lock", a.Lock, "owner", a.Owner, "slot", term.Grant().Slot, "fence", term.Grant().Fence)
	return got, nil
}

// admit counts an attempt in, or says why there can be no more.
func (l *Locks) admit() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.Err() != nil {
		return ErrClosing
	}
	if len(l.held)+l.asking >= l.cfg.Limit {
		return ErrTooMany
	}
	l.asking++
	return nil
}

// obtain gets a term, unless the run that it is for was done before.
func (l *Locks) obtain(ctx context.Context, a Ask) (*lease.Term, error) {
	if err := l.undone(ctx, a); err != nil {
		return nil, err
	}
	term, err := l.obtainTerm(ctx, a)
	if err != nil {
		return nil, err
	}
	// It may have been done while we waited. From here on nobody else can do it.
	if err := l.undone(ctx, a); err != nil {
		_, _ = term.Release(ctx) // unknown: it runs out by itself
		return nil, err
	}
	return term, nil
}

// undone returns a *DoneError for a run that was done.
func (l *Locks) undone(ctx context.Context, a Ask) error {
	if a.Once == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lease.JobTiming(a.Lease).RetryPeriod)
	defer cancel()
	run, err := l.cfg.Store.(lease.Finisher).Done(ctx, a.Lock, a.Once) // Acquire has seen that it is one
	if err == nil && run != nil {
		err = &DoneError{*run}
	}
	return err
}

// errWaited ends an attempt whose time in line is over.
var errWaited = errors.New("joblock: waited for as long as was asked for")

func (l *Locks) obtainTerm(ctx context.Context, a Ask) (*lease.Term, error) {
	attempt, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var last error // why it was not granted
	c := &lease.Candidate{
		Store: l.cfg.Store, Timing: lease.JobTiming(a.Lease), Clock: l.cfg.Clock, AtMost: max(0, a.AtMost),
		Trace: lease.Trace{
			Refused: func(err error) { // from the attempt's own goroutine
				last = err
				if err := permanent(err); err != nil {
					stop(err)
				}
			},
			RenewFailed: func(err error) {
				l.log.Warn("job lock not renewed", "lock", a.Lock, "owner", a.Owner, "error", err)
			},
		},
	}
	r := a.request(l.cfg.Identity)
	if a.Wait == 0 {
		return c.Try(attempt, r)
	}
	attempt, cancel := context.WithTimeoutCause(attempt, a.Wait, errWaited)
	defer cancel()
	term, err := c.Acquire(attempt, r)
	if errors.Is(err, errWaited) && last != nil {
		err = last
	}
	return term, err
}
