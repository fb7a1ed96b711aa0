package elector_test

import (
	"errors"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// Resigning without done: not leader at once, and nobody else leads before the last
// validity handed out has run out.
func TestResignOutlastsWhatWasHandedOut(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := start(t, server, "a"), start(t, server, "b")
		time.Sleep(10*time.Second + 100*time.Millisecond) // not in the instant of a renewal
		handedOut := a.View().ValidFor
		from := time.Now()
		if err := a.Resign(t.Context(), elector.Resignation{}); err != nil {
			t.Fatal(err)
		}
		if v := a.View(); v.Leading || !v.HandingOver {
			t.Errorf("after Resign: %+v", v)
		}
		b.await(elector.Leader, elector.Acquired, timing.LeaseDuration)
		took := time.Since(from)
		if took < handedOut || took > handedOut+5*time.Millisecond {
			t.Errorf("b leads %v after, want just after the %v handed out", took, handedOut)
		}
		// It stays out until another has led, then waits in line.
		a.await(elector.Standby, elector.HeldByPeer, timing.LeaseDuration)
	})
}

func TestResignDoneHandsOverNow(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := start(t, server, "a"), start(t, server, "b")
		if err := a.Resign(t.Context(), elector.Resignation{Done: true, Fence: a.View().Fence}); err != nil {
			t.Fatal(err)
		}
		b.mustSay(elector.Leader, elector.Acquired)
	})
}

// A resignation without done may be followed by one with it.
func TestResignThenDone(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := start(t, server, "a"), start(t, server, "b")
		for _, done := range []bool{false, true} {
			if err := a.Resign(t.Context(), elector.Resignation{Done: done}); err != nil {
				t.Fatal(err)
			}
		}
		b.mustSay(elector.Leader, elector.Acquired)
	})
}

func TestResignWithoutATerm(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := start(t, server, "a"), start(t, server, "b")
		for _, c := range []struct {
			p *pod
			r elector.Resignation
		}{{b, elector.Resignation{}}, {b, elector.Resignation{Done: true}}, {a, elector.Resignation{Fence: 1}}} {
			if err := c.p.Resign(t.Context(), c.r); !errors.Is(err, elector.ErrNotLeading) {
				t.Errorf("Resign(%+v) = %v", c.r, err)
			}
		}
		a.mustSay(elector.Leader, elector.Acquired)
	})
}

// Alone, who resigns stays out for a lease; with a hold-off for as long as it says.
func TestHoldOff(t *testing.T) {
	for _, c := range []struct{ asked, want time.Duration }{{0, timing.LeaseDuration}, {time.Minute, time.Minute}} {
		bubble(t, func(t *testing.T, server *leasetest.Memory) {
			a := start(t, server, "a")
			if err := a.Resign(t.Context(), elector.Resignation{Done: true, HoldOff: c.asked}); err != nil {
				t.Fatal(err)
			}
			took := a.await(elector.Leader, elector.Acquired, 2*time.Minute)
			if took < c.want || took > c.want+timing.RetryPeriod {
				t.Errorf("hold-off %v: leads again after %v, want %v", c.asked, took, c.want)
			}
		})
	}
}
