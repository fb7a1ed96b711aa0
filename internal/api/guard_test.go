package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

var hosts = map[string]bool{
	"": true, "localhost": true, "localhost:4040": true, "LocalHost:1": true, "127.0.0.1": true,
	"127.0.0.1:4040": true, "127.255.3.4:80": true, "::1": true, "[::1]": true, "[::1]:4040": true,
	"[::ffff:127.0.0.1]:4040": true,

	"evil.example": false, "evil.example:4040": false, "localhost.evil.example:4040": false,
	"127.0.0.1.evil.example": false, "10.1.2.3:4040": false, "0.0.0.0:4040": false, "[::]:4040": false,
	"[::2]": false, ":4040": false, "2130706433": false, "127.1": false, "[localhost": false, "[": false,
	"localhost:4040:4040": false, "1.2.3.4@localhost": false, "pod-b": false,
}

func TestLoopbackHost(t *testing.T) {
	for host, expected := range hosts {
		if got := loopbackHost(host); got != expected {
			t.Errorf("%q: %v, want %v", host, got, expected)
		}
	}
}

// What changes something is refused to a web page, whether it got here under a name of its
// own (DNS rebinding) or from a page with another origin. Questions are not.
func TestWebPages(t *testing.T) {
	for _, c := range []struct {
		name, host string
		header     map[string]string
		code       string
	}{
		{"curl", "localhost:4040", nil, ""},
		{"curl to IPv6", "[::1]:4040", nil, ""},
		{"HTTP/1.0", "", nil, ""},
		{"typed into a browser's tool", "localhost:4040", map[string]string{"Sec-Fetch-Site": "none"}, ""},
		{"own page", "localhost:4040", map[string]string{"Origin": "http://localhost:4040"}, ""},
		{"rebound name", "evil.example:4040", nil, "host"},
		{"rebound name with its own origin", "evil.example", map[string]string{"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}, "host"},
		{"foreign page", "localhost:4040", map[string]string{"Sec-Fetch-Site": "cross-site"}, "cross_site"},
		{"page of another port", "localhost:4040", map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:8080"}, "cross_site"},
		{"foreign page in an old browser", "127.0.0.1:4040", map[string]string{"Origin": "http://evil.example"}, "cross_site"},
		{"page without an origin", "localhost:4040", map[string]string{"Origin": "null"}, "cross_site"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &resigning{fixed: says(t, leading())}
			var beats int
			s := New(Config{Elections: []Election{e}, Heartbeat: func() { beats++ }})
			send := func(method, path string) *httptest.ResponseRecorder {
				r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader("{}"))
				r.Host = c.host
				for k, v := range c.header {
					r.Header.Set(k, v)
				}
				w := httptest.NewRecorder()
				s.Handler().ServeHTTP(w, r)
				return w
			}
			want(t, send("GET", "/leader"), 200, leaderBody+"\n")
			resign, beat := send("POST", "/resign"), send("POST", "/heartbeat")
			if c.code == "" {
				want(t, resign, 202, leaderBody+"\n")
				want(t, beat, 204, "")
				return
			}
			wantCode(t, resign, 403, c.code)
			wantCode(t, beat, 403, c.code)
			wantCode(t, send(http.MethodPut, "/anything"), 403, c.code) // routes to come
			if len(e.got) != 0 || beats != 0 {
				t.Errorf("%+v, %d beats", e.got, beats)
			}
		})
	}
}
