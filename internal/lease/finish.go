package lease

import (
	"context"
	"fmt"
	"time"
)

// A Finish says what else becomes of a lock when its lease is given up. The zero Finish is
// a plain release.
type Finish struct {
	// AtLeast keeps everybody from the slot until that long after the grant, by the
	// store's clock: a short job then does not run again on a machine whose clock is late.
	AtLeast time.Duration
	// Done, if not "", names a run that is recorded as done: no spaces in it.
	Done string
	// Keep is how long the record is kept, > 0 with Done.
	Keep time.Duration
}

// A Run is a job that was recorded as done.
type Run struct {
	Name  string
	By    string // the holder's name
	Fence uint64
	At    time.Time     // by the store's clock
	Took  time.Duration // from the grant
}

// A Finisher is a Store that can do more at the end of a lease.
type Finisher interface {
	// Finish is [Store.Release], and does what f says in the same step: if the token
	// still held a slot, and not otherwise.
	Finish(ctx context.Context, c Claim, f Finish) (bool, error)
	// Done returns the record of a run; nil without an error if there is none. It
	// blocks and fails as the methods of a Store do.
	Done(ctx context.Context, lock, run string) (*Run, error)
}

// finish asks the store for no more than f needs.
func finish(ctx context.Context, s Store, c Claim, f Finish) (bool, error) {
	if f == (Finish{}) {
		return s.Release(ctx, c)
	}
	finisher, ok := s.(Finisher)
	if !ok {
		return false, fmt.Errorf("%w: this store does nothing more at the end of a lease than to release it", ErrInvalid)
	}
	return finisher.Finish(ctx, c, f)
}
