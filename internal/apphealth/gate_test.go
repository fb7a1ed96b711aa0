package apphealth

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

// app is the app as an http.RoundTripper, without sockets.
type app struct {
	status atomic.Int64  // 0: connection refused; < 0: hangs
	asked  atomic.Int64  // questions
	delay  time.Duration // of each answer
}

func (a *app) RoundTrip(r *http.Request) (*http.Response, error) {
	a.asked.Add(1)
	select {
	case <-time.After(a.delay):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	switch s := int(a.status.Load()); {
	case s < 0:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case s == 0:
		return nil, errors.New("connection refused")
	default:
		return &http.Response{StatusCode: s, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
	}
}

// start runs a gate until the test ends, and returns it and what it logs.
func start(t *testing.T, c Config) (*Gate, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer // written by Run alone, read after synctest.Wait
	c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); g.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return g, &log
}

func probing(a *app) Config {
	return Config{
		URL: "http://127.0.0.1:8080/healthz", Period: 2 * time.Second, Timeout: time.Second, Failures: 3, Transport: a,
	}
}

// expect says what the gate must say now.
func expect(t *testing.T, g *Gate, want elector.Reason) {
	t.Helper()
	synctest.Wait()
	if got, _ := g.Check(); got != want {
		t.Fatalf("after %v: reason %q, want %q", time.Since(epoch), got, want)
	}
}

var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // when every bubble begins

func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &app{delay: 100 * time.Millisecond}
		a.status.Store(200)
		g, log := start(t, probing(a))
		expect(t, g, elector.Unhealthy) // it has not answered yet
		_, opened := g.Check()
		time.Sleep(100 * time.Millisecond)
		expect(t, g, "")
		select {
		case <-opened:
		default:
			t.Fatal("the change was not told")
		}

		a.status.Store(503)
		_, closed := g.Check()
		time.Sleep(5 * time.Second) // two failures: not yet
		expect(t, g, "")
		a.status.Store(204) // one success forgives them
		time.Sleep(2 * time.Second)
		a.status.Store(-1)
		time.Sleep(3 * time.Second)
		expect(t, g, "")
		select {
		case <-closed:
			t.Fatal("a change was told that did not happen")
		default:
		}
		time.Sleep(3500 * time.Millisecond) // the third question hangs for its second
		expect(t, g, elector.Unhealthy)
		<-closed

		a.status.Store(200)
		time.Sleep(2 * time.Second)
		expect(t, g, "")
		want := strings.TrimLeft(`
level=INFO msg="waiting for the app" reason=unhealthy
level=INFO msg="the app may lead" was=unhealthy
level=WARN msg="the app may not lead" reason=unhealthy failures=3 error="context deadline exceeded"
level=INFO msg="the app may lead" was=unhealthy
`, "\n")
		if log.String() != want {
			t.Errorf("log:\n%s\nwant:\n%s", log, want)
		}
	})
}

// A late answer is none, and questions keep to their period however long answers take.
func TestProbeTiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &app{delay: 999 * time.Millisecond}
		a.status.Store(200)
		g, _ := start(t, probing(a))
		time.Sleep(9*time.Second + time.Millisecond)
		expect(t, g, "")
		if n := a.asked.Load(); n != 5 {
			t.Errorf("asked %d times in 9 s, want at 0, 2, 4, 6 and 8", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		a := &app{delay: 1001 * time.Millisecond}
		a.status.Store(200)
		g, _ := start(t, probing(a))
		time.Sleep(time.Minute)
		expect(t, g, elector.Unhealthy)
	})
}

// The first answer must be a success: no number of failures is forgiven before it.
func TestNeverAnswered(t *testing.T) {
	for _, status := range []int64{0, -1, 500, 404, 302, 199} {
		synctest.Test(t, func(t *testing.T) {
			a := &app{}
			a.status.Store(status)
			g, _ := start(t, probing(a))
			time.Sleep(10 * time.Millisecond)
			expect(t, g, elector.Unhealthy)
			a.status.Store(299)
			time.Sleep(2 * time.Second)
			expect(t, g, "")
		})
	}
}

