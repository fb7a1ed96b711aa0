package joblock

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

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
