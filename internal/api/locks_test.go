package api

import (
	"bufio"
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
		if err != nil || resp.StatusCode != 200 {
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

func TestLockRefusals(t *testing.T) {
	jobs(t, func(t *testing.T, a, _ *jobPod) {
		token := strings.Repeat("0", 32)
		for _, c := range []struct {
			method, path, body string
			status             int
			code               string
		}{
			{"POST", "/locks/A", "", 400, "invalid"},
			{"POST", "/locks/a%20b", "", 400, "invalid"},
			{"POST", "/locks/x", `{"lese":"1s"}`, 400, "invalid"},
			{"POST", "/locks/x", `{"lease":5}`, 400, "invalid"},
			{"POST", "/locks/x", `{"lease":"5"}`, 400, "invalid"},
			{"POST", "/locks/x", `{"wait":"-1s"}`, 400, "invalid"},
			{"POST", "/locks/x", `{"slots":-1}`, 400, "invalid"},
			{"POST", "/locks/x", `{"owner":"` + strings.Repeat("x", 200) + `"}`, 400, "invalid"},
			{"POST", "/locks/x", `{"owner":"` + strings.Repeat("x", 70000) + `"}`, 413, "too_large"},
			{"PUT", "/locks/x", `{}`, 400, "invalid"},
			{"PUT", "/locks/x", `{"token":"` + token + `","done":true}`, 400, "invalid"},
			{"PUT", "/locks/x", `{"token":"` + token + `"}`, 409, "lost"},
			{"DELETE", "/locks/x", `{"token":"0"}`, 400, "invalid"},
			{"DELETE", "/locks/x", `{"token":"` + token + `","done":true}`, 400, "invalid"},
			{"DELETE", "/locks/x", `{"token":"` + token + `"}`, 409, "lost"},
			{"POST", "/rate/x", `{"rate":"5"}`, 400, "invalid"},
			{"POST", "/rate/x", `{"rate":"0/1m"}`, 400, "invalid"},
			{"POST", "/rate/x", `{"rate":"5/1m","cost":6}`, 400, "invalid"},
			{"PATCH", "/locks/x", ``, 405, "method"},
		} {
			if g := a.json(c.method, c.path, c.body, c.status); g.Error != c.code || g.Message == "" {
				t.Errorf("%s %s %.60s: %+v, want %s", c.method, c.path, c.body, g, c.code)
			}
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

// stream opens a hold stream.
func (p *jobPod) stream(ctx context.Context, body string) (next func() got, stop func()) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", "http://localhost:4040/locks/x/hold", strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	lines := bufio.NewScanner(resp.Body)
	return func() got {
		p.t.Helper()
		if !lines.Scan() {
			p.t.Fatalf("the stream ended: %v", lines.Err())
		}
		var g got
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			p.t.Fatalf("%q: %v", lines.Text(), err)
		}
		return g
	}, func() { resp.Body.Close() }
}

func TestHold(t *testing.T) {
	jobs(t, func(t *testing.T, a, b *jobPod) {
		next, stop := a.stream(t.Context(), `{"owner":"w"}`)
		if g := next(); g.Event != "acquired" || g.Token == "" || g.Fence == 0 || g.Owner != "w" {
			t.Errorf("%+v", g)
		}
		from := time.Now()
		for time.Since(from) < time.Hour {
			if g := next(); g.Event != "ping" || g.ValidForMS != 19798 {
				t.Fatalf("after %v: %+v", time.Since(from), g)
			}
		}
		if g := b.json("POST", "/locks/x", "", 409); g.Error != "held" {
			t.Errorf("%+v", g)
		}
		stop()
		synctest.Wait()
		b.json("POST", "/locks/x", "", 200)
	})
}

func TestHoldTellsOfALoss(t *testing.T) {
	jobs(t, func(t *testing.T, a, _ *jobPod) {
		next, stop := a.stream(t.Context(), `{"at_most_for":"1m"}`)
		defer stop()
		last := next()
		for last.Event != "lost" {
			last = next()
		}
		if last.Reason != "at_most_for" {
			t.Errorf("%+v", last)
		}
	})
}

func TestHoldEndsWithTheSidecar(t *testing.T) {
	jobs(t, func(t *testing.T, a, b *jobPod) {
		next, stop := a.stream(t.Context(), "")
		defer stop()
		next()
		a.locks.Close(t.Context(), 0)
		if g := next(); g.Event != "lost" || g.Reason != "closing" {
			t.Errorf("%+v", g)
		}
		b.json("POST", "/locks/x", "", 200)
	})
}

// A client that does not read may go on for as long as it was told that it may.
func TestHoldOfASlowClient(t *testing.T) {
	jobs(t, func(t *testing.T, a, b *jobPod) {
		next, stop := a.stream(t.Context(), "")
		defer stop()
		next()
		from := time.Now()
		for b.json("GET", "/locks/x", "", 200); time.Since(from) < 15*time.Second; time.Sleep(time.Second) {
			if g := b.json("POST", "/locks/x", "", 409); g.Error != "held" {
				t.Fatalf("after %v: %+v", time.Since(from), g)
			}
		}
		b.json("POST", "/locks/x", `{"wait":"1m"}`, 200)
	})
}
