package lease_test

import (
	"errors"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// A release is sent when no other request of the term is under way, though ctx is done.
func TestReleaseGoesLast(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		term := r.acquire(time.Second)
		r.link.SetFates(nth("extend", 0, leasetest.Fate{Delay: 100 * time.Millisecond, ReplyDelay: time.Hour}))
		time.Sleep(timing.RetryPeriod + time.Millisecond) // the renewal is on its way
		released, err := term.Release(cancelled(t))
		if !released || err != nil {
			t.Fatalf("Release = %v, %v", released, err)
		}
		if b := r.belief(term); b != lease.Over {
			t.Errorf("belief = %v after the release", b)
		}
		time.Sleep(time.Second) // the renewal arrives
		if left := left(server); left >= 0 {
			t.Errorf("a late renewal made the lease again, for %v", left)
		}
	})
}

// A release whose answer is lost is asked again, and tells the truth.
func TestReleaseIsRepeatedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		term := r.acquire(time.Second)
		r.link.SetFates(nth("release", 0, leasetest.Fate{Cut: true}))
		if released, err := term.Release(t.Context()); !released || err != nil {
			t.Errorf("Release = %v, %v, want true", released, err)
		}
	})
}

func TestReleaseIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		term := r.acquire(time.Second)
		r.link.SetDown(true)
		from := time.Now()
		if _, err := term.Release(t.Context()); err == nil || lease.IsVerdict(err) {
			t.Errorf("Release without an answer: %v", err)
		}
		if took := time.Since(from); took > 2*timing.RetryPeriod {
			t.Errorf("took %v", took)
		}
	})
}

// What had run out was not held because one answer was lost: nobody knows.
func TestALostAnswerIsNotHeld(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		term := r.acquire(time.Second)
		server.FlushAll()
		r.link.SetFates(nth("release", 0, leasetest.Fate{Lost: true}))
		if released, err := term.Release(t.Context()); released || !errors.Is(err, lease.ErrUnknown) || lease.IsVerdict(err) {
			t.Errorf("Release = %v, %v, want ErrUnknown", released, err)
		}
	})
}
