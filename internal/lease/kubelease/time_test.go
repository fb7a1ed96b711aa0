package kubelease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// takes asks again and again, and returns how long it took until the grant.
func (c *client) takes(r lease.Request, limit time.Duration) time.Duration {
	c.t.Helper()
	for from := time.Now(); ; {
		if _, err := c.Acquire(c.t.Context(), r); err == nil {
			return time.Since(from)
		} else if !errors.Is(err, lease.ErrHeld) {
			c.t.Fatalf("Acquire: %v", err)
		}
		if time.Since(from) > limit {
			c.t.Fatalf("not granted within %v", limit)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func TestAnObserverWaitsAWholeLeaseSinceItSaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a, b := newClient(t, s), newClient(t, s)
		a.grant(ask("a"))
		time.Sleep(10 * time.Second)
		if took := b.takes(ask("b"), time.Minute); took < timing.LeaseDuration || took > timing.LeaseDuration+200*time.Millisecond {
			t.Errorf("taken over %v after it was first seen, want %v", took, timing.LeaseDuration)
		}
	})
}

// The reply is on its way for a while: what it shows may be as young as its arrival.
func TestAnObserverCountsFromTheReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a, b := newClient(t, s), newClient(t, s)
		a.grant(ask("a"))
		b.w.set(nth("GET", 0, leasetest.Fate{ReplyDelay: 3 * time.Second}))
		from := time.Now()
		b.takes(ask("b"), time.Minute)
		if took := time.Since(from); took < timing.LeaseDuration+3*time.Second {
			t.Errorf("taken over after %v, though the reply came after 3s", took)
		}
	})
}

func TestEachRenewalBeginsALeaseAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a, b := newClient(t, s), newClient(t, s)
		g := a.grant(ask("a"))
		r := ask("b")
		for range 100 {
			time.Sleep(timing.LeaseDuration * 2 / 3)
			b.refused(r)
			if _, err := a.Extend(t.Context(), g, lease.Extension{TTL: timing.LeaseDuration}); err != nil {
				t.Fatal(err)
			}
		}
		if took := b.takes(r, time.Minute); took < timing.LeaseDuration {
			t.Errorf("taken over %v after the last renewal was seen", took)
		}
		if _, err := a.Extend(t.Context(), g, lease.Extension{TTL: time.Second}); !errors.Is(err, lease.ErrLost) {
			t.Errorf("Extend: %v, want ErrLost", err)
		}
	})
}

// A controller that touches the object all the time is not the holder.
func TestOthersChangesDoNotProlongALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a, b := newClient(t, s), newClient(t, s)
		a.grant(ask("a"))
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Second):
					s.change(name, func(obj *unstructured.Unstructured) {
						obj.SetLabels(map[string]string{"touched": time.Now().Format("150405")})
					})
				}
			}
		}()
		if took := b.takes(ask("b"), time.Minute); took > timing.LeaseDuration+200*time.Millisecond {
			t.Errorf("taken over after %v", took)
		}
		if s.get(name).obj.GetLabels()["touched"] == "" {
			t.Error("what others wrote is gone")
		}
	})
}

// Wall clocks are for people.
func TestNobodyTrustsAWallClock(t *testing.T) {
	for ahead, want := range map[time.Duration]time.Duration{-time.Hour: 0, time.Hour: timing.LeaseDuration} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t)
			a, b := newClient(t, s), newClient(t, s)
			a.grant(ask("a"))
			s.change(name, func(obj *unstructured.Unstructured) {
				spec := obj.Object["spec"].(map[string]any)
				spec["renewTime"] = time.Now().Add(ahead).UTC().Format("2006-01-02T15:04:05.000000Z")
			})
			info, err := b.Inspect(t.Context(), name)
			if err != nil || len(info.Holders) != 1 || info.Holders[0].Left != want {
				t.Errorf("%+v, %v; want a holder with %v left", info, err, want)
			}
			if took := b.takes(ask("b"), time.Minute); took < timing.LeaseDuration || took > timing.LeaseDuration+200*time.Millisecond {
				t.Errorf("a clock %v ahead: taken over after %v", ahead, took)
			}
		})
	}
}

