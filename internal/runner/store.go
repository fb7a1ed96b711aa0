package runner

import (
	"context"

	"github.com/soloist-dev/soloist/internal/joblock"
)

// Acquire gets a lock straight from a store. It blocks and fails as [joblock.Locks.Acquire]
// does.
func Acquire(ctx context.Context, locks *joblock.Locks, a joblock.Ask) (*Held, error) {
	got, err := locks.Acquire(ctx, a)
	if err != nil {
		return nil, err
	}
	if a.Lease == 0 {
		a.Lease = joblock.DefaultLease
	}
	return &Held{
		Lock: got.Lock, Fence: got.Fence, Token: got.Token.Reveal(), Lease: a.Lease, Lost: got.Ended(), Why: got.Err,
		Release: func(ctx context.Context, done bool) (bool, error) {
			out, err := locks.Release(ctx, got.Lock, got.Token, done && a.Once != "")
			return out.Held, notLost(err)
		},
	}, nil
}
