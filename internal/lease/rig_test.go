package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

const lock = "city-ids"

var timing = lease.Timing{LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 400 * time.Millisecond}

// rig is a server and a candidate on a link of its own, in a bubble.
type rig struct {
	t      *testing.T
	server *leasetest.Memory
	clock  *leasetest.Clock
	link   *leasetest.Link
	lease.Candidate
}

// bubble runs f in a bubble with a server.
func bubble(t *testing.T, f func(t *testing.T, server *leasetest.Memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, leasetest.NewMemory(leasetest.Config{Lease: timing.LeaseDuration}))
	})
}

func newRig(t *testing.T, server *leasetest.Memory, rate float64) *rig {
	r := &rig{t: t, server: server, clock: leasetest.NewClock(rate), link: leasetest.NewLink(server.NewProcess(""))}
	r.Candidate = lease.Candidate{Store: r.link, Timing: timing, Clock: r.clock.Now}
	t.Cleanup(r.link.Close)
	return r
}

// acquire must be granted within d.
func (r *rig) acquire(d time.Duration) *lease.Term {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), d)
	defer cancel()
	term, err := r.Acquire(ctx, request("a"))
	if err != nil {
		r.t.Fatalf("acquire: %v", err)
	}
	r.t.Cleanup(func() { term.Stop(nil) })
	return term
}

func request(name string) lease.Request {
	return lease.Request{Claim: lease.Claim{Lock: lock}, Holder: lease.Identity{Name: name}}
}

func (r *rig) belief(term *lease.Term) lease.Belief {
	b, _ := term.Validity().At(r.clock.Now())
	return b
}

// left is what the server says is left of the lease; < 0 if there is none.
func left(server *leasetest.Memory) time.Duration {
	l, ok := server.State(lock).Leases["lk"]
	if !ok || l.KeptFor != "" {
		return -1
	}
	return l.Left
}

// nth gives the n-th call of op a fate, and all others none.
func nth(op string, n int, fate leasetest.Fate) func(leasetest.Call) leasetest.Fate {
	return func(c leasetest.Call) leasetest.Fate {
		if c.Op == op && c.N == n {
			return fate
		}
		return leasetest.Fate{}
	}
}

// until sleeps until the term has ended, and returns how long that took.
func until(t *testing.T, term *lease.Term, limit time.Duration) time.Duration {
	t.Helper()
	from := time.Now()
	select {
	case <-term.Ended():
	case <-time.After(limit):
		t.Fatalf("the term lasts after %v", limit)
	}
	return time.Since(from)
}
