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
)

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

// Whoever has the token may release; the stream says that it was no loss.
func TestHoldTellsOfARelease(t *testing.T) {
	jobs(t, func(t *testing.T, a, _ *jobPod) {
		next, stop := a.stream(t.Context(), "")
		defer stop()
		a.json("DELETE", "/locks/x", `{"token":"`+next().Token+`"}`, 200)
		if g := next(); g.Event != "released" {
			t.Errorf("%+v", g)
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
