package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/redistest"
)

// phase is one thing that happens to three sidecars, and what must be true afterwards.
type phase struct {
	name   string
	server []redistest.Option
	args   []string
	do     func(t *testing.T, s *redistest.Server, leader *process, rest []*process)
	// within bounds the time from do's end to the next leader; 0: the same term goes on.
	within time.Duration
}

// crashed is the bound on a takeover that waits for a lease, on a busy machine.
const crashed = leaseDuration + 2*time.Second

func TestPhases(t *testing.T) {
	for _, ph := range []phase{
		{name: "SIGTERM", within: 2 * time.Second, do: func(t *testing.T, _ *redistest.Server, l *process, _ []*process) {
			l.signal(syscall.SIGTERM)
			if c := l.exited(); c != 0 {
				t.Errorf("exit code %d", c)
			}
			l.await("stopped")
		}},
		{name: "second signal", args: []string{"--drain-timeout=1m"}, within: crashed,
			do: func(t *testing.T, _ *redistest.Server, l *process, _ []*process) {
				l.signal(syscall.SIGTERM)
				l.await("stopping")
				if a, err := l.ask(); err != nil || !a.Leader {
					t.Errorf("draining: %+v, %v", a, err)
				}
				l.signal(syscall.SIGTERM)
				if c := l.exited(); c != 143 {
					t.Errorf("exit code %d, want 143", c)
				}
			}},
		{name: "kill -9", within: crashed, do: func(t *testing.T, _ *redistest.Server, l *process, _ []*process) {
			l.signal(syscall.SIGKILL)
			l.exited()
		}},
		{name: "FLUSHALL", within: crashed, do: func(t *testing.T, s *redistest.Server, l *process, _ []*process) {
			s.Must("FLUSHALL")
			l.await("lost")
		}},
		{name: "SCRIPT FLUSH", do: func(t *testing.T, s *redistest.Server, _ *process, _ []*process) {
			s.Must("SCRIPT", "FLUSH")
		}},
		{name: "CLIENT KILL", do: func(t *testing.T, s *redistest.Server, _ *process, _ []*process) {
			s.Must("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			s.Must("CLIENT", "KILL", "TYPE", "pubsub")
		}},
		{name: "CLIENT PAUSE", do: func(t *testing.T, s *redistest.Server, _ *process, _ []*process) {
			s.Must("CLIENT", "PAUSE", "800", "ALL")
		}},
		{name: "full memory", server: []redistest.Option{redistest.MaxMemory("4mb", "noeviction")},
			do: func(t *testing.T, s *redistest.Server, _ *process, _ []*process) {
				for i := 0; ; i++ {
					if _, err := s.Do("SET", fmt.Sprint("fill", i), strings.Repeat("x", 10_000)); err != nil {
						return // OOM
					}
				}
			}},
		{name: "redis killed and back with its data", server: []redistest.Option{redistest.AppendOnly()}, within: crashed,
			do: func(t *testing.T, s *redistest.Server, l *process, rest []*process) {
				s.Kill()
				l.await("expired")
				watch(500*time.Millisecond, append(rest, l)...)
				s.Restart()
			}},
		{name: "redis killed and back without data", args: []string{"--delayed-restart=auto"},
			within: crashed + 2*leaseDuration + 2*time.Second,
			do: func(t *testing.T, s *redistest.Server, l *process, rest []*process) {
				s.Kill()
				s.Restart()
				rest[0].await("waiting for leases from before the store's restart to end")
			}},
	} {
		t.Run(ph.name, func(t *testing.T) {
			t.Parallel()
			ph.run(t)
		})
	}
}

func (ph phase) run(t *testing.T) {
	s := redistest.Start(t, ph.server...)
	var all []*process
	for i := range 3 {
		all = append(all, start(t, s, fmt.Sprint("pod-", i), ph.args...))
	}
	leader, before := leads(t, all...)
	ph.do(t, s, leader, others(leader, all))
	from := time.Now()
	if ph.within == 0 {
		watch(leaseDuration, all...)
		if now, after := leads(t, all...); now != leader || after.Fence != before.Fence {
			t.Errorf("%s leads with fence %d, want %s with %d", now.name, after.Fence, leader.name, before.Fence)
		}
		judge(t, all...)
		return
	}
	for {
		next, after := leads(t, all...)
		if after.Fence > before.Fence {
			if took := time.Since(from); took > ph.within {
				t.Errorf("%s leads after %v, want %v", next.name, took, ph.within)
			}
			break
		}
		if time.Since(from) > ph.within {
			t.Fatalf("no new term after %v", ph.within)
		}
	}
	watch(time.Second, all...)
	judge(t, all...)
}

// A process that was frozen past its lease never says that it leads again.
func TestFrozenPastTheLease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	all := []*process{start(t, s, "a"), start(t, s, "b")}
	frozen, before := leads(t, all...)
	frozen.signal(syscall.SIGSTOP)
	next, after := leads(t, others(frozen, all)...)
	frozen.signal(syscall.SIGCONT)
	a, err := frozen.ask()
	if err != nil || a.Leader {
		t.Errorf("thawed: %+v, %v", a, err)
	}
	if after.Fence <= before.Fence {
		t.Errorf("fence %d of %s after %d", after.Fence, next.name, before.Fence)
	}
	watch(time.Second, all...)
	judge(t, all...)
}

