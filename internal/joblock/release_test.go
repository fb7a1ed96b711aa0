package joblock

import (
	"context"
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

func TestRenewProlongs(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		got := a.acquire(Ask{AtMost: time.Minute})
		for range 10 {
			time.Sleep(30 * time.Second)
			renewed, err := a.Renew(r.Context(), lock, got.Token)
			if err != nil || renewed.Valid != belief || renewed.Fence != got.Fence {
				t.Fatalf("Renew: %+v, %v; want it valid for %v", renewed, err, belief)
			}
		}
		a.release(got.Token, held)
		if _, err := a.Renew(r.Context(), lock, got.Token); !errors.Is(err, lease.ErrLost) {
			t.Errorf("Renew after the release: %v, want ErrLost", err)
		}
	})
}

func TestRenewWithoutAnAnswer(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		got := a.acquire(Ask{})
		time.Sleep(tick)
		a.link.SetDown(true)
		from := time.Now()
		if _, err := a.Renew(r.Context(), lock, got.Token); err == nil || lease.IsVerdict(err) || time.Since(from) > 2*retries {
			t.Errorf("Renew: %v after %v, want no answer", err, time.Since(from))
		}
		a.link.SetDown(false)
		if _, err := a.Renew(r.Context(), lock, got.Token); err != nil {
			t.Errorf("Renew: %v", err)
		}
	})
}

func TestReentry(t *testing.T) {
	bubble(t, func(r *rig) {
		a, b := r.site("a"), r.site("b")
		w1 := Ask{Owner: "w1", Reenter: true}
		one := a.acquire(w1)
		calls := r.server.Counts()["acquire"]
		two := a.acquire(w1)
		if two.Fence != one.Fence || two.Count != 2 || two.Token == one.Token { // B40
			t.Errorf("%+v, then %+v", one, two)
		}
		if r.server.Counts()["acquire"] != calls {
			t.Error("re-entry went to the store")
		}
		a.refused(Ask{Owner: "w1"}, lease.ErrHeld)
		a.refused(Ask{Owner: "w2", Reenter: true}, lease.ErrHeld)
		b.refused(w1, lease.ErrHeld) // the same name in another pod is another owner
		if _, err := b.Release(r.Context(), lock, two.Token, false); !errors.Is(err, ErrElsewhere) {
			t.Errorf("through another: %v, want ErrElsewhere", err)
		}
		a.release(one.Token, Released{Held: true, Count: 1})
		a.release(one.Token, Released{Held: true, Count: 1}) // once
		b.refused(w1, lease.ErrHeld)
		a.release(two.Token, held)
		a.release(two.Token, held)
		b.acquire(w1)
	})
}

// Those of one owner that come while its first attempt is under way share what comes of it.
func TestReentryDuringTheFirst(t *testing.T) {
	bubble(t, func(r *rig) {
		a, b := r.site("a"), r.site("b")
		blocking := b.acquire(Ask{})
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				got := a.acquire(Ask{Owner: "w", Reenter: true, Wait: time.Minute})
				time.Sleep(time.Second)
				if _, err := a.Release(r.Context(), lock, got.Token, false); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Second)
		b.release(blocking.Token, held)
		wg.Wait()
		synctest.Wait()
		if n := r.holders(); n != 0 {
			t.Errorf("%d hold it in the end", n)
		}
		if s := a.Stats(); s.Acquires["granted"] != 5 || s.Held != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// B27: an owner that has lost its lease does not re-enter it, but gets another.
func TestB27ReentryAfterALoss(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		w := Ask{Owner: "w", Reenter: true}
		one := a.acquire(w)
		a.link.SetDown(true)
		<-one.Ended()
		a.link.SetDown(false)
		w.Wait = time.Minute
		two := a.acquire(w)
		if two.Fence <= one.Fence || two.Count != 1 {
			t.Errorf("%+v after %+v", two, one)
		}
		time.Sleep(time.Minute)
		a.release(two.Token, held)
	})
}

