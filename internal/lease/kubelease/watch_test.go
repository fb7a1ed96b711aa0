package kubelease

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

func (c *client) candidate() *lease.Candidate {
	return &lease.Candidate{Store: c.Store, Timing: timing, Clock: leasetest.NewClock(1).Now}
}

// leads acquires as a candidate does, in the background. The term ends with the test.
func (c *client) leads(who string) <-chan *lease.Term {
	terms := make(chan *lease.Term, 1)
	c.leadsTo(who, terms)
	return terms
}

func (c *client) leadsTo(who string, terms chan<- *lease.Term) {
	c.running.Go(func() {
		r := ask(who)
		r.Token = ""
		if term, err := c.candidate().Acquire(c.t.Context(), r); err == nil {
			terms <- term
			<-c.t.Context().Done()
			term.Stop(nil)
		}
	})
}

// wait makes a lead and b for it, frees the lock, and returns how long b took.
func wait(t *testing.T, s *server, free func(a, b *client, term *lease.Term)) time.Duration {
	t.Helper()
	a, b := newClient(t, s), newClient(t, s)
	term := <-a.leads("a")
	next := b.leads("b")
	time.Sleep(time.Minute)
	synctest.Wait()
	from := time.Now()
	free(a, b, term)
	led := <-next
	if led.Grant().Fence <= term.Grant().Fence {
		t.Errorf("fence %d after %d", led.Grant().Fence, term.Grant().Fence)
	}
	return time.Since(from)
}

func release(_, _ *client, term *lease.Term) { _, _ = term.Release(context.Background()) }

const leaseDuration = 15 * time.Second // of lease.DefaultTiming

func TestWaking(t *testing.T) {
	const late = leaseDuration + spread + 50*time.Millisecond
	for what, c := range map[string]struct {
		free func(*testing.T, *server) func(a, b *client, term *lease.Term)
		want time.Duration
	}{
		"a release": {func(*testing.T, *server) func(a, b *client, term *lease.Term) { return release }, spread},
		"a deleted object": {func(_ *testing.T, s *server) func(a, b *client, term *lease.Term) {
			return func(a, _ *client, _ *lease.Term) { a.w.setDown(true); s.change(name, nil) }
		}, spread},
		"a crash": {func(*testing.T, *server) func(a, b *client, term *lease.Term) {
			return func(_, _ *client, term *lease.Term) { term.Stop(nil) }
		}, late},
		"a release while the watch is down": {func(_ *testing.T, s *server) func(a, b *client, term *lease.Term) {
			return func(a, b *client, term *lease.Term) { s.endWatches(); release(a, b, term) }
		}, firstPause + spread},
		"an object deleted while the watch is down": {func(_ *testing.T, s *server) func(a, b *client, term *lease.Term) {
			return func(a, _ *client, _ *lease.Term) { s.endWatches(); a.w.setDown(true); s.change(name, nil) }
		}, firstPause + spread},
		"a release that a deaf watch does not show": {func(*testing.T, *server) func(a, b *client, term *lease.Term) {
			return func(a, b *client, term *lease.Term) { b.w.setDown(true); b.w.setDown(false); release(a, b, term) }
		}, late},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				if took := wait(t, s, c.free(t, s)); took > c.want {
					t.Errorf("took %v, want at most %v", took, c.want)
				}
			})
		})
	}
}

func TestWithoutPermissionToWatch(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.refuse("WATCH", 403, metav1.StatusReasonForbidden)
		var log bytes.Buffer
		if took := wait(t, s, func(a, b *client, term *lease.Term) {
			b.opt.Log = slog.New(slog.NewTextHandler(&log, nil))
			release(a, b, term)
		}); took > leaseDuration+spread+time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
	bubble(t, func(t *testing.T, s *server) {
		s.refuse("WATCH", 403, metav1.StatusReasonForbidden)
		a, b := newClient(t, s), newClient(t, s)
		var log bytes.Buffer
		b.opt.Log = slog.New(slog.NewTextHandler(&log, nil))
		a.grant(ask("a"))
		inbox, err := b.Join(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		r := ask("b")
		r.Waiter = inbox.Waiter
		b.refused(r)
		time.Sleep(time.Hour)
		inbox.Leave()
		_ = b.Close()
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "get, create, update and watch") {
			t.Errorf("%d lines in an hour: %s", n, log.String())
		}
		if n := b.w.counts()["WATCH"]; n < 60 || n > 300 {
			t.Errorf("%d watches in an hour", n)
		}
	})
}

// A watch is for those who wait, and one is enough.
func TestWatchesEndWithTheLastWaiter(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a, b := newClient(t, s), newClient(t, s)
		a.grant(ask("a"))
		var leave []func()
		for range 3 {
			inbox, err := b.Join(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			r := ask("b")
			r.Waiter = inbox.Waiter
			b.refused(r)
			leave = append(leave, inbox.Leave)
		}
		synctest.Wait()
		open := func() (n int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for st := range s.streams {
				select {
				case <-st.closed:
				default:
					n++
				}
			}
			return n
		}
		for i, f := range leave {
			if n := open(); n != 1 {
				t.Errorf("%d watches after %d have left", n, i)
			}
			f()
			synctest.Wait()
		}
		if n := open(); n != 0 {
			t.Errorf("%d watches after all have left", n)
		}
	})
}

// A waiter is told who holds with each renewal, and of a holder that it has not seen.
func TestWaitersAreToldWhoHolds(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a, b, c := newClient(t, s), newClient(t, s), newClient(t, s)
		r := ask("a")
		g := a.grant(r)
		inbox, err := b.Join(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer inbox.Leave()
		w := ask("b")
		w.Waiter = inbox.Waiter
		b.refused(w)
		told := func(who string, fence uint64) {
			t.Helper()
			synctest.Wait()
			n := <-inbox.Notices
			if n.Now || n.Holder.Name != who || n.Term != fence || n.Left != timing.LeaseDuration ||
				n.LookAgain <= n.Left || n.Turn || n.Rank != -1 {
				t.Errorf("told %+v", n)
			}
		}
		synctest.Wait()
		time.Sleep(time.Second)
		if _, err := a.Extend(t.Context(), g, lease.Extension{TTL: timing.LeaseDuration}); err != nil {
			t.Fatal(err)
		}
		told("a", g.Fence)
		a.release(r, true)
		next := c.grant(ask("c"))
		time.Sleep(time.Second) // and not called, since c was faster
		synctest.Wait()
		if n := <-inbox.Notices; n.Now || n.Holder.Name != "c" || n.Term != next.Fence {
			t.Errorf("told %+v", n)
		}
	})
}
