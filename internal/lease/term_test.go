package lease_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// The renewal is applied at once, its reply comes late, and then nothing more: had the
// validity been counted from the reply, it would outlast the lease.
func TestValidityCountsFromBeforeTheRequest(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		slow := timing.RetryPeriod - time.Millisecond
		r.link.SetFates(func(c leasetest.Call) leasetest.Fate {
			switch {
			case c.Op == "extend" && c.N == 0:
				return leasetest.Fate{ReplyDelay: slow}
			case c.Op == "extend":
				return leasetest.Fate{Lost: true}
			}
			return leasetest.Fate{}
		})
		term := r.acquire(time.Second)
		from := time.Now()
		took := until(t, term, time.Minute)
		if want := timing.RetryPeriod + timing.Belief(); took != want {
			t.Errorf("belief ended %v after the grant, want %v", took, want)
		}
		if !errors.Is(term.Err(), lease.ErrExpired) {
			t.Errorf("Err = %v, want ErrExpired", term.Err())
		}
		expiry := timing.RetryPeriod + timing.LeaseDuration
		if left := left(server); left+time.Since(from) != expiry {
			t.Errorf("lease ends after %v, want %v", left+time.Since(from), expiry)
		}
	})
}

// The same for the grant: its reply comes late.
func TestGrantCountsFromBeforeTheRequest(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		slow := timing.RetryPeriod - time.Millisecond
		r.link.SetFates(func(c leasetest.Call) leasetest.Fate {
			if c.Op == "acquire" {
				return leasetest.Fate{ReplyDelay: slow}
			}
			return leasetest.Fate{Lost: c.Op == "extend"}
		})
		term := r.acquire(time.Second)
		if took, want := until(t, term, time.Minute), timing.Belief()-slow; took != want {
			t.Errorf("belief lasted %v after the reply, want %v", took, want)
		}
	})
}

// B2: a renewal that is under way, or failed, moves nothing. A black hole may begin at
// any point of the renewal cycle.
func TestB2OnlyAConfirmedRenewalMovesTheDeadline(t *testing.T) {
	for phase := time.Duration(0); phase < 2*timing.RetryPeriod; phase += 7 * time.Millisecond {
		bubble(t, func(t *testing.T, server *leasetest.Memory) {
			r := newRig(t, server, 1)
			term := r.acquire(time.Second)
			time.Sleep(phase)
			r.link.SetDown(true)
			until(t, term, time.Minute)
			if left := left(server); left <= 0 {
				t.Errorf("down after %v: belief ended %v after the lease", phase, -left)
			}
		})
	}
}

// B3: belief ends though a renewal hangs for ever and obeys no context.
func TestB3BeliefEndsWhileARenewalHangs(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		hang := make(chan struct{})
		r.Candidate.Store = hanging{r.link, hang}
		term := r.acquire(time.Second)
		if took := until(t, term, time.Minute); took != timing.Belief() {
			t.Errorf("belief lasted %v, want %v", took, timing.Belief())
		}
		close(hang)
	})
}

// hanging never answers a renewal before it is let.
type hanging struct {
	*leasetest.Link
	let chan struct{}
}

func (h hanging) Extend(ctx ctx, g lease.Grant, e lease.Extension) (lease.Extended, error) {
	<-h.let
	return h.Link.Extend(ctx, g, e)
}

// B27: renewals that fail are repeated, and the term outlives them.
func TestB27ATermOutlivesFailedRenewals(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		r.link.SetFates(func(c leasetest.Call) leasetest.Fate {
			return leasetest.Fate{Refused: c.Op == "extend" && c.N%4 != 3}
		})
		var failed int
		r.Trace.RenewFailed = func(error) { failed++ }
		term := r.acquire(time.Second)
		select {
		case <-term.Ended():
			t.Fatalf("the term ended: %v", term.Err())
		case <-time.After(time.Minute):
		}
		term.Stop(nil)
		if failed < 30 {
			t.Errorf("%d renewals failed, want many", failed)
		}
	})
}

// B6: a lease that is gone is lost at the next renewal, and is not made again.
func TestB6ALostLeaseIsNotMadeAgain(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		term := r.acquire(time.Second)
		server.FlushAll()
		if took := until(t, term, time.Minute); took > timing.RetryPeriod {
			t.Errorf("noticed after %v, want at the next renewal", took)
		}
		if !errors.Is(term.Err(), lease.ErrLost) {
			t.Errorf("Err = %v, want ErrLost", term.Err())
		}
		if left := left(server); left >= 0 {
			t.Errorf("the lease exists again, for %v", left)
		}
		if r.belief(term) != lease.Over {
			t.Error("believes after the end")
		}
	})
}

