package apphealth

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// client returns a prober of url with sockets, and closes its connections in the end.
func client(t *testing.T, url string) *prober {
	t.Helper()
	p := newProber(Config{URL: url, Period: time.Minute, Timeout: 10 * time.Second, Failures: 1})
	t.Cleanup(p.client.CloseIdleConnections)
	return p
}

func TestAskRedirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("another host was asked")
	}))
	defer other.Close()
	mux := http.NewServeMux()
	mux.Handle("/ok/", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	mux.Handle("/here", http.RedirectHandler("/ok/", http.StatusFound))
	mux.Handle("/away", http.RedirectHandler(other.URL+"/ok/", http.StatusFound))
	mux.Handle("/far", http.RedirectHandler("/away", http.StatusFound))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	srv := httptest.NewServer(mux)
	defer srv.Close()
	const away = "status 302: redirects are followed only within the same host and port"
	for path, want := range map[string]string{
		"/ok/": "", "/here": "", "/ok": "", "/away": away, "/far": away, "/loop": away, "/none": "status 404",
	} {
		var got string
		if err := client(t, srv.URL+path).ask(t.Context()); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// All questions go over one connection, unless an answer is too long to read to its end.
func TestAskReusesItsConnection(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // of no concern to us
	for _, tt := range []struct {
		body  int
		conns int
	}{
		{maxBody - 1, 1},
		{8 * maxBody, 5},
	} {
		var mu sync.Mutex
		conns := 0
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if agent := r.Header.Get("User-Agent"); agent != "soloist" {
				t.Errorf("User-Agent: %q", agent)
			}
			_, _ = io.WriteString(w, strings.Repeat("x", tt.body)) // cut short by the long ones' reader
		}))
		srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				mu.Lock()
				defer mu.Unlock()
				conns++
			}
		}
		srv.Start()
		defer srv.Close()
		p := client(t, srv.URL)
		for range 5 {
			if err := p.ask(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		mu.Lock()
		if conns != tt.conns {
			t.Errorf("body of %d: %d connections, want %d", tt.body, conns, tt.conns)
		}
		mu.Unlock()
	}
}

// Apps on loopback have certificates of their own making, if any.
func TestAskTLS(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	defer srv.Close()
	if err := client(t, srv.URL).ask(t.Context()); err != nil {
		t.Error(err)
	}
	// The same server under a name that is not loopback's.
	p := client(t, strings.Replace(srv.URL, "127.0.0.1", "app.example", 1))
	p.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, srv.Listener.Addr().String())
	}
	if err := p.ask(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("%v, want a word on the certificate", err)
	}
}

// What is secret in the URL is in no log.
func TestAskHidesItsURL(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody listens there now
	var log bytes.Buffer
	g, err := New(Config{
		URL: "http://user:hidden@" + l.Addr().String() + "/?key=hidden", Period: time.Minute, Timeout: time.Minute, Failures: 1,
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	err = g.prober.ask(t.Context())
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Fatalf("%v, want: connection refused", err)
	}
	g.count(err)
	if strings.Contains(log.String(), "hidden") || log.Len() == 0 {
		t.Errorf("log: %s", log.String())
	}
}
