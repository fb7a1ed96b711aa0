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

// A reply that is lost, or comes as a broken connection, does not change what happened.
var lostReplies = map[string]leasetest.Fate{"mute": {Mute: true}, "cut": {Cut: true}}

func TestALostReplyOfAnAcquireIsOurs(t *testing.T) {
	for what, fate := range lostReplies {
		for _, op := range []string{"POST", "PUT"} {
			t.Run(what+" "+op, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer(t)
					a := newClient(t, s)
					a.w.set(nth(op, 0, fate))
					r := ask("a")
					a.unanswered(func(ctx context.Context) error {
						_, err := a.Acquire(ctx, r)
						return err
					})
					before := s.get(name)
					g := a.grant(r)
					after := s.get(name)
					if g.Fence != after.fence || op == "PUT" && g.Fence != before.fence {
						t.Errorf("granted %d, stored %d, before %d", g.Fence, after.fence, before.fence)
					}
					if n, _, _ := unstructured.NestedInt64(after.obj.Object, "spec", "leaseTransitions"); n != 1 {
						t.Errorf("%d transitions", n)
					}
				})
			})
		}
	}
}

func TestALostReplyOfARenewal(t *testing.T) {
	for what, fate := range lostReplies {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				a := newClient(t, s)
				g := a.grant(ask("a"))
				a.w.set(nth("PUT", 1, fate))
				a.unanswered(func(ctx context.Context) error {
					_, err := a.Extend(ctx, g, lease.Extension{TTL: timing.LeaseDuration})
					return err
				})
				for range 2 {
					x, err := a.Extend(t.Context(), g, lease.Extension{TTL: timing.LeaseDuration})
					if err != nil || x.Left != timing.LeaseDuration {
						t.Errorf("Extend: %+v, %v", x, err)
					}
				}
				if n := a.w.counts()["GET"]; n != 2 {
					t.Errorf("%d GETs, want one for the grant and one after the lost reply", n)
				}
			})
		})
	}
}

func TestALostReplyOfARelease(t *testing.T) {
	for what, fate := range lostReplies {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				a := newClient(t, s)
				r := ask("a")
				a.grant(r)
				a.w.set(nth("PUT", 1, fate))
				a.unanswered(func(ctx context.Context) error {
					_, err := a.Release(ctx, r.Claim)
					return err
				})
				a.release(r, true)
				if s.get(name).held {
					t.Error("held")
				}
				if _, err := a.Acquire(t.Context(), r); !errors.Is(err, lease.ErrBurned) {
					t.Errorf("Acquire: %v, want ErrBurned", err)
				}
			})
		})
	}
}

// A waiter that never could have been granted anything leaves without a request, and its
// token is burned all the same.
func TestAWaiterGivesUpForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a, b := newClient(t, s), newClient(t, s)
		held := ask("a")
		a.grant(held)
		r := ask("b")
		inbox, err := b.Join(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer inbox.Leave()
		r.Waiter = inbox.Waiter
		b.refused(r)
		before := b.w.counts()
		b.release(r, false)
		if after := b.w.counts(); after["GET"] != before["GET"] || after["PUT"] != before["PUT"] {
			t.Errorf("requests %v, then %v", before, after)
		}
		a.release(held, true)
		if _, err := b.Acquire(t.Context(), r); !errors.Is(err, lease.ErrBurned) {
			t.Errorf("Acquire: %v, want ErrBurned", err)
		}
	})
}

// One whose write may still be on its way burns its token where it counts.
func TestAWaiterThatWroteBurnsItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := newClient(t, s)
		r := ask("a")
		inbox, err := a.Join(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer inbox.Leave()
		r.Waiter = inbox.Waiter
		a.w.set(nth("PUT", 0, leasetest.Fate{Delay: 10 * time.Second}))
		a.unanswered(func(ctx context.Context) error {
			_, err := a.Acquire(ctx, r)
			return err
		})
		a.release(r, false)
		time.Sleep(20 * time.Second)
		if now := s.get(name); now.held || len(now.burned) != 1 {
			t.Errorf("held %v, burned %v", now.held, now.burned)
		}
	})
}

// A fence rises whatever becomes of the object.
func TestFencesRiseWithoutTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := newClient(t, s)
		var last uint64
		grant := func(what string) {
			t.Helper()
			r := ask("a")
			if g := a.grant(r); g.Fence <= last {
				t.Errorf("%s: fence %d after %d", what, g.Fence, last)
			} else {
				last = g.Fence
			}
			a.release(r, true)
		}
		grant("first")
		for range 5 {
			s.change(name, nil)
			grant("deleted and made anew within a second")
		}
		old := s.get(name).obj
		for range 3 {
			time.Sleep(time.Second)
			grant("later")
		}
		time.Sleep(time.Second)
		s.change(name, func(obj *unstructured.Unstructured) { obj.Object = old.DeepCopy().Object })
		grant("restored from a backup")
		if want := uint64(time.Now().Unix()) * 1e6; last < want || last > want+1e6 {
			t.Errorf("fence %d, want the time, %d", last, want)
		}
	})
}
