package api

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

// The bodies are those of the electors that are replaced, to the byte.
func TestCompatibleBodies(t *testing.T) {
	unknown := following()
	unknown.Phase, unknown.Reason, unknown.Holder = elector.Unknown, elector.Starting, ""
	namesake := following()
	namesake.Holder = namesake.Name
	for _, c := range []struct {
		name          string
		view          elector.View
		root, is, api string
	}{
		{"leader", leading(), `{"name":"pod-b","last_update":"2000-01-01T00:00:00Z"}`, `{"isLeader": true}`, `{"leader":"pod-b"}`},
		{"standby", following(), `{"name":"pod-a","last_update":"2000-01-01T00:00:00Z"}`, `{"isLeader": false}`, `{"leader":"pod-a"}`},
		{"unknown", unknown, `{"name":"","last_update":"2000-01-01T00:00:00Z"}`, `{"isLeader": false}`, `{"leader":""}`},
		{"namesake", namesake, `{"name":"","last_update":"2000-01-01T00:00:00Z"}`, `{"isLeader": false}`, `{"leader":""}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Config{Elections: []Election{says(t, c.view), says(t, leading())}})
				want(t, ask(t, s, "GET", "/", ""), 200, c.root)
				want(t, ask(t, s, "GET", "/?lock=x&y=%zz", ""), 200, c.root)
				want(t, ask(t, s, "GET", "/isLeader", ""), 200, c.is)
				want(t, ask(t, s, "GET", "/api/leader", ""), 200, c.api)
				for _, path := range []string{"/", "/isLeader", "/api/leader"} {
					w := ask(t, s, "GET", path, "")
					if ct, cc := w.Header().Get("Content-Type"), w.Header().Get("Cache-Control"); ct != "application/json" || cc != "no-store" {
						t.Errorf("%s: Content-Type %q, Cache-Control %q", path, ct, cc)
					}
				}
			})
		})
	}
}

// Apps compare the name with their hostname, which for a pod with a long name is shorter,
// and the same for several pods.
func TestCompatibleNameIsAHostname(t *testing.T) {
	long := strings.Repeat("a", 61) + "-b"
	for _, c := range []struct{ own, holder, want string }{
		{"pod-b", "pod-b", "pod-b"},
		{long, long, long},
		{long + "-0", long + "-0", long},
		{strings.Repeat("a", 61) + "-.b", strings.Repeat("a", 61) + "-.b", strings.Repeat("a", 61)},
		{"pod-a", long + "-0", long},
		{long + "-1", long + "-0", ""},
		{long, long + "-0", ""},
	} {
		v := following()
		v.Name, v.Holder = c.own, c.holder
		v.Leading = c.own == c.holder
		if got := leaderHost(&v); got != c.want {
			t.Errorf("own %s, holder %s: %s, want %s", c.own, c.holder, got, c.want)
		}
	}
}

// NAIS's stream has data and nothing else, and says the same again as often.
func TestCompatibleStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		l := b.listen("/sse")
		if ct := l.resp.Header.Get("Content-Type"); ct != "text/event-stream" {
			t.Errorf("Content-Type %q", ct)
		}
		for range 3 {
			now := time.Now().UTC().Format(time.RFC3339)
			if got, want := l.next(), `data: {"name":"pod-a","last_update":"`+now+"\"}\n"; got != want {
				t.Errorf("%q, want %q", got, want)
			}
			time.Sleep(2 * time.Second)
		}
		l.next()
		a.do("POST", "/resign", `{"done":true}`)
		if got, want := l.next(), `data: {"name":"pod-b","last_update":"`; !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
