package systems

import (
	"context"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/redislease"
)

// Soloist is what a sidecar does: a candidate on a store of its own.
func Soloist() System {
	return System{
		Name:         "soloist",
		Dial:         dialSoloist,
		Key:          func(lock string) string { return "soloist:{" + lock + "}:lk" },
		PairCommands: []string{"evalsha"},
		Waits:        true,
	}
}

// SoloistStore is the store alone: no renewals, no belief, as the peers without
// renewals do it.
func SoloistStore() System {
	s := Soloist()
	s.Name, s.Waits = "soloist, store alone", false
	s.Dial = func(ctx context.Context, addr string, d time.Duration) (Client, error) {
		c, err := dialSoloist(ctx, addr, d)
		if err != nil {
			return nil, err
		}
		return storeClient{c.(*soloistClient)}, nil
	}
	return s
}

// identity is a pod's, so that what is sent is as long as in a cluster.
var identity = lease.Identity{
	Name:    "city-ids-7c9fd6b5c8-x2vlp",
	PodUID:  "0b0f9b43-3b1c-4f0e-9d2b-0d5b8c1f2a77",
	Address: "127.0.0.1:4040",
}

func dialSoloist(_ context.Context, addr string, d time.Duration) (Client, error) {
	timing := lease.Timing{LeaseDuration: d, RenewDeadline: 2 * d / 3, RetryPeriod: d * 2 / 15}
	store, err := redislease.Open(redislease.Options{
		URL:            "redis://" + addr,
		Lease:          d,
		DelayedRestart: redislease.DelayOff, // the servers of a benchmark are always young
	})
	if err != nil {
		return nil, err
	}
	return &soloistClient{store, lease.Candidate{Store: store, Timing: timing}}, nil
}

type soloistClient struct {
	store     *redislease.Store
	candidate lease.Candidate
}

func (c *soloistClient) Hold(ctx context.Context, lock string) (Held, error) {
	term, err := c.candidate.Acquire(ctx, lease.Request{Claim: lease.Claim{Lock: lock}, Holder: identity})
	if err != nil {
		return nil, err
	}
	return releaseFunc(func(ctx context.Context) error {
		held, err := term.Release(ctx)
		if err == nil && !held {
			return lease.ErrLost
		}
		return err
	}), nil
}

func (c *soloistClient) Pair(ctx context.Context, lock string) error {
	held, err := c.Hold(ctx, lock)
	if err != nil {
		return err
	}
	return held.Release(ctx)
}

func (c *soloistClient) Close() { c.store.Close() }

type storeClient struct{ *soloistClient }

func (c storeClient) Pair(ctx context.Context, lock string) error {
	g, err := c.store.Acquire(ctx, lease.Request{
		Claim:  lease.Claim{Lock: lock, Token: lease.NewToken()},
		Holder: identity,
		TTL:    c.candidate.Timing.LeaseDuration,
	})
	if err != nil {
		return err
	}
	_, err = c.store.Release(ctx, g.Claim)
	return err
}
