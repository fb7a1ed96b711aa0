package elector

import (
	"context"
	"errors"
	"time"
)

// ErrNotLeading says that there is no term to end, or not the one meant.
var ErrNotLeading = errors.New("elector: not leading")

// Resignation asks for the end of the term.
type Resignation struct {
	// Done: the app has finished, so the lease is given up now, not only when the last
	// validity handed out has run out.
	Done bool
	// HoldOff is how long not to campaign. 0: until another has led, at most a lease.
	HoldOff time.Duration
	// Fence, if not 0, is that of the term meant: a late retry can't end the next one.
	Fence uint64
}

type resignation struct {
	Resignation
	answer chan error // with room for one
}

func (r resignation) judge(fence uint64) error {
	if r.Fence != 0 && r.Fence != fence {
		return ErrNotLeading
	}
	return nil
}

// Resign ends the term. When it returns nil, this candidate no longer says that it
// leads; the lease may be kept for a while: see [Resignation]. It returns ErrNotLeading
// at once where there is nothing to end, and blocks at most until ctx is done.
func (e *Elector) Resign(ctx context.Context, r Resignation) error {
	sub := e.Subscribe()
	defer sub.Close()
	req := resignation{r, make(chan error, 1)}
	for {
		s := e.State()
		if s.Phase != Leader && s.Reason != Unverified && (!s.HandingOver || !r.Done) {
			return ErrNotLeading
		}
		select {
		case e.resigns <- req:
			return <-req.answer
		case <-sub.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
