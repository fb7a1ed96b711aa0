package podmeta

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

func TestShowsWhoLeads(t *testing.T) {
	bubble(t, func(t *testing.T, store *leasetest.Memory) {
		a, b := start(t, store, "pod-a"), start(t, store, "pod-b")
		labels, annotations, events := a.api.get()
		v := a.View()
		if labels[Prefix+"role"] != RoleLeader || labels["app"] != "x" || annotations["other"] != "y" {
			t.Errorf("labels %v, annotations %v", labels, annotations)
		}
		for key, want := range map[string]string{
			"lock": "city-ids", "leader": "pod-a", "reason": "acquired", "since": v.Since.UTC().Format(time.RFC3339),
		} {
			if got := annotations[Prefix+key]; got != want {
				t.Errorf("annotation %s is %q, want %q", key, got, want)
			}
		}
		if !slices.Equal(events, []string{"Leading"}) || a.api.condition != "True" {
			t.Errorf("events %q, condition %q", events, a.api.condition)
		}
		labels, annotations, events = b.api.get()
		if labels[Prefix+"role"] != RoleStandby || annotations[Prefix+"leader"] != "pod-a" || len(events) != 0 || b.api.condition != "False" {
			t.Errorf("the standby: %v, %v, events %q, condition %q", labels, annotations, events, b.api.condition)
		}

		// Renewals are no news.
		calls := a.api.calls
		time.Sleep(time.Minute)
		if a.api.calls != calls {
			t.Errorf("%d calls in a minute without news", a.api.calls-calls)
		}

		if err := a.Resign(t.Context(), elector.Resignation{Done: true}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if a.api.role() != RoleStandby || b.api.role() != RoleLeader {
			t.Errorf("after a hand-over: %s and %s", a.api.role(), b.api.role())
		}
		if _, _, events := a.api.get(); !slices.Equal(events, []string{"Leading", "NotLeading"}) {
			t.Errorf("events %q", events)
		}
	})
}

// What a crashed predecessor left is cleared at once, though nobody leads yet.
func TestClearsStaleMarks(t *testing.T) {
	bubble(t, func(t *testing.T, store *leasetest.Memory) {
		first := start(t, store, "pod-b")
		first.link.SetDown(true)
		a := start(t, store, "pod-a", func(*Config) {})
		if labels, annotations, _ := a.api.get(); labels[Prefix+"role"] != RoleStandby || annotations[Prefix+"leader"] == "pod-a" {
			t.Errorf("%v, %v", labels, annotations)
		}
	})
}

// A pod that ends is shown as it was: its Service switches to the next in one step.
func TestStopLeavesTheMarks(t *testing.T) {
	bubble(t, func(t *testing.T, store *leasetest.Memory) {
		a, b := start(t, store, "pod-a"), start(t, store, "pod-b")
		a.Drain()
		synctest.Wait()
		a.stop()
		if a.api.role() != RoleLeader {
			t.Errorf("role %q after a planned stop", a.api.role())
		}
		b.await(t, RoleLeader, time.Second)
		if _, _, events := a.api.get(); !slices.Equal(events, []string{"Leading", "NotLeading"}) {
			t.Errorf("events %q", events)
		}
		// The same where the app says that it has finished before the stop.
		b.Drain()
		synctest.Wait()
		if err := b.Resign(t.Context(), elector.Resignation{Done: true}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if b.api.role() != RoleLeader {
			t.Errorf("role %q after a resignation in a drain", b.api.role())
		}
	})
}

// A term that is lost is cleared at once, also while the pod drains.
func TestLossClearsTheMarks(t *testing.T) {
	for _, drains := range []bool{false, true} {
		bubble(t, func(t *testing.T, store *leasetest.Memory) {
			a := start(t, store, "pod-a")
			if drains {
				a.Drain()
				synctest.Wait()
			}
			a.link.SetDown(true)
			a.await(t, RoleStandby, 10*time.Second)
		})
	}
}

// Whatever the API server does, the election goes on, and the newest state is shown in
// the end.
func TestTroubleCostsTheElectionNothing(t *testing.T) {
	for kind, err := range map[string]error{
		"forbidden": refusal("forbidden"), "conflict": refusal("conflict"), "throttled": refusal("throttled"),
		"other": errors.New("connection refused"),
	} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, store *leasetest.Memory) {
				var log bytes.Buffer
				a := start(t, store, "pod-a", func(c *Config) {
					c.API.(*server).setFail(func(string) error { return err })
					c.Log = slog.New(slog.NewTextHandler(&log, nil))
				})
				time.Sleep(10 * time.Minute)
				if v := a.View(); !v.Leading {
					t.Fatalf("%s (%s)", v.Phase, v.Reason)
				}
				s := a.actor.Stats()
				if n := s.Errors[kind]; n < 10 || n > 200 || !s.Behind || s.Marks != 0 {
					t.Errorf("%+v: want some errors, and not many", s)
				}
				if n := strings.Count(log.String(), "can't mark the pod"); n != 1 {
					t.Errorf("said %d times:\n%s", n, log.String())
				}
				a.api.setFail(nil)
				time.Sleep(maxBackoff + time.Second)
				synctest.Wait()
				if s := a.actor.Stats(); s.Behind || s.Marks != 1 || a.api.role() != RoleLeader {
					t.Errorf("%+v, role %s", s, a.api.role())
				}
				if _, _, events := a.api.get(); !slices.Equal(events, []string{"Leading"}) {
					t.Errorf("events %q", events)
				}
			})
		})
	}
}

