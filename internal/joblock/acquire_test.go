package joblock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

func TestOneHolds(t *testing.T) {
	bubble(t, func(r *rig) {
		a, b := r.site("a"), r.site("b")
		got := a.acquire(Ask{})
		if got.Lock != lock || got.Fence == 0 || got.Count != 1 || got.Valid != belief {
			t.Errorf("%+v, want it valid for %v", got, belief)
		}
		_, err := b.ask(Ask{})
		var refusal *lease.HeldError
		if !errors.As(err, &refusal) || refusal.Holder.Name != "a" || refusal.Rank != -1 {
			t.Errorf("%v, want it held by a", err)
		}
		a.refused(Ask{}, lease.ErrHeld) // B10: nothing re-enters that has not asked to
		a.release(got.Token, held)
		if next := b.acquire(Ask{}); next.Fence <= got.Fence {
			t.Errorf("fence %d after %d", next.Fence, got.Fence)
		}
	})
}

func TestItIsRenewedUntilAtMostFor(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		got := a.acquire(Ask{AtMost: 3 * time.Minute})
		from := time.Now()
		<-got.Ended()
		// B29: nobody renews for ever for a worker that has died.
		want := 3*time.Minute - (DefaultLease - belief)
		if took := time.Since(from); took != want || !errors.Is(got.Err(), lease.ErrLimit) {
			t.Errorf("it ended after %v for %v, want %v for ErrLimit", took, got.Err(), want)
		}
		time.Sleep(DefaultLease - belief + 2*tick)
		r.site("b").acquire(Ask{})
		a.lost(got.Token)
		if s := a.Stats(); s.Held != 0 || s.Lost["limit"] != 1 {
			t.Errorf("%+v, want one lost to its limit", s)
		}
	})
}

func TestAtMostForeverIsForever(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		got := a.acquire(Ask{AtMost: -1})
		time.Sleep(2 * time.Hour)
		a.release(got.Token, held)
	})
}

func TestWaiting(t *testing.T) {
	bubble(t, func(r *rig) {
		a, b := r.site("a"), r.site("b")
		first := a.acquire(Ask{})
		from := time.Now()
		_, err := b.ask(Ask{Wait: 10 * time.Second})
		var refusal *lease.HeldError
		if !errors.As(err, &refusal) || refusal.Rank != 0 || refusal.Holder.Name != "a" || time.Since(from) != 10*time.Second {
			t.Errorf("%v after %v, want first in line for 10s", err, time.Since(from))
		}
		if line := r.server.State(lock).Line; len(line) != 0 {
			t.Errorf("in line: %v", line)
		}
		time.AfterFunc(5*time.Second, func() { a.release(first.Token, held) })
		from = time.Now()
		b.acquire(Ask{Wait: 10 * time.Second})
		if took := time.Since(from); took != 5*time.Second {
			t.Errorf("granted after %v, want 5s", took)
		}
	})
}

// B8: whatever the wait and the lease, one holds.
func TestB8EveryWaitAndLease(t *testing.T) {
	for _, wait := range []time.Duration{0, 1, tick, MinLease, time.Minute} {
		for _, length := range []time.Duration{MinLease, time.Second, time.Hour} {
			bubble(t, func(r *rig) {
				r.site("a").acquire(Ask{Lease: length, AtMost: 2 * time.Hour})
				r.site("b").refused(Ask{Lease: length, Wait: wait}, lease.ErrHeld)
			})
		}
	}
}

func TestArrivalOrder(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		got := a.acquire(Ask{})
		order := make(chan string, 6)
		for _, owner := range []string{"1", "2", "3", "4", "5", "6"} {
			go func() {
				next, err := a.ask(Ask{Owner: owner, Wait: time.Hour})
				if err != nil {
					t.Errorf("%s: %v", owner, err)
					return
				}
				order <- owner
				a.release(next.Token, held)
			}()
			time.Sleep(tick)
		}
		a.release(got.Token, held)
		for _, want := range []string{"1", "2", "3", "4", "5", "6"} {
			if owner := <-order; owner != want {
				t.Errorf("%s before %s", owner, want)
			}
		}
	})
}

// A client that has gone leaves the line, and what it was granted at that moment is free.
func TestB41AClientThatHasGone(t *testing.T) {
	for name, when := range map[string]time.Duration{"in line": time.Second, "under way": 50 * tick} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				a, b := r.site("a"), r.site("b")
				if name == "in line" {
					a.acquire(Ask{})
				} else {
					b.link.SetFates(func(c leasetest.Call) leasetest.Fate {
						if c.Op == "acquire" {
							return leasetest.Fate{ReplyDelay: 100 * tick}
						}
						return leasetest.Fate{}
					})
				}
				before := r.holders()
				ctx, cancel := context.WithCancel(r.Context())
				time.AfterFunc(when, cancel)
				if _, err := b.Acquire(ctx, Ask{Lock: lock, Wait: time.Hour}); !errors.Is(err, context.Canceled) {
					t.Errorf("%v, want context.Canceled", err)
				}
				time.Sleep(time.Second)
				if state := r.server.State(lock); len(state.Line) != 0 || r.holders() != before {
					t.Errorf("%+v, want nobody in line and nothing more held", state)
				}
			})
		})
	}
}

