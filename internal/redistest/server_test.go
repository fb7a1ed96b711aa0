package redistest

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestServer(t *testing.T) {
	t.Parallel()
	CheckLeaks(t)
	s := Start(t)
	if s.URL() != "redis://"+s.Addr() {
		t.Error(s.URL())
	}
	for _, test := range []struct {
		args []any
		want any
	}{
		{[]any{"SET", "k", []byte("v")}, "OK"},
		{[]any{"GET", "k"}, "v"},
		{[]any{"GET", "none"}, nil},
		{[]any{"INCRBY", "n", 41}, int64(41)},
		{[]any{"MGET", "k", "n", "none"}, []any{"v", "41", nil}},
		{[]any{"EVAL", "return redis.error_reply('MY error')", 0}, Error("MY error")},
	} {
		v, err := s.Do(test.args...)
		if err != nil {
			v = err
		}
		if !reflect.DeepEqual(v, test.want) {
			t.Errorf("%v: %#v, want %#v", test.args, v, test.want)
		}
	}
	if s.Info("server")["tcp_port"] == "" || s.Must("CONFIG", "GET", "save").([]any)[1] != "" {
		t.Error("INFO or CONFIG GET")
	}
	dial(t, s.Addr()).do("GET k", "v")
}

func TestServersInParallel(t *testing.T) {
	t.Parallel()
	CheckLeaks(t)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			s := Start(t)
			for range 20 {
				all.Go(func() {
					if _, err := s.Do("INCRBY", "n", i); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
	all.Wait()
}

func TestRestart(t *testing.T) {
	t.Parallel()
	CheckLeaks(t)
	for name, test := range map[string]struct {
		opts []Option
		want any
	}{
		"empty":      {nil, nil},
		"AppendOnly": {[]Option{AppendOnly()}, "v"},
	} {
		s := Start(t, test.opts...)
		addr, id := s.Addr(), s.Info("server")["run_id"]
		for _, down := range []func(){s.Kill, s.Stop, func() {}, func() { s.Pause(); s.Kill() }, func() { s.Pause(); s.Stop() }} {
			s.Must("SET", "k", "v")
			down()
			s.Restart()
			if got := s.Must("GET", "k"); got != test.want || s.Addr() != addr {
				t.Errorf("%s: %v at %s", name, got, s.Addr())
			}
			if old := id; old == s.Info("server")["run_id"] {
				t.Error("the same process")
			}
		}
		dial(t, s.Addr()).do("GET k", s.Must("GET", "k"))
		s.Kill()
		s.Kill()
		s.Stop()
		if _, err := net.Dial("tcp", s.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Error(err)
		}
		if _, err := s.Do("PING"); err == nil {
			t.Error("Do on a server that is down")
		}
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	CheckLeaks(t)
	s := Start(t)
	c := dial(t, s.Addr())
	c.do("SET k v", "OK")
	s.Pause()
	c.send("GET k")
	c.wantSilence()
	s.Resume()
	dial(t, s.Addr()).do("GET k", "v")
	s.Pause() // The cleanup must get over it.
}

func TestAccess(t *testing.T) {
	t.Parallel()
	CheckLeaks(t)
	s := Start(t, RequirePass("se cret"), User("app", "on >pw ~app:* +@all"))
	if want := "redis://:se%20cret@" + s.Addr(); s.URL() != want {
		t.Errorf("%s, want %s", s.URL(), want)
	}
	s.Must("SET", "k", "v")
	c := dial(t, s.Addr())
	c.do("GET k", "NOAUTH Authentication required.")
	c.do("AUTH app pw", "OK")
	c.do("SET app:k v", "OK")
	c.send("GET k")
	if m, err := c.in.next(); err != nil || !strings.HasPrefix(fmt.Sprint(m.value), "NOPERM") {
		t.Error(m.value, err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	CheckLeaks(t)
	s := Start(t, MaxMemory("20mb", "volatile-ttl"), EnableDebug(), ConfigLines("databases 3", `save "60 1"`))
	if m := s.Info("memory"); m["maxmemory"] != "20971520" || m["maxmemory_policy"] != "volatile-ttl" {
		t.Error(m)
	}
	s.Must("DEBUG", "SLEEP", 0)
	if got := fmt.Sprint(s.Must("CONFIG", "GET", "databases"), s.Must("CONFIG", "GET", "save")); got != "[databases 3] [save 60 1]" {
		t.Error(got)
	}
	if _, err := Start(t).Do("DEBUG", "SLEEP", 0); err == nil {
		t.Error("DEBUG without the option")
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	CheckLeaks(t)
	s := Start(t, AppendOnly())
	s.Must("SET", "k", 1)
	c := dial(t, s.Addr())
	for i := range 3 {
		c.do("INCR k", 2+i)
		s.Must("INCR", "n")
	}
	c.do("INFO nothing", "")
	c.send("CONFIG GET port")
	_, _ = c.in.next()
	want := map[string]int{"INCR": 3, "INFO": 1, "CONFIG|GET": 1}
	if s.major < 7 {
		want = map[string]int{"INCR": 3, "INFO": 1, "CONFIG": 1}
	}
	for range 2 {
		if got := s.CommandCounts(); !reflect.DeepEqual(got, want) {
			t.Error(got)
		}
	}
	if s.TotalCommands() != 5 || s.TotalCommands("incr", "INFO", "GET") != 4 {
		t.Error(s.TotalCommands())
	}
	s.Must("CONFIG", "RESETSTAT")
	c.do("INCR k", 5)
	if got := s.TotalCommands(); got != 1 {
		t.Error(got, s.CommandCounts())
	}
	s.Restart()
	if got := s.TotalCommands(); got != 0 {
		t.Error(got, s.CommandCounts())
	}
}

func TestClients(t *testing.T) {
	t.Parallel()
	CheckLeaks(t)
	s := Start(t)
	c := dial(t, s.Addr())
	c.do("PING", "PONG")
	dial(t, s.Addr()).do("SUBSCRIBE ch", "[subscribe ch 1]")
	if n := s.Clients(); n != 2 {
		t.Error(n)
	}
	_ = c.c.Close()
	s.WaitClients(1)
}

// Ports that are taken are passed over, and Restart waits for its own.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	CheckLeaks(t)
	first := Start(t)
	ports := []int{first.port, first.port, randomPort()}
	s := Start(t, func(c *config) {
		c.port = func() int {
			port := ports[0]
			ports = append(ports[1:], randomPort())
			return port
		}
	})
	if s.port == first.port || s.Info("server")["run_id"] == first.Info("server")["run_id"] {
		t.Error(s.port)
	}
	s.Kill()
	ln, err := net.Listen("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	free := time.AfterFunc(100*time.Millisecond, func() { _ = ln.Close() })
	defer free.Stop()
	s.Restart()
	s.Must("PING")
}

func TestStartFails(t *testing.T) {
	CheckLeaks(t)
	r := record(t, func(t testing.TB) { Start(t, ConfigLines("nonsense 1")) })
	r.wantFailure("nonsense")

	r = record(t, func(t testing.TB) {
		s := Start(t)
		t.Errorf("on purpose")
		_ = s
	})
	if r.wantFailure("on purpose"); len(r.logs) != 1 || !strings.Contains(r.logs[0], "Ready to accept connections") {
		t.Errorf("logs %q", r.logs)
	}

	r = record(t, func(t testing.TB) {
		s := Start(t)
		s.Kill()
		s.Pause()
	})
	r.wantFailure("pause")

	t.Setenv("PATH", t.TempDir())
	r = record(t, func(t testing.TB) { Start(t) })
	r.wantFailure("install the package redis-server")
	t.Setenv("REDISTEST_SERVER", "/none/redis-server")
	r = record(t, func(t testing.TB) { Start(t) })
	r.wantFailure("/none/redis-server")
}
