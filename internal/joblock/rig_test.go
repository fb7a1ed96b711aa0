package joblock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

const lock = "stock"

// rig is a server, in a bubble.
type rig struct {
	*testing.T
	server *leasetest.Memory
}

// site is one sidecar: a link to the server, and what keeps its locks.
type site struct {
	*Locks
	rig  *rig
	link *leasetest.Link
}

// bubble runs f with a server.
func bubble(t *testing.T, f func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(&rig{t, leasetest.NewMemory(leasetest.Config{Lease: DefaultLease})})
	})
}

// site returns another sidecar. It is closed with the test.
func (r *rig) site(name string) *site {
	s := &site{rig: r, link: leasetest.NewLink(r.server.NewProcess(""))}
	s.Locks = New(Config{
		Store:    s.link,
		Identity: lease.Identity{Name: name, PodUID: "uid-" + name, Address: "127.0.0.1:4040"},
		Clock:    leasetest.NewClock(1).Now,
	})
	r.Cleanup(func() {
		s.link.SetDown(false)
		s.Close(context.Background(), 0)
		s.link.Close()
	})
	return s
}

func (s *site) acquire(a Ask) Lease {
	s.rig.Helper()
	got, err := s.ask(a)
	if err != nil {
		s.rig.Fatalf("Acquire %+v: %v", a, err)
	}
	return got
}

func (s *site) ask(a Ask) (Lease, error) {
	if a.Lock == "" {
		a.Lock = lock
	}
	return s.Acquire(s.rig.Context(), a)
}

func (s *site) refused(a Ask, want error) {
	s.rig.Helper()
	if got, err := s.ask(a); !errors.Is(err, want) {
		s.rig.Errorf("Acquire %+v: %+v, %v; want %v", a, got, err, want)
	}
}

func (s *site) release(token Token, want Released) {
	s.rig.Helper()
	if got, err := s.Release(s.rig.Context(), lock, token, false); err != nil || got != want {
		s.rig.Errorf("Release: %+v, %v; want %+v", got, err, want)
	}
}

func (s *site) lost(token Token) {
	s.rig.Helper()
	if got, err := s.Release(s.rig.Context(), lock, token, false); !errors.Is(err, lease.ErrLost) {
		s.rig.Errorf("Release: %+v, %v; want ErrLost", got, err)
	}
}

// mute loses every answer to op, after it was done.
func mute(op string) func(leasetest.Call) leasetest.Fate {
	return func(c leasetest.Call) leasetest.Fate { return leasetest.Fate{Mute: c.Op == op} }
}

// lose loses op on its way.
func lose(op string) func(leasetest.Call) leasetest.Fate {
	return func(c leasetest.Call) leasetest.Fate { return leasetest.Fate{Lost: c.Op == op} }
}

func (r *rig) holders() int {
	n := 0
	for _, l := range r.server.State(lock).Leases {
		if l.KeptFor == "" {
			n++
		}
	}
	return n
}

var (
	held    = Released{Held: true}
	belief  = lease.JobTiming(DefaultLease).Belief()
	retries = lease.JobTiming(DefaultLease).RetryPeriod
)

const tick = time.Millisecond