// A sidecar that restarts inside its pod takes its predecessor's lease back at once.
func TestRestartInPlace(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	addr := freePort(t)
	run := func(uid string) *process {
		p := launch(t, s.URL(), "pod-a", []string{"POD_UID=" + uid}, "--http-address="+addr)
		p.listening()
		return p
	}
	first := run("uid-1")
	_, before := leads(t, first)
	first.signal(syscall.SIGKILL)
	first.exited()
	second := run("uid-1")
	_, after := leads(t, second)
	if after.Reason != "reclaimed" || after.Fence <= before.Fence {
		t.Errorf("%+v after %+v", after, before)
	}
	second.signal(syscall.SIGKILL)
	second.exited()
	stranger := run("uid-2")
	if line := stranger.await("held", "acquired", "reclaimed"); line["reason"] != "held" {
		t.Errorf("another pod with the same address: %v", line["reason"])
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestOnLostExit(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	message := filepath.Join(t.TempDir(), "termination-log")
	if err := os.WriteFile(message, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	p := start(t, s, "a", "--on-lost=exit", "--lease-duration=6s", "--renew-deadline=2s", "--termination-message-path="+message)
	_, a := leads(t, p)
	// A request under way makes the exit take a while: time enough to acquire once more.
	post := func() {
		if resp, err := client.Post("http://"+p.addr+"/locks/x", "application/json", strings.NewReader(`{"wait":"10s"}`)); err == nil {
			resp.Body.Close()
		}
	}
	post()
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waiting.Go(post)
	for s.Must("ZCARD", "soloist:{x}:q").(int64) != 1 {
		tick()
	}
	s.Must("FLUSHALL")
	if c := p.exited(); c != 42 {
		t.Errorf("exit code %d, want 42", c)
	}
	want := fmt.Sprintf("led %q with fence %d\nlost %q: lost\n", "city-ids", a.Fence, "city-ids")
	if said, err := os.ReadFile(message); string(said) != want {
		t.Errorf("termination message %q, %v; want %q", said, err, want)
	}
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.RequirePass("right"))
	url := strings.Replace(s.URL(), "right", "wrong", 1)
	p := launch(t, url, "a", nil)
	p.listening()
	line := p.await("no answer from the store")
	if text := fmt.Sprint(line["error"]); !strings.Contains(text, "SOLOIST_STORE_PASSWORD") || strings.Contains(text, "wrong@") {
		t.Errorf("error = %s", text)
	}
	if a, err := p.ask(); err != nil || a.Leader || a.State != "unknown" {
		t.Errorf("%+v, %v", a, err)
	}
	p.signal(syscall.SIGTERM)
	if c := p.exited(); c != 0 {
		t.Errorf("exit code %d", c)
	}
}

func TestEvictingServerIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.MaxMemory("20mb", "allkeys-lru"))
	p := start(t, s, "a")
	p.await("the store may throw locks away")
	if a, err := p.ask(); err != nil || a.Leader {
		t.Errorf("%+v, %v", a, err)
	}
	s.Must("CONFIG", "SET", "maxmemory-policy", "noeviction")
	leads(t, p)
}

// However often it leads, a sidecar keeps a handful of connections.
func TestConnectionsStayFew(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := start(t, s, "a")
	for range 20 {
		_, a := leads(t, p)
		s.Must("FLUSHALL")
		for now := a; now.Fence == a.Fence; {
			_, now = leads(t, p)
		}
	}
	if n := s.Clients(); n > 4 {
		t.Errorf("%d connections", n)
	}
}

func TestBadStarts(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--http-address=" + l.Addr().String()}, 1, "address already in use"},
		{[]string{"--renew-deadline=1h"}, 2, "× 1.02 + 10ms must be ≤"},
	} {
		p := launch(t, "redis://127.0.0.1:1", "a", nil, c.args...)
		if got := p.exited(); got != c.code {
			t.Errorf("%v: exit code %d, want %d", c.args, got, c.code)
		}
		p.await(c.says)
	}
}