// Between the read and the write of who takes over, the holder's renewal arrives: the
// observer's machine slept, or the network did.
func TestATakeoverIsOfWhatWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a, b := newClient(t, s), newClient(t, s)
		g := a.grant(ask("a"))
		r := ask("b")
		b.refused(r)
		a.w.set(nth("PUT", 1, leasetest.Fate{Delay: timing.LeaseDuration + time.Second}))
		a.unanswered(func(ctx context.Context) error {
			_, err := a.Extend(ctx, g, lease.Extension{TTL: timing.LeaseDuration})
			return err
		})
		time.Sleep(timing.LeaseDuration - timing.RetryPeriod)
		b.w.set(nth("PUT", 0, leasetest.Fate{Delay: 2 * time.Second})) // after a's
		if h := b.refused(r); h.Left < timing.LeaseDuration-time.Second || h.Holder.Name != "a" {
			t.Errorf("%+v, want a whole lease of a", h)
		}
		if n := b.w.counts()["PUT"]; n != 1 {
			t.Errorf("%d PUTs, want one that came too late", n)
		}
	})
}

// Requests that arrive when all is over change nothing.
func TestLateWrites(t *testing.T) {
	late := leasetest.Fate{Delay: time.Minute}
	put := func(a *client, n int, call func(context.Context) error) {
		a.w.set(nth("PUT", n, late))
		a.unanswered(call)
	}
	for what, f := range map[string]func(a *client, r lease.Request){
		"acquire": func(a *client, r lease.Request) {
			put(a, 0, func(ctx context.Context) error {
				_, err := a.Acquire(ctx, r)
				return err
			})
			a.release(r, false)
		},
		"renewal": func(a *client, r lease.Request) {
			g := a.grant(r)
			put(a, 1, func(ctx context.Context) error {
				_, err := a.Extend(ctx, g, lease.Extension{TTL: timing.LeaseDuration})
				return err
			})
			a.release(r, true)
		},
		"release": func(a *client, r lease.Request) {
			a.grant(r)
			put(a, 1, func(ctx context.Context) error {
				_, err := a.Release(ctx, r.Claim)
				return err
			})
			time.Sleep(timing.LeaseDuration) // then it has run out
			a.release(r, false)
		},
		"acquire, of an object that was deleted": func(a *client, r lease.Request) {
			put(a, 0, func(ctx context.Context) error {
				_, err := a.Acquire(ctx, r)
				return err
			})
			a.w.s.change(name, nil)
		},
		"renewal, of an object that was deleted": func(a *client, r lease.Request) {
			g := a.grant(r)
			put(a, 1, func(ctx context.Context) error {
				_, err := a.Extend(ctx, g, lease.Extension{TTL: timing.LeaseDuration})
				return err
			})
			a.w.s.change(name, nil)
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				a, b := newClient(t, s), newClient(t, s)
				f(a, ask("a"))
				arrives := time.Now().Add(time.Minute)
				s.mu.Lock()
				gone := s.objects[name] == nil
				s.mu.Unlock()
				if gone {
					time.Sleep(time.Until(arrives.Add(time.Second)))
					s.mu.Lock()
					defer s.mu.Unlock()
					if s.objects[name] != nil {
						t.Errorf("made again: %v", s.objects[name])
					}
					return
				}
				r := ask("b")
				r.TTL = time.Hour
				g := b.grant(r)
				before := s.get(name).obj.GetResourceVersion()
				time.Sleep(time.Until(arrives.Add(time.Second)))
				if after := s.get(name).obj.GetResourceVersion(); after != before {
					t.Errorf("version %s, was %s: %v", after, before, s.get(name).obj)
				}
				if _, err := b.Extend(t.Context(), g, lease.Extension{TTL: time.Hour}); err != nil {
					t.Errorf("Extend: %v", err)
				}
			})
		})
	}
}