// A change is tried at once, also in the pause after a failure.
func TestNewsAreTriedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, store *leasetest.Memory) {
		a := start(t, store, "pod-a")
		a.api.setFail(func(string) error { return refusal("unavailable") })
		a.link.SetDown(true)
		time.Sleep(5 * time.Minute) // not leading any more, in the longest pause
		a.api.setFail(nil)
		a.link.SetDown(false)
		synctest.Wait()
		for !a.View().Leading {
			time.Sleep(time.Millisecond)
		}
		a.await(t, RoleLeader, 10*time.Millisecond)
	})
}

// A server that never answers holds up neither the election nor the end.
func TestEndIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, store *leasetest.Memory) {
		a := start(t, store, "pod-a", func(c *Config) { c.API, c.LastWords = silent{}, 700*time.Millisecond })
		b := start(t, store, "pod-b")
		time.Sleep(3 * time.Minute)
		from := time.Now()
		a.stop()
		if took := time.Since(from); took != 700*time.Millisecond {
			t.Errorf("ended after %v", took)
		}
		b.await(t, RoleLeader, time.Second)
	})
}

// An Event that the end breaks off is said once more, and once only.
func TestEventBrokenOffByTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, store *leasetest.Memory) {
		slow := &slowEvents{server: newServer(), started: make(chan struct{}, 8)}
		a := start(t, store, "pod-a", func(c *Config) { c.API = slow })
		<-slow.started
		a.stop()
		if _, _, events := slow.get(); !slices.Equal(events, []string{"Leading", "NotLeading"}) {
			t.Errorf("events %q", events)
		}
	})
}

// slowEvents breaks the first Event off with its context.
type slowEvents struct {
	*server
	started chan struct{}
	once    sync.Once
}

func (s *slowEvents) CreateEvent(ctx context.Context, body []byte) error {
	first := false
	s.once.Do(func() { first = true })
	if first {
		s.started <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	return s.server.CreateEvent(ctx, body)
}

// Of more Events than the API server takes, the newest are kept.
func TestEventsAreBounded(t *testing.T) {
	a := New(Config{Pod: me, Elections: make([]Election, 1)})
	for i := range uint64(200) {
		v := elector.View{State: elector.State{Lock: "l", Fence: i / 2, Version: int64(i + 1)}, Leading: i%2 == 0}
		a.take(0, v)
	}
	if s := a.Stats(); len(a.queue) != maxEvents || s.Dropped != 200-maxEvents || !strings.Contains(string(a.queue[maxEvents-1]), "99") {
		t.Errorf("%d wait, %d dropped, the last: %s", len(a.queue), s.Dropped, a.queue[len(a.queue)-1])
	}
}
