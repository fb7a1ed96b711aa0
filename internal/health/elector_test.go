package health

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease"
)

// held is a store whose lock another holds. It answers, or is made to fail.
type held struct {
	call atomic.Pointer[func(context.Context) error] // what becomes of a call; nil: it is answered
}

func (h *held) fail(how func(context.Context) error) { h.call.Store(&how) }

func (h *held) Acquire(ctx context.Context, _ lease.Request) (lease.Grant, error) {
	if call := h.call.Load(); call != nil {
		return lease.Grant{}, (*call)(ctx)
	}
	return lease.Grant{}, &lease.HeldError{Held: lease.Held{
		Holder: lease.Holder{Identity: lease.Identity{Name: "pod-b"}},
		Fence:  7, Left: time.Second, LookAgain: 5 * time.Second,
	}}
}

func (h *held) Extend(context.Context, lease.Grant, lease.Extension) (lease.Extended, error) {
	return lease.Extended{}, lease.ErrLost
}

func (h *held) Release(context.Context, lease.Claim) (bool, error)         { return false, nil }
func (h *held) Inspect(context.Context, string) (info lease.Info, _ error) { return }

// gate is an elector.Gate that the test opens.
type gate struct {
	open   atomic.Bool
	opened chan struct{}
}

func (g *gate) Check() (elector.Reason, <-chan struct{}) {
	if g.open.Load() {
		return "", nil
	}
	return elector.Unhealthy, g.opened
}

// run runs an election on the store until the test ends, and returns a way to judge it.
func run(t *testing.T, store lease.Store, g elector.Gate) (judge func() (live, ready bool)) {
	t.Helper()
	began := time.Now()
	e, err := elector.New(elector.Config{
		Lock: "jobs", Identity: lease.Identity{Name: "pod-a"}, Store: store, Timing: lease.DefaultTiming, Gate: g,
		Clock: func() lease.Instant {
			return lease.Instant{Wall: time.Duration(time.Now().UnixNano()), Mono: time.Since(began)}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); e.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	s := New(Config{Elections: []Elector{e}})
	return func() (live, ready bool) {
		synctest.Wait()
		all := s.elections()
		return Live(all).OK, Ready(all, false).OK
	}
}

func hang(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
func refuse(context.Context) error   { return errors.New("connection refused") }
func notYet(context.Context) error   { return &lease.WaitError{For: time.Second} }
func mistaken(context.Context) error { return lease.ErrKind }

// Whatever the store does, the sidecar lives; and it stays ready once it has been answered.
func TestStore(t *testing.T) {
	for name, how := range map[string]func(context.Context) error{
		"hangs": hang, "refuses": refuse, "waits": notYet, "mistaken": mistaken,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &held{}
				store.fail(how)
				judge := run(t, store, nil)
				for range 600 {
					time.Sleep(time.Second)
					if live, ready := judge(); !live || ready {
						t.Fatalf("before its first answer: live %v, ready %v; want live, not ready", live, ready)
					}
				}
				store.call.Store(nil)
				time.Sleep(time.Minute)
				if live, ready := judge(); !live || !ready {
					t.Fatalf("answered: live %v, ready %v", live, ready)
				}
				store.fail(how)
				for range 600 {
					time.Sleep(time.Second)
					if live, ready := judge(); !live || !ready {
						t.Fatalf("after an answer: live %v, ready %v; want both", live, ready)
					}
				}
			})
		})
	}
}

// A loop that hangs, here in a store that breaks its promise to obey the context, is told
// when it has owed its sign of life for a lease.
func TestHungLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &held{}
		release := make(chan struct{})
		store.fail(func(context.Context) error { <-release; return errors.New("at last") })
		judge := run(t, store, nil)
		defer close(release)
		// The loop had 2 retry periods and a second of its own.
		time.Sleep(20 * time.Second)
		if live, _ := judge(); !live {
			t.Error("not live within the bound")
		}
		time.Sleep(time.Millisecond)
		if live, _ := judge(); live {
			t.Error("live beyond the bound")
		}
	})
}

// An app that starts only after its sidecar is ready, as with a startup probe of /readyz,
// would otherwise never start.
func TestWaitingForTheApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &held{}
		store.fail(refuse)
		g := &gate{opened: make(chan struct{})}
		judge := run(t, store, g)
		time.Sleep(time.Minute)
		if live, ready := judge(); !live || !ready {
			t.Fatalf("waiting for the app: live %v, ready %v", live, ready)
		}
		g.open.Store(true)
		close(g.opened)
		time.Sleep(time.Minute)
		if live, ready := judge(); !live || ready {
			t.Fatalf("the store does not answer: live %v, ready %v", live, ready)
		}
		store.call.Store(nil)
		time.Sleep(time.Minute)
		if _, ready := judge(); !ready {
			t.Fatal("answered, and not ready")
		}
	})
}