func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, log := start(t, Config{Heartbeat: 5 * time.Second})
		time.Sleep(time.Hour)
		expect(t, g, elector.Silent) // never heard of
		g.Beat()
		expect(t, g, "")
		for range 10 {
			time.Sleep(4999 * time.Millisecond)
			expect(t, g, "")
			g.Beat()
			g.Beat()
		}
		_, closed := g.Check()
		time.Sleep(4999 * time.Millisecond)
		expect(t, g, "")
		<-closed // by itself: nobody asked
		if d := time.Since(*g.beat.Load()); d != 5*time.Second {
			t.Errorf("told after %v of silence, want 5s", d)
		}
		expect(t, g, elector.Silent)
		time.Sleep(time.Minute)
		g.Beat()
		expect(t, g, "")
		want := strings.TrimLeft(`
level=INFO msg="waiting for the app" reason=silent
level=INFO msg="the app may lead" was=silent
level=WARN msg="the app may not lead" reason=silent heartbeat=5s silent_for=5s
level=INFO msg="the app may lead" was=silent
`, "\n")
		if log.String() != want {
			t.Errorf("log:\n%s\nwant:\n%s", log, want)
		}
	})
}

// A question that hangs does not put off the end of a silence, and unhealthy is said first.
func TestBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &app{}
		a.status.Store(200)
		c := probing(a)
		c.Heartbeat = 4500 * time.Millisecond // ends while the third question is asked
		g, _ := start(t, c)
		expect(t, g, elector.Silent) // it has answered at once
		g.Beat()
		expect(t, g, "")
		a.status.Store(-1)
		time.Sleep(4500 * time.Millisecond)
		expect(t, g, elector.Silent) // two failures
		time.Sleep(2500 * time.Millisecond)
		_, changed := g.Check()
		expect(t, g, elector.Unhealthy)
		a.status.Store(200)
		time.Sleep(time.Second)
		expect(t, g, elector.Silent) // another reason is a change, too
		<-changed
		g.Beat()
		expect(t, g, "")
	})
}

// What the end of Run cuts short is no failure, and leaves nothing behind: a goroutine left
// in a bubble fails its test.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &app{}
		a.status.Store(200)
		c := probing(a)
		c.Failures = 1
		g, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); g.Run(ctx) }()
		time.Sleep(time.Second)
		a.status.Store(-1)
		time.Sleep(1500 * time.Millisecond) // a question is under way
		cancel()
		<-done
		expect(t, g, "")
		g.Beat() // never blocks
		g.Beat()
	})
}

func TestOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, log := start(t, Config{})
		time.Sleep(time.Hour)
		expect(t, g, "")
		g.Beat()
		expect(t, g, "")
		if log.Len() > 0 {
			t.Errorf("logged %s", log)
		}
	})
}

func TestValidate(t *testing.T) {
	good := Config{URL: "http://localhost:8080/healthz", Period: time.Second, Timeout: time.Second, Failures: 1}
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { *c = Config{Heartbeat: time.Second} }, ""},
		{func(c *Config) { c.URL = "localhost:8080" }, "app-health-url must be http://HOST… or https://HOST…"},
		{func(c *Config) { c.URL = "http://:8080/" }, "app-health-url must be http://HOST… or https://HOST…"},
		{func(c *Config) { c.URL = "http://u:secret@h ost/" }, "app-health-url is not a URL"},
		{func(c *Config) { c.Period = 0 }, "app-health-period must be positive, is 0s\n" +
			"app-health-timeout must be positive and ≤ app-health-period, is 1s"},
		{func(c *Config) { c.Timeout = 0 }, "app-health-timeout must be positive and ≤ app-health-period, is 0s"},
		{func(c *Config) { c.Failures = 0 }, "app-health-failures must be at least 1, is 0"},
		{func(c *Config) { c.Heartbeat = -1 }, "require-heartbeat must not be negative, is -1ns"},
	} {
		c := good
		tt.change(&c)
		_, err := New(c)
		var got string
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%+v: %q, want %q", c, got, tt.want)
		}
	}
}
