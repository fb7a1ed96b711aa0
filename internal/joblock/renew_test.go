package joblock

import (
	"errors"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

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
