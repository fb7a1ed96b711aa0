package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

// A resigning election takes down what is asked of it.
type resigning struct {
	*fixed
	got   []elector.Resignation
	err   error
	hang  bool
	asked chan struct{} // if not nil: told when it begins to hang
}

func (r *resigning) Resign(ctx context.Context, req elector.Resignation) error {
	r.got = append(r.got, req)
	if r.hang {
		if r.asked != nil {
			r.asked <- struct{}{}
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return r.err
}

func TestResign(t *testing.T) {
	e := &resigning{fixed: says(t, following())}
	s := New(Config{Elections: []Election{e}})
	for body, expected := range map[string]elector.Resignation{
		"":                  {},
		" \n":               {},
		"{}":                {},
		"{} \n":             {},
		`{"done":false}`:    {},
		`{"done":true}`:     {Done: true},
		`{"hold_off":"1m"}`: {HoldOff: time.Minute},
		`{"fence":42}`:      {Fence: 42},
		`{"fence":null}`:    {},
		`{"fence":1763683200123456,"hold_off":"1h0.5s","done":true}`: {Done: true, HoldOff: time.Hour + time.Second/2, Fence: 1763683200123456},
	} {
		e.got = nil
		want(t, ask(t, s, "POST", "/resign", body), 202, standbyBody+"\n")
		if len(e.got) != 1 || e.got[0] != expected {
			t.Errorf("%q: %+v, want %+v", body, e.got, expected)
		}
	}

	e.got = nil
	for _, body := range []string{
		"x", "null", "[]", `"done"`, "1", "{", `{"done"}`, `{"done":1}`, `{"done":"yes"}`, `{"finished":true}`,
		`{"done":true}{"done":true}`, `{"done":true} x`, `{}]`,
		`{"hold_off":5}`, `{"hold_off":"5"}`, `{"hold_off":"0s"}`, `{"hold_off":"-1s"}`, `{"hold_off":""}`,
		`{"fence":0}`, `{"fence":-1}`, `{"fence":"42"}`, `{"fence":1.5}`, `{"fence":18446744073709551616}`,
	} {
		w := ask(t, s, "POST", "/resign", body)
		wantCode(t, w, 400, "invalid")
		if strings.Contains(w.Body.String(), "resignBody") || strings.Contains(w.Body.String(), "json:") {
			t.Errorf("%q speaks of Go: %s", body, w.Body)
		}
	}
	for _, body := range []string{
		`{"done":` + strings.Repeat(" ", maxBody) + `true}`,
		`{"done":true}` + strings.Repeat(" ", maxBody),
	} {
		wantCode(t, ask(t, s, "POST", "/resign", body), 413, "too_large")
	}
	if len(e.got) != 0 {
		t.Errorf("resigned: %+v", e.got)
	}
	want(t, ask(t, s, "POST", "/resign", strings.Repeat(" ", maxBody-2)+"{}"), 202, standbyBody+"\n")

	e.err = fmt.Errorf("wrapped: %w", elector.ErrNotLeading)
	wantCode(t, ask(t, s, "POST", "/resign", ""), 409, "not_leading")
}

func TestResignOfElectionThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &resigning{fixed: says(t, leading()), hang: true}
		start := time.Now()
		w := ask(t, New(Config{Elections: []Election{e}}), "POST", "/resign", "")
		wantCode(t, w, 503, "busy")
		if took := time.Since(start); took != resignTimeout || w.Header().Get("Retry-After") != "1" {
			t.Errorf("took %v, %v", took, w.Header())
		}
	})
}

func TestResignOfElector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		_, term := a.get("/leader")
		for _, c := range []struct {
			pod    *pod
			body   string
			status int
		}{
			{b, `{"done":true}`, 409},
			{a, fmt.Sprintf(`{"done":true,"fence":%d}`, term.Fence+1), 409},
			{a, fmt.Sprintf(`{"fence":%d}`, term.Fence), 202},
			{a, `{}`, 409}, // it is handing over
			{a, `{"done":true}`, 202},
			{a, fmt.Sprintf(`{"done":true,"fence":%d}`, term.Fence), 409},
		} {
			if status, text := c.pod.do("POST", "/resign", c.body); status != c.status {
				t.Errorf("%s: %d %s", c.body, status, text)
			}
		}
		status, now := b.get("/leader?wait=1s&version=0")
		for status == 503 {
			status, now = b.get(fmt.Sprintf("/leader?wait=1s&version=%d", now.Version))
		}
		if now.Fence <= term.Fence {
			t.Errorf("fence %d after %d", now.Fence, term.Fence)
		}
		if status, b := a.get("/leader"); status != 503 || b.Leader {
			t.Errorf("%d %+v", status, b)
		}
	})
}

func TestDrain(t *testing.T) {
	e := idleElector(t, "jobs", "pod-a")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); e.Run(ctx) }()
	defer func() { cancel(); <-done }()
	want(t, ask(t, New(Config{Elections: []Election{e}}), "POST", "/drain", ""), 202, "")
	sub := e.Subscribe()
	defer sub.Close()
	for s := range sub.C {
		if s.Draining || s.Reason == elector.Ending {
			return
		}
	}
}

func TestHeartbeat(t *testing.T) {
	var beats int
	s := New(Config{Heartbeat: func() { beats++ }})
	for i, body := range []string{"", "{}", "anything"} {
		w := ask(t, s, "POST", "/heartbeat", body)
		want(t, w, 204, "")
		if beats != i+1 {
			t.Errorf("%d beats, want %d", beats, i+1)
		}
	}
	wantCode(t, ask(t, New(Config{}), "POST", "/heartbeat", ""), 409, "not_required")
}

// A body that does not come does not hold a request for ever.
func TestBodyThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &resigning{fixed: says(t, leading())}
		s := serve(t, Config{Elections: []Election{e}})
		in, out := io.Pipe()
		defer out.Close()
		r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://localhost:4040/resign", in)
		start := time.Now()
		go out.Write([]byte(`{"done":`))
		resp, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if took := time.Since(start); resp.StatusCode != http.StatusRequestTimeout || took != bodyTimeout {
			t.Errorf("%s after %v", resp.Status, took)
		}
	})
}

// The time for the body does not count for what comes after it.
func TestSlowResignation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &resigning{fixed: says(t, leading()), hang: true}
		s := serve(t, Config{Elections: []Election{e}})
		time.Sleep(time.Second)
		start := time.Now()
		for _, body := range []string{"", "{}"} {
			if status, text := s.do("POST", "/resign", body); status != 503 || !strings.Contains(text, "busy") {
				t.Errorf("%q: %d %s", body, status, text)
			}
		}
		if took := time.Since(start); took != 2*resignTimeout {
			t.Errorf("took %v", took)
		}
	})
}
