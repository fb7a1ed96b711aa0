package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/joblock"
	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// A jobPod is a sidecar that keeps locks for its app.
type jobPod struct {
	*sidecar
	locks *joblock.Locks
	link  *leasetest.Link
}

func newJobPod(t testing.TB, memory *leasetest.Memory, name string) *jobPod {
	t.Helper()
	p := &jobPod{link: leasetest.NewLink(memory.NewProcess(name))}
	p.locks = joblock.New(joblock.Config{
		Store: p.link, Identity: lease.Identity{Name: name}, Clock: leasetest.NewClock(1).Now,
	})
	p.sidecar = serve(t, Config{Locks: p.locks, Store: p.link, Limiter: unlimited{}})
	t.Cleanup(func() {
		p.link.SetDown(false)
		p.locks.Close(context.Background(), 0)
		p.stop()
		p.link.Close()
	})
	return p
}

type unlimited struct{}

func (unlimited) Take(_ context.Context, _ string, r lease.Rate, cost int) (lease.Taken, error) {
	if cost > r.Burst || cost < 1 {
		return lease.Taken{}, lease.ErrInvalid
	}
	if cost == 3 {
		return lease.Taken{RetryAfter: 1500 * time.Millisecond, Remaining: 2}, nil
	}
	return lease.Taken{OK: true, Remaining: 4}, nil
}

// got is any answer.
type got struct {
	Lock, Token, Owner, Error, Message, Holder, Event, Reason string
	Slot, Count, Rank, Remaining                              int
	Fence                                                     uint64
	ValidForMS                                                int64 `json:"valid_for_ms"`
	RetryAfterMS                                              int64 `json:"retry_after_ms"`
	Held, Allowed                                             bool
	Released                                                  any
	Run                                                       *runStatus
}

func (s *sidecar) json(method, path, body string, status int) got {
	s.t.Helper()
	code, text := s.do(method, path, body)
	var g got
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		s.t.Fatalf("%s %s: %d %q: %v", method, path, code, text, err)
	}
	if code != status {
		s.t.Errorf("%s %s %s: %d %s, want %d", method, path, body, code, text, status)
	}
	if (g.Error == "") != (code == http.StatusOK) {
		s.t.Errorf("%s %s: %d %s", method, path, code, text)
	}
	return g
}

// jobs runs f with two sidecars in a bubble.
func jobs(t *testing.T, f func(t *testing.T, a, b *jobPod)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		memory := leasetest.NewMemory(leasetest.Config{Lease: joblock.DefaultLease})
		f(t, newJobPod(t, memory, "pod-a"), newJobPod(t, memory, "pod-b"))
	})
}

func TestLockRoutes(t *testing.T) {
	jobs(t, func(t *testing.T, a, b *jobPod) {
		g := a.json("POST", "/locks/team/stock", `{"owner":"w1","lease":"30s"}`, 200)
		if g.Lock != "team/stock" || g.Owner != "w1" || g.Fence == 0 || g.Count != 1 || g.ValidForMS != 19798 || len(g.Token) != 32 {
			t.Errorf("%+v", g)
		}
		h := b.json("POST", "/locks/team/stock", "", 409)
		if h.Error != "held" || h.Holder != "pod-a/w1" || h.Rank != -1 || h.RetryAfterMS < 1 {
			t.Errorf("%+v", h)
		}
		time.Sleep(time.Second)
		if g := a.json("PUT", "/locks/team/stock", `{"token":"`+g.Token+`"}`, 200); g.ValidForMS != 19798 || g.Fence == 0 {
			t.Errorf("%+v", g)
		}
		if r := a.json("DELETE", "/locks/team/stock", `{"token":"`+g.Token+`"}`, 200); !r.Held || r.Released != true {
			t.Errorf("%+v", r)
		}
		if r := a.json("POST", "/locks/team%2Fstock/release", `{"token":"`+g.Token+`"}`, 200); !r.Held || r.Released != true {
			t.Errorf("%+v", r)
		}
		b.json("POST", "/locks/team/stock", "", 200)
		if r := a.json("PUT", "/locks/team/stock", `{"token":"`+g.Token+`"}`, 409); r.Error != "lost" {
			t.Errorf("%+v", r)
		}
	})
}