func TestNoAnswerIsUnknown(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Second, time.Minute} {
		bubble(t, func(r *rig) {
			a := r.site("a")
			a.link.SetDown(true)
			_, err := a.ask(Ask{Wait: wait})
			if err == nil || lease.IsVerdict(err) {
				t.Errorf("%v, want no answer", err)
			}
			if s := a.Stats(); s.Acquires["unknown"] != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Waiting for what does not go away by itself helps nobody.
func TestPermanentErrorsEndTheWait(t *testing.T) {
	bubble(t, func(r *rig) {
		store := failing{r.site("a").link, &lease.StoreError{Kind: "auth", Err: errors.New("WRONGPASS"), Permanent: true}}
		l := New(Config{Store: store})
		defer l.Close(r.Context(), 0)
		from := time.Now()
		_, err := l.Acquire(r.Context(), Ask{Lock: lock, Wait: time.Hour})
		var e *lease.StoreError
		if !errors.As(err, &e) || e.Kind != "auth" || time.Since(from) > time.Second {
			t.Errorf("%v after %v, want the error at once", err, time.Since(from))
		}
	})
}

type failing struct {
	*leasetest.Link
	err error
}

func (f failing) Acquire(context.Context, lease.Request) (lease.Grant, error) {
	return lease.Grant{}, f.err
}

func TestSlotsAreSpreadAndSearched(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		seen := map[int]bool{}
		for range 20 {
			got := a.acquire(Ask{Slots: 20})
			seen[got.Slot] = true
		}
		if len(seen) != 20 {
			t.Errorf("%d slots of 20", len(seen))
		}
		a.refused(Ask{Slots: 20}, lease.ErrHeld)
		a.refused(Ask{}, lease.ErrKind)
		first := map[int]bool{}
		for i := range 20 {
			first[a.acquire(Ask{Lock: fmt.Sprint("other", i), Slots: 20}).Slot] = true
		}
		if len(first) < 5 {
			t.Errorf("the search begins at %d slots of 20 only", len(first))
		}
	})
}

func TestAfterBeginsBehind(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		for after, want := range []int{1, 2, 3, 0} {
			got := a.acquire(Ask{Slots: 4, After: &after})
			if got.Slot != want {
				t.Errorf("after %d: slot %d, want %d", after, got.Slot, want)
			}
		}
	})
}

func TestOnce(t *testing.T) {
	bubble(t, func(r *rig) {
		a, b := r.site("a"), r.site("b")
		monday := Ask{Once: "monday", Wait: time.Minute}
		got := a.acquire(monday)
		waiter := make(chan error, 1)
		go func() { // waits behind what does it
			_, err := b.ask(monday)
			waiter <- err
		}()
		time.Sleep(time.Second)
		if out, err := a.Release(r.Context(), lock, got.Token, true); err != nil || out != held {
			t.Fatalf("%+v, %v", out, err)
		}
		var done *DoneError
		if err := <-waiter; !errors.As(err, &done) || done.Run.By != "a" || done.Run.Fence != got.Fence || done.Run.Took != time.Second {
			t.Errorf("%v, want it done by a in a second", err)
		}
		if n := r.holders(); n != 0 {
			t.Errorf("%d hold it after that", n)
		}
		if _, err := b.ask(monday); !errors.As(err, &done) {
			t.Errorf("%v, want it done", err)
		}
		next := b.acquire(Ask{Once: "tuesday"})
		b.release(next.Token, held) // not done
		b.acquire(Ask{Once: "tuesday"})
	})
}

// What is judged first is told first: a run that was done is done, though it is held.
func TestDoneBeforeHeld(t *testing.T) {
	bubble(t, func(r *rig) {
		a := r.site("a")
		got := a.acquire(Ask{Once: "x"})
		if _, err := a.Release(r.Context(), lock, got.Token, true); err != nil {
			t.Fatal(err)
		}
		a.acquire(Ask{})
		var done *DoneError
		if _, err := a.ask(Ask{Once: "x"}); !errors.As(err, &done) {
			t.Errorf("%v, want it done", err)
		}
	})
}

func TestAtLeastFor(t *testing.T) {
	bubble(t, func(r *rig) {
		a, b := r.site("a"), r.site("b")
		got := a.acquire(Ask{AtLeast: 10 * time.Second})
		time.Sleep(3 * time.Second)
		a.release(got.Token, held)
		b.refused(Ask{}, lease.ErrHeld)
		from := time.Now()
		b.acquire(Ask{Wait: time.Minute})
		if took := time.Since(from); took < 7*time.Second || took > 7*time.Second+2*tick {
			t.Errorf("free after %v, want 7s", took)
		}
	})
}
