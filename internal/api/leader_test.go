package api

import (
	"net/http"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

const (
	leaderBody  = `{"lock":"city-ids","leader":true,"state":"leader","name":"pod-b","holder":"pod-b","fence":1763683200123456,"slot":0,"since":"2026-11-21T02:00:00Z","valid_for_ms":9321,"version":1763683200123999,"reason":"acquired"}`
	standbyBody = `{"lock":"city-ids","leader":false,"state":"standby","name":"pod-b","holder":"pod-a","fence":1763683200123456,"slot":0,"since":"2026-11-21T02:00:00Z","valid_for_ms":0,"version":1763683200123999,"reason":"held"}`
)

func TestLeaderBody(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*elector.View)
		status int
		body   string
	}{
		{"leader", func(*elector.View) {}, 200, leaderBody},
		{"standby", func(v *elector.View) { *v = following() }, 503, standbyBody},
		{"a standby shows no slot of an earlier term", func(v *elector.View) { *v = following(); v.Slot = 7 }, 503, standbyBody},
		{
			"leader of a slot, stopping", func(v *elector.View) { v.Slot = 7; v.Draining = true }, 200,
			`{"lock":"city-ids","leader":true,"state":"leader","name":"pod-b","holder":"pod-b","fence":1763683200123456,"slot":7,"since":"2026-11-21T02:00:00Z","valid_for_ms":9321,"version":1763683200123999,"reason":"acquired","draining":true}`,
		},
		{
			"handing over", func(v *elector.View) {
				*v = following()
				v.Holder, v.Reason, v.HandingOver = "", elector.Resigned, true
			}, 503,
			`{"lock":"city-ids","leader":false,"state":"standby","name":"pod-b","holder":"","fence":1763683200123456,"slot":0,"since":"2026-11-21T02:00:00Z","valid_for_ms":0,"version":1763683200123999,"reason":"resigned","handing_over":true}`,
		},
		{
			"a namesake leads", func(v *elector.View) { *v = following(); v.Holder = "pod-b" }, 503,
			`{"lock":"city-ids","leader":false,"state":"standby","name":"pod-b","holder":"","fence":1763683200123456,"slot":0,"since":"2026-11-21T02:00:00Z","valid_for_ms":0,"version":1763683200123999,"reason":"held"}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := leading()
			c.change(&v)
			s := New(Config{Elections: []Election{says(t, v)}})
			w := ask(t, s, "GET", "/leader", "")
			want(t, w, c.status, c.body+"\n")
			if ct, cc := w.Header().Get("Content-Type"), w.Header().Get("Cache-Control"); ct != "application/json" || cc != "no-store" {
				t.Errorf("Content-Type %q, Cache-Control %q", ct, cc)
			}
			want(t, ask(t, s, "GET", "/leader?lock=city-ids", ""), c.status, c.body+"\n")
		})
	}
}

func TestPick(t *testing.T) {
	first, second := leading(), following()
	second.Lock = "second lock"
	several := New(Config{Elections: []Election{says(t, first), says(t, second)}})
	one := New(Config{Elections: []Election{says(t, first)}})
	none := New(Config{})

	for _, route := range []struct{ method, path string }{{"GET", "/leader"}, {"GET", "/events"}, {"POST", "/resign"}} {
		wantCode(t, ask(t, several, route.method, route.path, ""), 400, "ambiguous")
		wantCode(t, ask(t, several, route.method, route.path+"?lock=third", ""), 404, "unknown_lock")
		wantCode(t, ask(t, one, route.method, route.path+"?lock=", ""), 404, "unknown_lock")
		wantCode(t, ask(t, one, route.method, route.path+"?lock=%zz", ""), 400, "invalid")
		wantCode(t, ask(t, none, route.method, route.path, ""), 404, "unknown_lock")
	}
	if w := ask(t, several, "GET", "/leader?lock=city-ids", ""); w.Code != 200 {
		t.Errorf("first: %d %s", w.Code, w.Body)
	}
	if w := ask(t, several, "GET", "/leader?lock=second+lock", ""); w.Code != 503 {
		t.Errorf("second: %d %s", w.Code, w.Body)
	}
	for path, code := range map[string]int{"/": 200, "/isLeader": 200, "/api/leader": 200, "/status": 200} {
		if w := ask(t, several, "GET", path, ""); w.Code != code {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	wantCode(t, ask(t, none, "GET", "/", ""), 404, "unknown_lock")
	wantCode(t, ask(t, none, "GET", "/sse", ""), 404, "unknown_lock")
}

func TestPollParameters(t *testing.T) {
	s := New(Config{Elections: []Election{says(t, leading())}})
	for _, query := range []string{"version=x", "version=-1", "version=1e3", "wait=30", "wait=-1s", "wait=x", "wait=1s;version=1"} {
		wantCode(t, ask(t, s, "GET", "/leader?"+query, ""), 400, "invalid")
	}
	// Answered at once: nothing is known, something else is known, no time is given.
	for _, query := range []string{"", "wait=1h", "version=", "wait=&version=", "wait=1h&version=1", "version=1763683200123999", "wait=0s&version=1763683200123999", "_=1"} {
		want(t, ask(t, s, "GET", "/leader?"+query, ""), 200, leaderBody+"\n")
	}
	p, err := parsePoll(map[string][]string{"wait": {"100h"}})
	if err != nil || p.wait != maxWait {
		t.Errorf("wait %v, %v", p.wait, err)
	}
}

func TestRoutes(t *testing.T) {
	s := New(Config{Elections: []Election{says(t, leading())}})
	for _, path := range []string{"/x", "/leader/", "//leader", "/./leader", "/x/../leader", "/Leader", "/locks"} {
		for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
			wantCode(t, ask(t, s, method, path, ""), 404, "not_found")
		}
	}
	for _, c := range []struct{ method, path, allow string }{
		{"POST", "/leader", "GET, HEAD"},
		{"POST", "/", "GET, HEAD"},
		{"PATCH", "/events", "GET, HEAD"},
		{"OPTIONS", "/status", "GET, HEAD"},
		{"DELETE", "/sse", "GET, HEAD"},
		{"GET", "/resign", "POST"},
		{"HEAD", "/resign", "POST"},
		{"PUT", "/heartbeat", "POST"},
	} {
		w := ask(t, s, c.method, c.path, "")
		wantCode(t, w, 405, "method")
		if got := w.Header().Get("Allow"); got != c.allow {
			t.Errorf("%s %s: Allow %q, want %q", c.method, c.path, got, c.allow)
		}
	}
	for _, path := range []string{"/leader", "/events", "/status", "/", "/isLeader", "/sse", "/api/leader"} {
		if w := ask(t, s, http.MethodHead, path, ""); w.Code != 200 || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("HEAD %s: %d %v", path, w.Code, w.Header())
		}
	}
	if n := s.streams.Load(); n != 0 {
		t.Errorf("%d streams left", n)
	}
}

func TestStatus(t *testing.T) {
	second := following()
	second.Lock, second.Slots, second.Rank, second.Waiting, second.StoreError = "b", 4, 0, 3, `dial "x": refused`
	s := New(Config{Elections: []Election{says(t, leading()), says(t, second)}, Version: "v1.2.3"})
	const rest = `"timing":{"lease_duration_ms":15000,"renew_deadline_ms":10000,"retry_period_ms":2000},`
	const stats = `"overdue_ms":0,"stats":{"transitions":{},"renewals":0,"unanswered":0,"clock_jumps":0,"store_jumps":0}}`
	want(t, ask(t, s, "GET", "/status", ""), 200, `{"version":"v1.2.3","elections":[`+
		leaderBody[:len(leaderBody)-1]+`,"slots":0,"waiting":0,`+rest+`"store_error":"",`+stats+`,`+
		`{"lock":"b"`+standbyBody[len(`{"lock":"city-ids"`):len(standbyBody)-1]+`,"slots":4,"rank":0,"waiting":3,`+rest+
		`"store_error":"dial \"x\": refused",`+stats+"]}\n")
	want(t, ask(t, New(Config{}), "GET", "/status", ""), 200, "{\"version\":\"\",\"elections\":[]}\n")

	for d, ms := range map[time.Duration]int64{0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2} {
		if got := roundUp(d); got != ms {
			t.Errorf("roundUp(%v) = %d, want %d", d, got, ms)
		}
	}
}
