package kubelease

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// wire is the network between one client and the server. It obeys a request's context, as
// net/http does; a request that is on its way is delivered all the same.
type wire struct {
	s    *server
	ctx  context.Context // ends with the test
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	trip    time.Duration // there, and back again
	fates   func(leasetest.Call) leasetest.Fate
	down    bool
	calls   map[string]int
	streams []*stream
}

func newWire(s *server) *wire {
	w := &wire{s: s, calls: map[string]int{}, fates: func(leasetest.Call) leasetest.Fate { return leasetest.Fate{} }}
	w.ctx, w.stop = context.WithCancel(context.Background())
	s.t.Cleanup(func() {
		w.stop()
		w.wg.Wait()
	})
	return w
}

// set changes what becomes of requests by op: GET, POST, PUT, WATCH.
func (w *wire) set(fates func(leasetest.Call) leasetest.Fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fates = fates
}

// setDown makes the wire a black hole, or heals it. Watches hear nothing again.
func (w *wire) setDown(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
	for _, st := range w.streams {
		st.mu.Lock()
		st.deaf = true
		st.mu.Unlock()
	}
}

func (w *wire) counts() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.calls)
}

func (w *wire) fate(op, name string) leasetest.Fate {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.fates(leasetest.Call{Op: op, N: w.calls[op], Lock: name})
	w.calls[op]++
	f.Lost = f.Lost || w.down
	f.Delay += w.trip
	f.ReplyDelay += w.trip
	return f
}

func (w *wire) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.ctx.Done():
		return false
	}
}

// CloseIdleConnections is what net/http's transport has too.
func (w *wire) CloseIdleConnections() {}

// RoundTrip is http.RoundTripper's.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	op, name := request(r, body)
	fate := w.fate(op, name)
	switch {
	case fate.Lost:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case fate.Refused:
		return nil, syscall.ECONNREFUSED
	}
	replies := make(chan reply, 1)
	w.wg.Go(func() {
		if !w.sleep(fate.Delay) {
			return
		}
		a := w.s.handle(r.Method, name, op == "WATCH", body)
		if fate.Again > 0 && op != "WATCH" {
			w.wg.Go(func() {
				if w.sleep(fate.Again) {
					w.s.handle(r.Method, name, false, body) // nobody waits for this answer
				}
			})
		}
		if !fate.Mute && w.sleep(fate.ReplyDelay) {
			replies <- a
		}
	})
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case a := <-replies:
		if fate.Cut {
			return nil, syscall.ECONNRESET
		}
		resp := &http.Response{
			StatusCode: a.code, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(a.body)),
			Header: http.Header{"Content-Type": {"application/json"}, "Date": {a.date.UTC().Format(http.TimeFormat)}},
			Body:   io.NopCloser(bytes.NewReader(a.body)),
		}
		if st := a.stream; st != nil {
			w.mu.Lock()
			w.streams = append(w.streams, st)
			st.mu.Lock()
			st.deaf = st.deaf || w.down
			st.mu.Unlock()
			w.mu.Unlock()
			context.AfterFunc(r.Context(), func() { _ = st.Close() })
			resp.Body, resp.ContentLength = st, -1
		}
		return resp, nil
	}
}

const name = "city-ids"

var timing = lease.DefaultTiming

// bubble runs f in a bubble with a server.
func bubble(t *testing.T, f func(t *testing.T, s *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newServer(t)) })
}

// client is a process with a Store of its own.
type client struct {
	*Store
	t *testing.T
	w *wire

	running sync.WaitGroup // waited for at the test's end
}

func newClient(t *testing.T, s *server) *client {
	t.Helper()
	w := newWire(s)
	store, err := Open(&rest.Config{Host: "http://server", Transport: w}, Options{Namespace: "shop", Lease: timing.LeaseDuration})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{Store: store, t: t, w: w}
	t.Cleanup(func() {
		c.running.Wait()
		_ = store.Close()
	})
	return c
}

func ask(who string) lease.Request {
	return lease.Request{
		Claim:  lease.Claim{Lock: name, Token: lease.NewToken()},
		Holder: lease.Identity{Name: who, PodUID: "uid-" + who, Address: "10.0.0.1:4040"},
		TTL:    timing.LeaseDuration,
	}
}

func (c *client) grant(r lease.Request) lease.Grant {
	c.t.Helper()
	g, err := c.Acquire(c.t.Context(), r)
	if err != nil {
		c.t.Fatalf("Acquire: %v", err)
	}
	return g
}

func (c *client) release(r lease.Request, want bool) {
	c.t.Helper()
	if held, err := c.Release(c.t.Context(), r.Claim); err != nil || held != want {
		c.t.Errorf("Release: %v, %v; want %v", held, err, want)
	}
}

// refused wants the lock to be held.
func (c *client) refused(r lease.Request) lease.Held {
	c.t.Helper()
	g, err := c.Acquire(c.t.Context(), r)
	var held *lease.HeldError
	if !errors.As(err, &held) {
		c.t.Fatalf("Acquire: %+v, %v; want a *HeldError", g, err)
	}
	return held.Held
}

// unanswered makes a call that must bring no answer within a retry period.
func (c *client) unanswered(call func(ctx context.Context) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), timing.RetryPeriod)
	defer cancel()
	if err := call(ctx); err == nil || lease.IsVerdict(err) {
		c.t.Fatalf("%v, want no answer", err)
	}
}

// nth gives the n-th request of op a fate, and all others none.
func nth(op string, n int, fate leasetest.Fate) func(leasetest.Call) leasetest.Fate {
	return func(c leasetest.Call) leasetest.Fate {
		if c.Op == op && c.N == n {
			return fate
		}
		return leasetest.Fate{}
	}
}
