package joblock

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// B32: a release repeated is told the same, and touches nobody else's lock.
func TestB32ReleaseIsRepeated(t *testing.T) {
	bubble(t, func(r *rig) {
		a, b := r.site("a"), r.site("b")
		got := a.acquire(Ask{})
		a.release(got.Token, held)
		next := b.acquire(Ask{})
		a.release(got.Token, held)
		a.release(got.Token, held)
		b.release(next.Token, held)
	})
}

// Two that release at once are told the same, however long the store takes.
func TestReleasedTwiceAtOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		got := a.acquire(Ask{})
		a.link.SetFates(func(c leasetest.Call) leasetest.Fate { return leasetest.Fate{ReplyDelay: time.Second} })
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 300 * tick) // under way, and after the lease has gone
				a.release(got.Token, held)
			})
		}
		wg.Wait()
		if n := r.server.Counts()["release"]; n != 1 {
			t.Errorf("%d releases reached the store", n)
		}
	})
}

// B11: what has run out and is another's now stays that other's.
func TestB11LostIsLost(t *testing.T) {
	bubble(t, func(r *rig) {
		a, b := r.site("a"), r.site("b")
		got := a.acquire(Ask{})
		a.link.SetDown(true)
		time.Sleep(DefaultLease + tick)
		next := b.acquire(Ask{})
		a.link.SetDown(false)
		a.lost(got.Token)
		a.lost(got.Token)
		if _, err := a.Renew(r.Context(), lock, got.Token); !errors.Is(err, lease.ErrLost) {
			t.Errorf("Renew: %v, want ErrLost", err)
		}
		b.release(next.Token, held)
	})
}

// Belief was over, and yet nobody else has had it: the store's word is a verdict, too.
func TestHeldAfterAllByTheStoresWord(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		got := a.acquire(Ask{})
		a.link.SetDown(true)
		<-got.Ended()
		synctest.Wait() // for who takes note of it
		a.link.SetDown(false)
		a.release(got.Token, held)
		if s := a.Stats(); s.Lost["expired"] != 1 || s.Releases["held"] != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// "Held to the end" is decided before the trip: an answer that is lost changes nothing.
func TestHeldIsDecidedBeforeTheTrip(t *testing.T) {
	for name, fates := range map[string]func(leasetest.Call) leasetest.Fate{"lost": lose("release"), "mute": mute("release")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				a := r.site("a")
				got := a.acquire(Ask{})
				a.link.SetFates(fates)
				from := time.Now()
				a.release(got.Token, Released{Held: true, Unknown: true})
				if took := time.Since(from); took > 2*retries {
					t.Errorf("it took %v", took)
				}
				a.link.SetFates(func(leasetest.Call) leasetest.Fate { return leasetest.Fate{} })
				a.release(got.Token, held) // asked again, the store has done it
				a.release(got.Token, held)
				r.site("b").acquire(Ask{})
			})
		})
	}
}

// Neither is known: belief was over, and the store does not answer.
func TestReleaseWithoutAnAnswer(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		got := a.acquire(Ask{})
		a.link.SetDown(true)
		<-got.Ended()
		if out, err := a.Release(r.Context(), lock, got.Token, false); err == nil || lease.IsVerdict(err) {
			t.Errorf("Release: %+v, %v; want no answer", out, err)
		}
		a.link.SetDown(false)
		a.release(got.Token, held)
	})
}

// Asynchronous unlock: any process with the token, through any sidecar.
func TestReleasedThroughAnother(t *testing.T) {
	for name, ask := range map[string]Ask{
		"plain": {}, "slots": {Slots: 3}, "least": {AtLeast: time.Minute}, "lease": {Lease: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				a, b := r.site("a"), r.site("b")
				got := a.acquire(ask)
				token, err := ParseToken(got.Token.Reveal())
				if err != nil {
					t.Fatal(err)
				}
				renewed, err := b.Renew(r.Context(), lock, token)
				if err != nil || renewed.Valid != lease.JobTiming(token.ttl).Belief() {
					t.Errorf("Renew: %+v, %v", renewed, err)
				}
				b.release(token, held)
				b.release(token, held)
				<-got.Ended()
				if !errors.Is(got.Err(), lease.ErrLost) {
					t.Errorf("its own sidecar found that %v", got.Err())
				}
				if ask.AtLeast > 0 {
					b.refused(Ask{}, lease.ErrHeld)
				}
			})
		})
	}
}

