package redislease

import (
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/redistest"
)

// failing is a store of several servers, one of which is to fail.
type failing struct {
	change   func(*Options)
	failover func() // as an operator does it; returns when another is master
	kill     func() // the same, by a crash
}

var topologies = map[string]func(*testing.T) failing{
	"sentinel": func(t *testing.T) failing {
		s := redistest.StartSentinels(t)
		return failing{
			change:   func(o *Options) { o.Sentinels, o.Master = s.Addrs(), s.Name() },
			failover: s.Failover,
			kill: func() {
				was := s.Master()
				was.Kill()
				s.UntilNot(was)
			},
		}
	},
	"cluster": func(t *testing.T) failing {
		c := redistest.StartCluster(t)
		const key = "soloist:{L}:lk"
		return failing{
			change:   func(o *Options) { o.Cluster = c.Addrs() },
			failover: func() { c.Failover(key) },
			kill: func() {
				master, replica := c.Master(key)
				master.Kill()
				c.UntilMaster(replica)
			},
		}
	},
}

// A failover costs nobody its term, wakes the waiters on the new master, and fences rise.
func TestFailover(t *testing.T) {
	for name, start := range topologies {
		for _, crash := range []bool{false, true} {
			how := map[bool]string{false: "planned", true: "crash"}[crash]
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				redistest.CheckLeaks(t)
				f := start(t)
				timing := lease.Timing{LeaseDuration: 60 * time.Second, RenewDeadline: 50 * time.Second, RetryPeriod: time.Second}
				candidate := func() *lease.Candidate {
					s := open(t, "redis://several", f.change, func(o *Options) {
						o.Lease, o.CallTimeout, o.Claim = timing.LeaseDuration, timing.RetryPeriod, 0
					})
					return &lease.Candidate{Store: s, Timing: timing}
				}
				leader, next := candidate(), candidate()
				r := lease.Request{Claim: lease.Claim{Lock: "L"}, Holder: lease.Identity{Name: "pod"}}
				term, err := leader.Acquire(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				second := make(chan *lease.Term, 1)
				go func() {
					defer close(second) // received from below
					if term, err := next.Acquire(t.Context(), r); err == nil {
						second <- term
					}
				}()
				until(t, "it waits", func() bool {
					info, err := leader.Store.Inspect(t.Context(), "L")
					return err == nil && info.Waiting == 1
				})

				if crash {
					f.kill()
				} else {
					f.failover()
				}
				since := term.Validity().Stamp
				until(t, "a renewal on the new master", func() bool {
					return term.Err() != nil || term.Validity().Stamp.Since(since) > 3*timing.RetryPeriod
				})
				if err := term.Err(); err != nil {
					t.Fatalf("the term has ended: %v", err)
				}
				until(t, "the waiter is in line there", func() bool {
					info, err := leader.Store.Inspect(t.Context(), "L")
					return err == nil && info.Waiting == 1
				})
				if held, err := term.Release(t.Context()); err != nil || !held {
					t.Fatalf("Release: %v, %v", held, err)
				}
				began := time.Now()
				got := <-second
				if got == nil {
					t.Fatal("the waiter has given up")
				}
				defer got.Stop(nil)
				if took := time.Since(began); took > timing.LeaseDuration/4 {
					t.Errorf("the waiter was told after %v", took)
				}
				if got.Grant().Fence <= term.Grant().Fence {
					t.Errorf("fence %d after %d", got.Grant().Fence, term.Grant().Fence)
				}
			})
		}
	}
}

// Connections to Sentinels do not count: they have started long ago, or just now, and keep
// nothing.
func TestSentinelsAreNotTheStore(t *testing.T) {
	s := redistest.StartSentinels(t)
	store := open(t, "redis://sentinels", func(o *Options) {
		o.Sentinels, o.Master, o.DelayedRestart = s.Addrs(), s.Name(), DelayOn
	})
	if wait := waitError(t, store, request("L")); wait == 0 {
		t.Error("the master has just started")
	}
	if got, want := store.node("").runID, s.Master().Info("server")["run_id"]; got != want {
		t.Errorf("the run is %s, the master's %s", got, want)
	}
	acquire(t, open(t, "redis://sentinels", func(o *Options) { o.Sentinels, o.Master = s.Addrs(), s.Name() }), request("L"))
}
