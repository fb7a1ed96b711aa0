package redislease

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/redistest"
)

func TestRate(t *testing.T) {
	redistest.CheckLeaks(t)
	srv := redistest.Start(t)
	s := open(t, "unix://"+srv.Socket())
	hourly := lease.Rate{Burst: 5, Per: 5 * time.Hour}
	take := func(name string, r lease.Rate, cost int) lease.Taken {
		t.Helper()
		taken, err := s.Take(t.Context(), name, r, cost)
		if err != nil {
			t.Fatal(err)
		}
		return taken
	}
	for _, c := range []struct{ cost, remaining int }{{1, 4}, {3, 1}, {1, 0}} {
		if got := take("a", hourly, c.cost); !got.OK || got.Remaining != c.remaining || got.RetryAfter != 0 {
			t.Errorf("cost %d: %+v, want it with %d remaining", c.cost, got, c.remaining)
		}
	}
	for _, c := range []struct {
		cost  int
		after time.Duration
	}{{1, time.Hour}, {5, 5 * time.Hour}} {
		if got := take("a", hourly, c.cost); got.OK || (got.RetryAfter-c.after).Abs() > time.Minute {
			t.Errorf("cost %d: %+v, want it in %v", c.cost, got, c.after)
		}
	}
	if got := take("b", hourly, 5); !got.OK {
		t.Errorf("another name: %+v", got)
	}
	// B43: what was taken under a slower rate, or before a clock was set back, blocks for no
	// longer than a full burst takes to come back.
	if got := take("a", lease.Rate{Burst: 2, Per: 2 * time.Minute}, 1); got.OK || got.RetryAfter > time.Minute {
		t.Errorf("under a faster rate: %+v, want it in a minute at most", got)
	}
	if ttl := srv.Must("PTTL", s.key("a", "rate")).(int64); ttl <= 0 || ttl > (5*time.Hour).Milliseconds() {
		t.Errorf("the key lives for %d ms", ttl)
	}
	refills := lease.Rate{Burst: 1, Per: 50 * time.Millisecond}
	took := time.Now()
	take("c", refills, 1)
	for !take("c", refills, 1).OK {
	}
	if took := time.Since(took); took < 50*time.Millisecond {
		t.Errorf("refilled after %v, want 50ms", took)
	}
}

func TestRateIsExactUnderLoad(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, "unix://"+srv.Socket())
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				got, err := s.Take(t.Context(), "a", lease.Rate{Burst: 100, Per: 1000 * time.Hour}, 1)
				if err != nil {
					t.Error(err)
				}
				if got.OK {
					taken.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if taken.Load() != 100 {
		t.Errorf("%d of 400 were taken under a burst of 100", taken.Load())
	}
}

func TestB43ARateThatCanNeverBe(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, "unix://"+srv.Socket())
	for _, c := range []struct {
		name string
		rate lease.Rate
		cost int
	}{
		{"a", lease.Rate{Burst: 5, Per: time.Minute}, 6},
		{"a", lease.Rate{Burst: 5, Per: time.Minute}, 0},
		{"a", lease.Rate{Burst: 0, Per: time.Minute}, 1},
		{"a", lease.Rate{Burst: 5, Per: 0}, 1},
		{"a}", lease.Rate{Burst: 5, Per: time.Minute}, 1},
	} {
		if _, err := s.Take(t.Context(), c.name, c.rate, c.cost); !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("%+v: %v, want ErrInvalid", c, err)
		}
	}
}

func TestLocksAreListed(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, "unix://"+srv.Socket(), func(o *Options) { o.Prefix = "a*b" })
	other := open(t, "unix://"+srv.Socket(), func(o *Options) { o.Prefix = "aXb" })
	for _, c := range []struct {
		store *Store
		lock  string
	}{{s, "one"}, {s, "two/x"}, {other, "three"}} {
		if _, err := c.store.Acquire(t.Context(), lease.Request{
			Claim: lease.Claim{Lock: c.lock, Token: lease.NewToken()}, TTL: time.Minute,
		}); err != nil {
			t.Fatal(err)
		}
	}
	names, err := s.Locks(t.Context())
	if err != nil || len(names) != 2 || (names[0] != "one" && names[1] != "one") {
		t.Errorf("%v, %v; want one and two/x", names, err)
	}
}
