package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

func (r *rig) try() (*lease.Term, error) {
	term, err := r.Try(r.t.Context(), request("a"))
	if term != nil {
		r.t.Cleanup(func() { term.Stop(nil) })
	}
	return term, err
}

func TestTryDoesNotWait(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		newRig(t, server, 1).acquire(time.Second)
		from := time.Now()
		_, err := newRig(t, server, 1).try()
		if !errors.Is(err, lease.ErrHeld) || time.Since(from) > 0 {
			t.Errorf("Try: %v after %v, want ErrHeld at once", err, time.Since(from))
		}
		if line := server.State(lock).Line; len(line) != 0 {
			t.Errorf("in line: %v", line)
		}
	})
}

func TestTryOutlivesADeadConnection(t *testing.T) {
	for name, fate := range map[string]leasetest.Fate{"refused": {Refused: true}, "cut": {Cut: true}, "mute": {Mute: true}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *leasetest.Memory) {
				r := newRig(t, server, 1)
				r.link.SetFates(nth("acquire", 0, fate))
				term, err := r.try()
				if err != nil {
					t.Fatal(err)
				}
				if state := server.State(lock); state.Leases["lk"].Fence != term.Grant().Fence {
					t.Errorf("granted fence %d, the server has %+v", term.Grant().Fence, state)
				}
			})
		})
	}
}

func TestTryLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		r.link.SetFates(func(c leasetest.Call) leasetest.Fate { return leasetest.Fate{Mute: c.Op == "acquire"} })
		from := time.Now()
		_, err := r.try()
		if err == nil || lease.IsVerdict(err) {
			t.Errorf("Try: %v, want no answer", err)
		}
		if took := time.Since(from); took > 3*timing.RetryPeriod {
			t.Errorf("it took %v", took)
		}
		if left := left(server); left >= 0 {
			t.Errorf("the lease is there for another %v", left)
		}
	})
}

func TestTryEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		r.link.SetFates(func(c leasetest.Call) leasetest.Fate { return leasetest.Fate{Mute: c.Op == "acquire"} })
		cause := errors.New("the client has gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(timing.RetryPeriod/2, func() { cancel(cause) })
		if _, err := r.Try(ctx, request("a")); !errors.Is(err, cause) {
			t.Errorf("Try: %v, want the context's cause", err)
		}
		if left := left(server); left >= 0 {
			t.Errorf("the lease is there for another %v", left)
		}
	})
}

// atMost is not a multiple of anything.
const atMost = 5*time.Second + 70*time.Millisecond

// atMostBelief is when a term of that limit ends: the lease then lives on for as long as
// it does after any belief.
var atMostBelief = atMost - (timing.LeaseDuration - timing.Belief())

func TestATermEndsAtItsLimit(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		r.AtMost = atMost
		var jumps int
		r.Trace.StoreJump = func(time.Duration) { jumps++ }
		from := time.Now()
		term := r.acquire(time.Second)
		until(t, term, time.Minute)
		if took := time.Since(from); took != atMostBelief || !errors.Is(term.Err(), lease.ErrLimit) {
			t.Errorf("it ended after %v for %v, want %v for ErrLimit", took, term.Err(), atMostBelief)
		}
		// The server counts from when it sees a request: a millisecond is its granularity.
		if end := time.Since(from) + left(server); end > atMost+time.Millisecond {
			t.Errorf("the lease runs out after %v, want %v", end, atMost)
		}
		if jumps > 0 {
			t.Errorf("%d jumps of the store's clock were seen", jumps)
		}
	})
}

func TestALimitIsNeverBelievedBeyond(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		r.AtMost = atMost
		from := time.Now()
		term := r.acquire(time.Second)
		for term.Err() == nil {
			if _, left := term.Validity().At(r.clock.Now()); time.Since(from)+left > atMostBelief {
				t.Fatalf("after %v it is believed in for another %v", time.Since(from), left)
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
}

func TestProlongCountsAnew(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		r.AtMost = atMost
		term := r.acquire(time.Second)
		time.Sleep(3 * time.Second)
		asked, from := r.clock.Now(), time.Now()
		term.Prolong()
		synctest.Wait()
		if stamp := term.Validity().Stamp; stamp.Since(asked) < 0 {
			t.Errorf("it was last renewed %v before it was prolonged", asked.Since(stamp))
		}
		until(t, term, time.Minute)
		if took := time.Since(from); took != atMostBelief {
			t.Errorf("it ended %v later, want %v", took, atMostBelief)
		}
		term.Prolong() // what has ended stays so
		synctest.Wait()
		if !errors.Is(term.Err(), lease.ErrLimit) || r.belief(term) != lease.Over {
			t.Errorf("%v, %v after it was prolonged too late", term.Err(), r.belief(term))
		}
	})
}

// A renewal under way does not count for a Prolong that came after it was sent.
func TestProlongDuringARenewal(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		r.AtMost = atMost
		r.link.SetFates(nth("extend", 0, leasetest.Fate{ReplyDelay: 300 * time.Millisecond}))
		term := r.acquire(time.Second)
		time.Sleep(timing.RetryPeriod + 100*time.Millisecond)
		asked := r.clock.Now()
		term.Prolong()
		time.Sleep(200*time.Millisecond + time.Microsecond)
		synctest.Wait()
		if stamp := term.Validity().Stamp; stamp.Since(asked) < 0 {
			t.Errorf("it was last renewed %v before it was prolonged", asked.Since(stamp))
		}
	})
}

func TestATermIsFinished(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		term := r.acquire(time.Second)
		held, err := term.Finish(t.Context(), lease.Finish{AtLeast: time.Minute, Done: "monday", Keep: time.Hour})
		if !held || err != nil {
			t.Fatalf("Finish: %v, %v", held, err)
		}
		if run, err := r.link.Done(t.Context(), lock, "monday"); err != nil || run == nil || run.Fence != term.Grant().Fence {
			t.Errorf("the record is %+v, %v", run, err)
		}
		if state := server.State(lock).Leases["lk"]; !state.Resting || state.Left != time.Minute {
			t.Errorf("%+v, want the slot at rest for a minute", state)
		}
	})
}

func TestAPlainStoreFinishesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		r.Store = struct {
			lease.Store
			lease.Waker
		}{r.link, r.link}
		term := r.acquire(time.Second)
		if _, err := term.Finish(t.Context(), lease.Finish{Done: "a", Keep: time.Hour}); !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("Finish: %v, want ErrInvalid", err)
		}
	})
}