// B30: whatever is lost on the way, and however often it is asked again, nothing is left.
func TestB30RequestsAreIdempotent(t *testing.T) {
	for _, reenter := range []bool{false, true} {
		bubble(t, func(r *rig) {
			a := r.site("a")
			ask := Ask{Owner: "w", Reenter: reenter, Request: "r1"}
			one, two := a.acquire(ask), a.acquire(ask)
			if one.Token != two.Token || two.Count != 1 {
				t.Errorf("%+v, then %+v; want the same", one, two)
			}
			a.release(one.Token, held)
			a.refused(ask, ErrReleased) // a copy that was long under way
			if n := r.holders(); n != 0 {
				t.Errorf("%d hold it", n)
			}
			ask.Request = "r2"
			a.release(a.acquire(ask).Token, held)
		})
	}
}

// A client that asks again with its request waits for the same attempt, in the same place.
func TestARequestIsOneAttempt(t *testing.T) {
	bubble(t, func(r *rig) {
		a, b := r.site("a"), r.site("b")
		first := b.acquire(Ask{})
		ask := Ask{Lock: lock, Request: "r", Wait: time.Hour}
		ctx, cancel := context.WithCancel(r.Context())
		results := make(chan Lease, 2)
		for _, ctx := range []context.Context{ctx, r.Context()} {
			go func() {
				got, err := a.Acquire(ctx, ask)
				if err == nil {
					results <- got
				}
			}()
			synctest.Wait()
		}
		if line := r.server.State(lock).Line; len(line) != 1 {
			t.Errorf("in line: %v, want one", line)
		}
		cancel() // one connection breaks; the other waits on
		synctest.Wait()
		b.release(first.Token, held)
		got := <-results
		a.release(got.Token, held)
	})
}

// When the last client has gone the attempt ends; asked again it is a new one.
func TestARequestThatNobodyWaitsFor(t *testing.T) {
	bubble(t, func(r *rig) {
		a, b := r.site("a"), r.site("b")
		first := b.acquire(Ask{})
		ctx, cancel := context.WithCancel(r.Context())
		time.AfterFunc(time.Second, cancel)
		ask := Ask{Lock: lock, Request: "r", Wait: time.Hour}
		if _, err := a.Acquire(ctx, ask); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want context.Canceled", err)
		}
		got := make(chan Lease)
		go func() { got <- a.acquire(ask) }()
		time.Sleep(time.Second)
		if line := r.server.State(lock).Line; len(line) != 1 {
			t.Errorf("in line: %v, want one", line)
		}
		b.release(first.Token, held)
		a.release((<-got).Token, held)
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

func TestCloseReleases(t *testing.T) {
	bubble(t, func(r *rig) {
		a, b := r.site("a"), r.site("b")
		a.acquire(Ask{})
		blocked := make(chan error, 1)
		go func() {
			_, err := a.ask(Ask{Wait: time.Hour, Request: "r"})
			blocked <- err
		}()
		synctest.Wait()
		from := time.Now()
		a.Close(r.Context(), 0)
		if err := <-blocked; !errors.Is(err, ErrClosing) || time.Since(from) > 0 {
			t.Errorf("%v after %v", err, time.Since(from))
		}
		a.refused(Ask{}, ErrClosing)
		b.acquire(Ask{})
	})
}

// With a grace the app may finish; what it does not release is left to run out.
func TestCloseWithGrace(t *testing.T) {
	for _, finishes := range []bool{true, false} {
		bubble(t, func(r *rig) {
			a, b := r.site("a"), r.site("b")
			got := a.acquire(Ask{})
			if finishes {
				time.AfterFunc(5*time.Second, func() { a.release(got.Token, held) })
			}
			from := time.Now()
			a.Close(r.Context(), 10*time.Second)
			took := time.Since(from)
			if finishes && took != 5*time.Second || !finishes && took != 10*time.Second {
				t.Errorf("finishes %v: closed after %v", finishes, took)
			}
			if finishes {
				b.acquire(Ask{})
			} else {
				b.refused(Ask{}, lease.ErrHeld)
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
