package joblock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

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