func TestDoneThroughAnother(t *testing.T) {
	bubble(t, func(r *rig) {
		a, b := r.site("a"), r.site("b")
		token, err := ParseToken(a.acquire(Ask{Once: "a&b=c", Keep: time.Hour}).Token.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		if out, err := b.Release(r.Context(), lock, token, true); err != nil || out != held {
			t.Errorf("%+v, %v", out, err)
		}
		var done *DoneError
		if _, err := a.ask(Ask{Once: "a&b=c"}); !errors.As(err, &done) {
			t.Errorf("%v, want it done", err)
		}
	})
}

func TestDoneNeedsOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		got := a.acquire(Ask{})
		if _, err := a.Release(r.Context(), lock, got.Token, true); !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("%v, want ErrInvalid", err)
		}
		a.release(got.Token, held)
	})
}

// A token of one lock is nothing to another.
func TestATokenIsOfOneLock(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		got := a.acquire(Ask{})
		if _, err := a.Release(r.Context(), "other", got.Token, false); !errors.Is(err, lease.ErrLost) {
			t.Errorf("%v, want ErrLost", err)
		}
		a.release(got.Token, held)
	})
}

// B31: renewals and releases in any order.
func TestB31ReleaseRacesRenew(t *testing.T) {
	for delay := range 10 {
		bubble(t, func(r *rig) {
			a := r.site("a")
			got := a.acquire(Ask{})
			a.link.SetFates(func(c leasetest.Call) leasetest.Fate {
				if c.Op == "extend" {
					return leasetest.Fate{Delay: time.Duration(delay) * 50 * tick, ReplyDelay: 100 * tick}
				}
				return leasetest.Fate{Delay: 200 * tick}
			})
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = a.Renew(r.Context(), lock, got.Token) }) // any answer is right
			wg.Go(func() { a.release(got.Token, held) })
			wg.Wait()
			time.Sleep(time.Minute)
			if n := r.holders(); n != 0 {
				t.Errorf("delay %d: %d hold it after its release", delay, n)
			}
		})
	}
}

// Revoked while it is held: belief was valid, and yet the store says that it is gone.
func TestLostToARevocation(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		got := a.acquire(Ask{})
		if n, err := r.server.Revoke(r.Context(), lock, true); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		a.lost(got.Token)
	})
}

// A release whose answer is lost is asked again, and what was held was held: also through
// another sidecar, and however often.
func TestB32ALostAnswerIsNotALoss(t *testing.T) {
	bubble(t, func(r *rig) {
		a, b := r.site("a"), r.site("b")
		got := a.acquire(Ask{})
		b.link.SetFates(mute("release"))
		if _, err := b.Release(r.Context(), lock, got.Token, false); err == nil || lease.IsVerdict(err) {
			t.Fatalf("Release without an answer: %v", err)
		}
		b.link.SetFates(lose("nothing"))
		r.site("c").acquire(Ask{})
		b.release(got.Token, held)
		b.release(got.Token, held)
	})
}

// What was lost before is not held because the answer to its release was lost, too. Whether
// it was is not known, if the store has forgotten, and stays so.
func TestALostAnswerIsNotHeld(t *testing.T) {
	for _, forgets := range []bool{true, false} {
		bubble(t, func(r *rig) {
			a, b := r.site("a"), r.site("b")
			got := a.acquire(Ask{})
			a.link.SetDown(true) // it dies, and others come after it
			time.Sleep(DefaultLease + time.Second)
			r.site("c").acquire(Ask{})
			b.link.SetFates(mute("release"))
			if _, err := b.Release(r.Context(), lock, got.Token, false); err == nil || lease.IsVerdict(err) {
				t.Fatalf("Release without an answer: %v", err)
			}
			if forgets {
				r.server.Drop(lock, "fn")
			}
			b.link.SetFates(lose("nothing"))
			for range 2 {
				if got, err := b.Release(r.Context(), lock, got.Token, false); !errors.Is(err, lease.ErrUnknown) {
					t.Errorf("%+v, %v; want ErrUnknown", got, err)
				}
			}
			if n := r.holders(); n != 1 {
				t.Errorf("%d hold it, want the next one", n)
			}
		})
	}
}

// A run whose record never arrived is not told as recorded, however often that is asked:
// another may do it again.
func TestARunThatIsNotRecorded(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		got := a.acquire(Ask{Once: "today"})
		a.link.SetFates(lose("release"))
		want := Released{Held: true, Unknown: true}
		for range 3 {
			if out, err := a.Release(r.Context(), lock, got.Token, true); err != nil || out != want {
				t.Errorf("%+v, %v; want %+v", out, err, want)
			}
			time.Sleep(DefaultLease)
			a.link.SetFates(lose("nothing"))
		}
		if run, err := r.server.Done(r.Context(), lock, "today"); run != nil || err != nil {
			t.Errorf("recorded: %+v, %v", run, err)
		}
		r.site("b").acquire(Ask{Once: "today"})
	})
}
