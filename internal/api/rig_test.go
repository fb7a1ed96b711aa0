package api

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// A fixed election says what it is made to say. The rest is that of an elector that does
// not run: it sends one state to subscribers, and knows no term to end.
type fixed struct {
	Election
	view func() elector.View
}

func (f *fixed) View() elector.View { return f.view() }

func idleElector(t testing.TB, lock, name string) *elector.Elector {
	t.Helper()
	e, err := elector.New(elector.Config{
		Lock: lock, Identity: lease.Identity{Name: name},
		Store: leasetest.NewMemory(leasetest.Config{}), Timing: lease.DefaultTiming,
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// says returns a fixed election that says v.
func says(t testing.TB, v elector.View) *fixed {
	t.Helper()
	return &fixed{idleElector(t, v.Lock, v.Name), func() elector.View { return v }}
}

func leading() elector.View {
	return elector.View{
		State: elector.State{
			Lock: "city-ids", Name: "pod-b", Holder: "pod-b", Phase: elector.Leader, Reason: elector.Acquired,
			Fence: 1763683200123456, Since: time.Date(2026, 11, 21, 3, 0, 0, 5, time.FixedZone("", 3600)),
			Version: 1763683200123999, Rank: -1,
		},
		Leading: true, ValidFor: 9321*time.Millisecond + 999*time.Microsecond,
	}
}

func following() elector.View {
	v := leading()
	v.Leading, v.ValidFor, v.Phase, v.Reason, v.Holder = false, 0, elector.Standby, elector.HeldByPeer, "pod-a"
	return v
}

// ask answers one request without a connection.
func ask(t testing.TB, s *Server, method, target, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.Host = "localhost:4040"
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// want checks status and body.
func want(t testing.TB, w *httptest.ResponseRecorder, status int, body string) {
	t.Helper()
	if w.Code != status || w.Body.String() != body {
		t.Errorf("%d %q, want %d %q", w.Code, w.Body, status, body)
	}
}

// wantCode checks status and error code.
func wantCode(t testing.TB, w *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	var e struct{ Error, Message string }
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
		t.Fatalf("%v: %q", err, w.Body)
	}
	if w.Code != status || e.Error != code || e.Message == "" {
		t.Errorf("%d %q, want %d %s", w.Code, w.Body, status, code)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
}

// pipes is a network in memory, which works in a bubble: a connection has no buffer.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	close func()
}

func newPipes() *pipes {
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.done) })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4040} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// A sidecar is an election, a server, and a client of it, in a bubble.
type sidecar struct {
	t      testing.TB
	server *Server
	net    *pipes
	client *http.Client
	stop   func() // stops the server; nothing if that has been done
}

func serve(t testing.TB, c Config) *sidecar {
	s := &sidecar{t: t, server: New(c), net: newPipes()}
	s.client = &http.Client{Transport: &http.Transport{DialContext: s.net.dial, MaxIdleConnsPerHost: 99}}
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(s.net) }()
	stopped := make(chan struct{})
	begin := sync.OnceFunc(func() {
		go func() {
			defer close(stopped)
			if err := s.server.Shutdown(context.Background()); err != nil {
				t.Errorf("Shutdown: %v", err)
			}
			if err := <-served; err != nil {
				t.Errorf("Serve: %v", err)
			}
			s.client.CloseIdleConnections()
		}()
	})
	s.stop = func() { begin(); <-stopped }
	t.Cleanup(s.stop)
	return s
}

// A pod has a real elector, whose store it can be cut off from.
type pod struct {
	*sidecar
	elector *elector.Elector
	clock   *leasetest.Clock
	link    *leasetest.Link
	leave   func() // stops the elector; nothing if that has been done
}

func newPod(t testing.TB, memory *leasetest.Memory, name string) *pod {
	t.Helper()
	p := &pod{clock: leasetest.NewClock(1), link: leasetest.NewLink(memory.NewProcess(name))}
	var err error
	p.elector, err = elector.New(elector.Config{
		Lock: "city-ids", Identity: lease.Identity{Name: name}, Store: p.link, Timing: lease.DefaultTiming,
		Clock: p.clock.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); p.elector.Run(ctx) }()
	p.leave = func() { cancel(); <-ran }
	p.sidecar = serve(t, Config{Elections: []Election{p.elector}, Version: "v1"})
	t.Cleanup(func() { p.leave(); p.stop(); p.link.Close() })
	return p
}

// do sends a request and returns status and body.
func (s *sidecar) do(method, path, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, "http://localhost:4040"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// body is what a client sees of the body of /leader.
type body struct {
	Lock, State, Name, Holder, Reason string
	Leader, Draining                  bool
	HandingOver                       bool `json:"handing_over"`
	Fence                             uint64
	ValidForMS                        int64 `json:"valid_for_ms"`
	Version                           int64
}

func (s *sidecar) get(path string) (int, body) {
	s.t.Helper()
	status, text := s.do(http.MethodGet, path, "")
	var b body
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		s.t.Fatalf("%v: %q", err, text)
	}
	return status, b
}

// A listener reads a stream, line by line.
type listener struct {
	t     testing.TB
	resp  *http.Response
	lines *bufio.Reader
	hang  func() // hangs up
}

func (s *sidecar) listen(path string) *listener {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost:4040"+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	l := &listener{s.t, resp, bufio.NewReader(resp.Body), func() { cancel(); resp.Body.Close() }}
	s.t.Cleanup(l.hang)
	return l
}

// next returns the next block of lines, up to an empty one; "" at the end.
func (l *listener) next() string {
	l.t.Helper()
	var block string
	for {
		line, err := l.lines.ReadString('\n')
		if err == io.EOF && block+line == "" {
			return ""
		}
		if err != nil {
			l.t.Fatalf("%v after %q", err, block+line)
		}
		if line == "\n" {
			return block
		}
		block += line
	}
}

// event returns the next event's name, id and data, and skips comments.
func (l *listener) event() (name, id string, b body) {
	l.t.Helper()
	for {
		block := l.next()
		if block == ":\n" {
			continue
		}
		part := strings.SplitN(block, "\n", 4)
		if len(part) != 4 {
			l.t.Fatalf("no event: %q", block)
		}
		name, id = strings.TrimPrefix(part[1], "event: "), strings.TrimPrefix(part[0], "id: ")
		if err := json.Unmarshal([]byte(strings.TrimPrefix(part[2], "data: ")), &b); err != nil {
			l.t.Fatalf("%v: %q", err, block)
		}
		return name, id, b
	}
}
