package redistest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A peer is a client without comfort: what it sends and reads is what a test says.
type peer struct {
	t  testing.TB
	c  net.Conn
	in *reader
}

func dial(t testing.TB, addr string) *peer {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(waitLimit)); err != nil {
		t.Fatal(err)
	}
	return &peer{t: t, c: c, in: newReader(c)}
}

// send sends requests, each given as words, with one write.
func (p *peer) send(requests ...string) {
	p.t.Helper()
	var b []byte
	for _, request := range requests {
		b = appendCommand(b, strings.Fields(request))
	}
	if _, err := p.c.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// want reads answers, as fmt.Sprint shows them.
func (p *peer) want(answers ...any) {
	p.t.Helper()
	for _, answer := range answers {
		m, err := p.in.next()
		if got := fmt.Sprint(m.value); err != nil || got != fmt.Sprint(answer) {
			p.t.Fatalf("got %q, %v, want %q", got, err, fmt.Sprint(answer))
		}
	}
}

// do sends a request and reads its answer.
func (p *peer) do(request string, answer any) {
	p.t.Helper()
	p.send(request)
	p.want(answer)
}

// wantEnd reads the end of the connection.
func (p *peer) wantEnd(want error) {
	p.t.Helper()
	if m, err := p.in.next(); !errors.Is(err, want) {
		p.t.Fatalf("got %v, %v, want %v", m.value, err, want)
	}
}

// wantSilence reads nothing for a moment. After that the peer can only write.
func (p *peer) wantSilence() {
	p.t.Helper()
	if err := p.c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		p.t.Fatal(err)
	}
	p.wantEnd(os.ErrDeadlineExceeded)
}

// A recorder is a test that may fail without failing ours.
type recorder struct {
	testing.TB

	mu       sync.Mutex
	failures []string
	logs     []string
	cleanups []func()
}

// record runs a test and its cleanups.
func record(t testing.TB, test func(testing.TB)) *recorder {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, f := range slices.Backward(r.cleanups) {
				f()
			}
		}()
		test(r)
	}()
	<-done
	return r
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

// wantFailure checks that the test failed once, with a text.
func (r *recorder) wantFailure(text string) {
	r.TB.Helper()
	if len(r.failures) != 1 || !strings.Contains(r.failures[0], text) {
		r.TB.Errorf("failures %q, want one with %q", r.failures, text)
	}
}
