package joblock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

func TestTooMany(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		a.cfg.Limit = 2
		one := a.acquire(Ask{})
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go a.Acquire(ctx, Ask{Lock: lock, Wait: time.Hour})
		synctest.Wait()
		a.refused(Ask{Lock: "other"}, ErrTooMany)
		cancel()
		synctest.Wait()
		a.release(one.Token, held)
		a.acquire(Ask{Lock: "other"})
	})
}

func TestWhatCantBeAskedFor(t *testing.T) {
	bubble(t, func(r *rig) {
		a, three := r.site("a"), 3
		for _, ask := range []Ask{
			{Lease: time.Millisecond}, {Lease: 25 * time.Hour}, {Lease: -1}, {Wait: -1}, {Slots: -1}, {Slots: MaxSlots + 1},
			{After: &three}, {Slots: 3, After: &three}, {Once: "a b"}, {Once: "x", Slots: 2}, {Keep: time.Hour},
			{Once: "x", Keep: -1}, {Reenter: true}, {Owner: "a\n"}, {Request: "é"}, {AtLeast: -1},
			{Lease: time.Minute, AtMost: 30 * time.Second}, {AtMost: MaxTime + 1},
		} {
			a.refused(ask, lease.ErrInvalid)
		}
		if n := len(r.server.Counts()); n != 0 {
			t.Errorf("%v reached the store", r.server.Counts())
		}
	})
}

// B26: those who wait and those who do not share a lock, and what an operator takes away wakes
// the next in line.
func TestB26ForcedUnlockWakesTheNext(t *testing.T) {
	bubble(t, func(r *rig) {
		a, b, c := r.site("a"), r.site("b"), r.site("c")
		first := a.acquire(Ask{})
		got := make(chan Lease)
		go func() { got <- b.acquire(Ask{Wait: time.Hour}) }()
		synctest.Wait()
		c.refused(Ask{}, lease.ErrHeld)
		if n, err := r.server.Revoke(r.Context(), lock, true); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		c.refused(Ask{}, lease.ErrHeld) // it is kept for who waits
		b.release((<-got).Token, held)
		a.lost(first.Token)
		c.release(c.acquire(Ask{}).Token, held)
	})
}