func TestReleaseThroughAnotherSidecar(t *testing.T) {
	jobs(t, func(t *testing.T, a, b *jobPod) {
		g := a.json("POST", "/locks/x", `{"slots":3}`, 200)
		if r := b.json("POST", "/locks/x/release", `{"token":"`+g.Token+`"}`, 200); !r.Held || r.Released != true {
			t.Errorf("%+v", r)
		}
		g = a.json("POST", "/locks/x", `{"slots":3,"reenter":true,"owner":"w"}`, 200)
		if r := b.json("POST", "/locks/x/release", `{"token":"`+g.Token+`"}`, 400); r.Error != "invalid" {
			t.Errorf("%+v", r)
		}
	})
}

func TestTheTokenMayBeInAHeader(t *testing.T) {
	jobs(t, func(t *testing.T, a, _ *jobPod) {
		g := a.json("POST", "/locks/x", "", 200)
		r, err := http.NewRequestWithContext(t.Context(), "DELETE", "http://localhost:4040/locks/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Soloist-Token", g.Token)
		resp, err := a.client.Do(r)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", resp, err)
		}
		resp.Body.Close()
	})
}

func TestOnceRoutes(t *testing.T) {
	jobs(t, func(t *testing.T, a, b *jobPod) {
		g := a.json("POST", "/locks/nightly", `{"once":"2026-11-21","keep":"168h","at_least_for":"5s"}`, 200)
		time.Sleep(time.Second)
		a.json("DELETE", "/locks/nightly", `{"token":"`+g.Token+`","done":true}`, 200)
		d := b.json("POST", "/locks/nightly", `{"once":"2026-11-21"}`, 410)
		if d.Error != "done" || d.Run == nil || d.Run.By != "pod-a" || d.Run.TookMS != 1000 || d.Run.Fence != g.Fence {
			t.Errorf("%+v", d)
		}
		_, look := b.do("GET", "/locks/nightly", "")
		for _, want := range []string{`"resting":true`, `"expires_in_ms":4000`, `"last_run":{"once":"2026-11-21","by":"pod-a"`} {
			if !strings.Contains(look, want) {
				t.Errorf("%s lacks %s", look, want)
			}
		}
		if g := b.json("POST", "/locks/nightly", `{"once":"2026-11-22"}`, 409); g.Error != "held" {
			t.Errorf("%+v", g)
		}
	})
}

func TestLocksAreListedWithoutTokens(t *testing.T) {
	jobs(t, func(t *testing.T, a, b *jobPod) {
		one := a.json("POST", "/locks/x", `{"owner":"w"}`, 200)
		for _, path := range []string{"/locks", "/status", "/locks/x"} {
			_, body := a.do("GET", path, "")
			if strings.Contains(body, one.Token) || !strings.Contains(body, `"lock":"x"`) {
				t.Errorf("%s: %s", path, body)
			}
		}
		if _, body := b.do("GET", "/locks", ""); body != `{"locks":[]}`+"\n" {
			t.Errorf("%s", body)
		}
	})
}

func TestRateRoute(t *testing.T) {
	jobs(t, func(t *testing.T, a, _ *jobPod) {
		if g := a.json("POST", "/rate/sms", `{"rate":"5/1m"}`, 200); !g.Allowed || g.Remaining != 4 {
			t.Errorf("%+v", g)
		}
		if g := a.json("POST", "/rate/sms", `{"rate":"5/1m","cost":3}`, 429); g.Error != "rate" || g.RetryAfterMS != 1500 {
			t.Errorf("%+v", g)
		}
	})
}

func TestLocksWithoutAnAnswer(t *testing.T) {
	jobs(t, func(t *testing.T, a, _ *jobPod) {
		g := a.json("POST", "/locks/x", `{"lease":"2m"}`, 200)
		time.Sleep(time.Second)
		a.link.SetDown(true)
		for _, c := range []struct{ method, path, body string }{
			{"POST", "/locks/y", ""}, {"PUT", "/locks/x", `{"token":"` + g.Token + `"}`},
		} {
			if g := a.json(c.method, c.path, c.body, 503); g.Error != "unknown" {
				t.Errorf("%s: %+v", c.method, g)
			}
		}
		if code, body := a.do("GET", "/locks/x", ""); code != 503 {
			t.Errorf("GET: %d %s", code, body)
		}
		r := a.json("DELETE", "/locks/x", `{"token":"`+g.Token+`"}`, 200)
		if !r.Held || r.Released != "unknown" {
			t.Errorf("%+v, want it held, and its release unknown", r)
		}
	})
}
