package joblock

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

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
