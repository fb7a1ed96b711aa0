package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/redistest"
)

// begin serves on real sockets, and returns the server and a function that waits for Serve.
func begin(t testing.TB, c Config, listeners []net.Listener) (*Server, func() error) {
	t.Helper()
	s := New(c)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listeners...) }()
	return s, func() error {
		select {
		case err := <-served:
			return err
		case <-time.After(10 * time.Second):
			return errors.New("Serve does not return")
		}
	}
}

func listenLocal(t testing.TB) []net.Listener {
	t.Helper()
	listeners, err := Listen(t.Context(), "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	return listeners
}

func TestListenOnBothLoopbacks(t *testing.T) {
	redistest.CheckLeaks(t)
	listeners := listenLocal(t)
	_, port, _ := net.SplitHostPort(listeners[0].Addr().String())
	expected := []string{"127.0.0.1:" + port}
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		l.Close()
		expected = append(expected, "[::1]:"+port)
	}
	s, served := begin(t, Config{Elections: []Election{says(t, leading())}}, listeners)
	client := &http.Client{Transport: &http.Transport{}}
	for i, addr := range expected {
		if got := listeners[i].Addr().String(); got != addr {
			t.Errorf("listens on %s, want %s", got, addr)
		}
		resp, err := client.Get("http://" + addr + "/leader")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(b) != leaderBody+"\n" || resp.ContentLength != int64(len(b)) {
			t.Errorf("%s: %q %v", addr, b, err)
		}
	}
	client.CloseIdleConnections()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := served(); err != nil {
		t.Error(err)
	}
}

func TestListenRefuses(t *testing.T) {
	for _, addr := range []string{"", "4040", ":4040", "0.0.0.0:0", "[::]:0", "10.0.0.1:4040", "example.com:4040", "localhost", "localhost:x", "localhost:-1"} {
		if l, err := Listen(t.Context(), addr); err == nil || !strings.HasPrefix(err.Error(), "api: ") {
			t.Errorf("%q: %v, %v", addr, l, err)
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "127.0.0.2:0"} {
		if l, err := Listen(t.Context(), addr); err != nil || len(l) != 1 {
			t.Errorf("%s: %v %v", addr, l, err)
		} else {
			l[0].Close()
		}
	}
}

// Whoever has one of the addresses would answer half of the clients.
func TestListenOnPortInUse(t *testing.T) {
	for _, taken := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", taken)
		if err != nil {
			continue // a machine without IPv6
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		if both, err := Listen(t.Context(), "localhost:"+port); err == nil {
			t.Errorf("%s is taken, and Listen returned %v", l.Addr(), both)
		}
		l.Close()
		both, err := Listen(t.Context(), "localhost:"+port)
		if err != nil {
			t.Errorf("an address was left open: %v", err)
		}
		for _, l := range both {
			l.Close()
		}
	}
}

func TestServeEndsWithItsListener(t *testing.T) {
	redistest.CheckLeaks(t)
	listeners := append(listenLocal(t), newPipes())
	s, served := begin(t, Config{Elections: []Election{says(t, following())}}, listeners)
	resp, err := http.Get("http://" + listeners[0].Addr().String() + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	listeners[len(listeners)-1].Close()
	if err := served(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // it ends, with a last event or without
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// A connection on which nothing was asked yet does not hold up the end, nor does one
// whose client does not read.
func TestShutdownIsBounded(t *testing.T) {
	redistest.CheckLeaks(t)
	listeners := listenLocal(t)
	s, served := begin(t, Config{Elections: []Election{says(t, following())}}, listeners)
	addr := listeners[0].Addr().String()
	unused, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer unused.Close()
	stream, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	fmt.Fprint(stream, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	lines := bufio.NewReader(stream)
	if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 200") {
		t.Fatal(line, err)
	}
	start := time.Now()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	if err := served(); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil || strings.Count(string(rest), "event: standby") != 2 || !strings.HasSuffix(string(rest), "\r\n0\r\n\r\n") {
		t.Errorf("%v: %q", err, rest)
	}
	if _, err := unused.Read(make([]byte, 1)); err == nil {
		t.Error("the unused connection is open")
	}
}

func TestShutdownBeforeServe(t *testing.T) {
	redistest.CheckLeaks(t)
	s := New(Config{})
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	listeners := listenLocal(t)
	if err := s.Serve(listeners...); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", listeners[0].Addr().String()); err == nil {
		t.Error("a listener was left open")
	}
}

// A handler that takes its time is broken off when ctx is done.
func TestShutdownBreaksOff(t *testing.T) {
	redistest.CheckLeaks(t)
	listeners := listenLocal(t)
	e := &resigning{fixed: says(t, leading()), hang: true, asked: make(chan struct{}, 1)}
	s, served := begin(t, Config{Elections: []Election{e}}, listeners)
	failed := make(chan error, 1)
	go func() {
		resp, err := http.Post("http://"+listeners[0].Addr().String()+"/resign", "", nil)
		if err == nil {
			resp.Body.Close()
		}
		failed <- err
	}()
	<-e.asked
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := served(); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("answered")
	}
}

func TestLimits(t *testing.T) {
	redistest.CheckLeaks(t)
	listeners := listenLocal(t)
	s, served := begin(t, Config{Elections: []Election{says(t, leading())}}, listeners)
	client := &http.Client{Transport: &http.Transport{}}
	url := "http://" + listeners[0].Addr().String() + "/leader"
	for size, status := range map[int]int{maxHeader / 2: 200, 2 * maxHeader: http.StatusRequestHeaderFieldsTooLarge} {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		r.Header.Set("X", strings.Repeat("x", size))
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("header of %d: %s", size, resp.Status)
		}
	}
	client.CloseIdleConnections()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := served(); err != nil {
		t.Error(err)
	}
}