// What may have been read as ended stays ended, though a renewal that was sent before is
// confirmed, and counts from a time that would make the belief last.
func TestWhatHasEndedStaysEnded(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		const flight = 100 * time.Millisecond
		r.link.SetFates(nth("extend", 0, leasetest.Fate{ReplyDelay: flight}))
		term := r.acquire(time.Second)
		time.Sleep(timing.RetryPeriod + flight/2)
		// The clock overtakes the timers, as in a suspend: the reply comes before the
		// term has looked again.
		r.clock.SetRate(float64(timing.Belief()-timing.RetryPeriod) / float64(flight/2))
		time.Sleep(flight/2 - time.Nanosecond)
		r.clock.SetRate(1)
		if b := r.belief(term); b != lease.Over || term.Err() != nil {
			t.Fatalf("belief = %v, Err = %v before the reply", b, term.Err())
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if b := r.belief(term); b != lease.Over || !errors.Is(term.Err(), lease.ErrExpired) {
			t.Errorf("belief = %v, Err = %v after a late renewal", b, term.Err())
		}
	})
}

func TestWallClockJumpNeedsARenewal(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		var jumps []time.Duration
		r.Trace.ClockJump = func(d time.Duration) { jumps = append(jumps, d) }
		term := r.acquire(time.Second)
		time.Sleep(100 * time.Millisecond)

		r.clock.StepWall(200 * time.Millisecond)
		if b := r.belief(term); b != lease.Valid {
			t.Errorf("belief = %v after a step within the tolerance", b)
		}
		r.link.SetDown(true)
		r.clock.StepWall(time.Hour)
		if b := r.belief(term); b != lease.Unverified {
			t.Fatalf("belief = %v after a jump, want Unverified", b)
		}
		term.Verify()
		synctest.Wait()
		if b := r.belief(term); b != lease.Unverified {
			t.Errorf("belief = %v while no renewal is confirmed", b)
		}
		r.link.SetDown(false)
		time.Sleep(timing.RetryPeriod * 2) // the call under way, and its repetition
		synctest.Wait()
		if b := r.belief(term); b != lease.Valid {
			t.Errorf("belief = %v after a renewal", b)
		}
		if len(jumps) != 1 || jumps[0] < time.Hour-time.Minute {
			t.Errorf("jumps told: %v, want one of an hour", jumps)
		}
	})
}

// Unknown is not loss: with the store at hand, a jump costs one round trip.
func TestWallClockJumpIsVerifiedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		term := r.acquire(time.Second)
		time.Sleep(100 * time.Millisecond)
		r.clock.StepWall(time.Hour)
		term.Verify()
		synctest.Wait()
		if b := r.belief(term); b != lease.Valid {
			t.Errorf("belief = %v, want Valid at once", b)
		}
	})
}

func TestSuspendCountsAsTime(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		term := r.acquire(time.Second)
		r.link.SetDown(true)
		r.clock.Suspend(timing.LeaseDuration)
		time.Sleep(timing.RenewDeadline)
		if b := r.belief(term); b != lease.Over {
			t.Errorf("belief = %v after a suspend of a renew deadline", b)
		}
	})
}

// Where no steady clock counts a pause, the wall clock shows it.
func TestPauseThatOnlyTheWallClockShows(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		r.clock.NoBoottime()
		term := r.acquire(time.Second)
		r.link.SetDown(true)
		r.clock.Stall(timing.LeaseDuration)
		time.Sleep(timing.RenewDeadline / 2)
		if b := r.belief(term); b != lease.Unverified {
			t.Errorf("belief = %v, want Unverified", b)
		}
	})
}

// A server whose clock jumps ahead, but not so far that the lease is gone, is noticed.
func TestStoreJumpIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := leasetest.NewClock(1)
		server := leasetest.NewMemory(leasetest.Config{Clock: wall.Time, Lease: timing.LeaseDuration})
		r := newRig(t, server, 1)
		var missing time.Duration
		r.Trace.StoreJump = func(d time.Duration) { missing = d }
		r.acquire(time.Second)
		time.Sleep(timing.RetryPeriod + time.Millisecond)
		synctest.Wait()
		if missing != 0 {
			t.Fatalf("told of %v before the jump", missing)
		}
		wall.StepWall(time.Second)
		time.Sleep(timing.RetryPeriod)
		synctest.Wait()
		if missing < 900*time.Millisecond || missing > time.Second {
			t.Errorf("told of %v, want about 1s", missing)
		}
	})
}
