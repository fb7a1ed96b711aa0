package health

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease"
)

// fake is an election whose words are set by the test.
type fake struct {
	mu      sync.Mutex
	view    elector.View
	overdue time.Duration
}

func (f *fake) set(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fake) View() elector.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view
}

func (f *fake) Overdue() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.overdue
}

func (f *fake) Timing() lease.Timing { return lease.DefaultTiming }

// serve runs a server on a port of the system's choice until the test ends, and returns
// its address.
func serve(t *testing.T, c Config) (addr string, s *Server) {
	t.Helper()
	c.Address = "127.0.0.1:0"
	s = New(c)
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s.Addr().String(), s
}

// do returns the status and body of an answer.
func do(t *testing.T, method, url string) (string, http.Header) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, body), resp.Header
}

func TestRoutes(t *testing.T) {
	f := &fake{view: elector.View{State: elector.State{
		Lock: "city-ids", Phase: elector.Unknown, Reason: elector.Starting, StoreError: "dial: user hidden",
	}}}
	addr, _ := serve(t, Config{
		Elections: []Elector{f},
		Metrics:   http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "soloist_leader 1\n") }),
	})
	expect := func(method, path, want string) {
		t.Helper()
		got, header := do(t, method, "http://"+addr+path)
		if got != want {
			t.Errorf("%s %s: %q, want %q", method, path, got, want)
		}
		if strings.HasPrefix(want, "200 city-ids") && method == "GET" && (header.Get("Cache-Control") != "no-store" ||
			header.Get("Content-Type") != "text/plain; charset=utf-8" || header.Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("%s %s: header %v", method, path, header)
		}
	}
	expect("GET", "/livez", "200 ok\n")
	expect("GET", "/readyz", "503 city-ids: unknown (starting): the store has not answered yet\n")
	expect("HEAD", "/readyz", "503 ")

	f.set(func(f *fake) { f.view.Phase, f.view.Reason = elector.Standby, elector.HeldByPeer })
	expect("GET", "/readyz", "200 city-ids: standby (held)\n")
	expect("HEAD", "/readyz", "200 ")

	f.set(func(f *fake) { f.overdue = time.Minute })
	expect("GET", "/livez", "503 city-ids: a loop is overdue by 1m0s, more than 15s\n")
	expect("GET", "/readyz", "200 city-ids: standby (held)\n")

	expect("GET", "/metrics", "200 soloist_leader 1\n")
	expect("HEAD", "/metrics", "200 ")
	for _, path := range []string{"/", "/livez/", "/healthz", "/debug/vars", "/debug/pprof/"} {
		expect("GET", path, "404 404 page not found\n")
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		for _, path := range []string{"/livez", "/readyz", "/metrics"} {
			expect(method, path, "405 Method Not Allowed\n")
		}
	}
}

func TestOnLeader(t *testing.T) {
	f := &fake{view: elector.View{State: elector.State{Lock: "city-ids", Phase: elector.Leader, Reason: elector.Acquired}}}
	addr, _ := serve(t, Config{Elections: []Elector{f}, OnLeader: true})
	f.set(func(f *fake) { f.view.Leading = true })
	if got, _ := do(t, "GET", "http://"+addr+"/readyz"); got != "200 city-ids: leader (acquired)\n" {
		t.Errorf("leading: %q", got)
	}
	f.set(func(f *fake) { f.view.Leading = false }) // what was written is not what counts
	if got, _ := do(t, "GET", "http://"+addr+"/readyz"); !strings.HasPrefix(got, "503 ") {
		t.Errorf("not leading now: %q", got)
	}
	if got, _ := do(t, "GET", "http://"+addr+"/metrics"); !strings.HasPrefix(got, "404 ") {
		t.Errorf("no metrics: %q", got)
	}
}

// A long header is refused, and a request that never ends is not waited for.
func TestLimits(t *testing.T) {
	addr, s := serve(t, Config{})
	req := "GET /livez HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n"
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go io.WriteString(conn, req) // the server need not read it to its end
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, " 431 ") {
		t.Errorf("%q, %v; want 431", line, err)
	}
	if s.http.ReadHeaderTimeout == 0 || s.http.ReadTimeout == 0 || s.http.WriteTimeout == 0 || s.http.IdleTimeout == 0 {
		t.Error("a request without an end would be waited for")
	}
}

func TestListen(t *testing.T) {
	s := New(Config{Address: "127.0.0.1:0"})
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := New(Config{Address: s.Addr().String()})
	if err := again.Listen(t.Context()); err == nil || !strings.Contains(err.Error(), s.Addr().String()) {
		t.Errorf("%v, want an error that names the address", err)
	}
	// Never served, and yet closed.
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", s.Addr().String()); err == nil {
		t.Error("still listens")
	}
	if err := s.Serve(); err != nil {
		t.Errorf("Serve after Shutdown: %v", err)
	}
}

// Shutdown waits for a scrape under way, but not beyond its context.
func TestShutdown(t *testing.T) {
	for _, patient := range []bool{true, false} {
		entered, leave := make(chan struct{}), make(chan struct{})
		s := New(Config{Address: "127.0.0.1:0", Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(entered)
			<-leave
			fmt.Fprint(w, "all of it")
		})})
		if err := s.Listen(t.Context()); err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve() }()
		scraped := make(chan error, 1)
		go func() {
			resp, err := http.Get("http://" + s.Addr().String() + "/metrics")
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			scraped <- err
		}()
		<-entered
		ctx, cancel := context.WithCancel(t.Context())
		if patient {
			stopped := make(chan error, 1)
			go func() { stopped <- s.Shutdown(ctx) }()
			if err := <-served; err != nil { // it has begun
				t.Error(err)
			}
			close(leave)
			if err := errors.Join(<-stopped, <-scraped); err != nil {
				t.Error(err)
			}
		} else {
			cancel()
			if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want the context's error", err)
			}
			if err := errors.Join(<-served, <-scraped); err == nil {
				t.Error("the scrape was waited for")
			}
			close(leave)
		}
		cancel()
	}
}
