package redistest

import (
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

// proxied returns a server, and a proxy before it.
func proxied(t testing.TB, opts ...Option) (*Server, *Proxy) {
	t.Helper()
	CheckLeaks(t)
	s := Start(t, opts...)
	return s, NewProxy(t, s)
}

func TestProxyPasses(t *testing.T) {
	t.Parallel()
	s, p := proxied(t, RequirePass("secret"))
	if p.URL() != "redis://:secret@"+p.Addr() {
		t.Error(p.URL())
	}
	c := dial(t, p.Addr())
	c.do("AUTH secret", "OK")
	c.do("SET k v", "OK")
	c.send("GET k")
	c.send("INCR n")
	c.send("nonsense")
	c.want("v", 1)
	if m, err := c.in.next(); err != nil || !strings.HasPrefix(m.value.(Error).Error(), "ERR unknown command") {
		t.Error(m.value, err)
	}
	big := strings.Repeat("x", 1<<20)
	c.do("SET big "+big, "OK")
	c.do("GET big", big)
	_ = c.c.(*net.TCPConn).CloseWrite()
	c.wantEnd(io.EOF)
	s.WaitClients(0)
	want := map[string]int{"AUTH": 1, "SET": 2, "GET": 2, "INCR": 1, "NONSENSE": 1}
	if got := p.CommandCounts(); !reflect.DeepEqual(got, want) || p.TotalCommands() != 7 || p.Accepted() != 1 {
		t.Error(got, p.TotalCommands(), p.Accepted())
	}
}

// Every type of RESP3 that DEBUG PROTOCOL makes comes through as it is.
func TestProxyTypes(t *testing.T) {
	t.Parallel()
	s, p := proxied(t, EnableDebug())
	for _, hello := range []string{"HELLO 2", "HELLO 3"} {
		through, direct := dial(t, p.Addr()), dial(t, s.Addr())
		for _, c := range []*peer{through, direct} {
			c.send(hello)
			if _, err := c.in.next(); err != nil {
				t.Fatal(err)
			}
		}
		for _, kind := range []string{
			"string", "integer", "double", "null", "array", "set", "map", "attrib",
			"push", "verbatim", "true", "false", "bignum",
		} {
			if kind == "push" && hello == "HELLO 2" {
				continue // An error of RESP2, followed by a push nevertheless.
			}
			through.send("DEBUG PROTOCOL " + kind)
			direct.send("DEBUG PROTOCOL " + kind)
			a, err := through.in.next()
			b, errDirect := direct.in.next()
			if err != nil || errDirect != nil || string(a.raw) != string(b.raw) {
				t.Errorf("%s: %s: %q, %v, want %q, %v", hello, kind, a.raw, err, b.raw, errDirect)
			}
		}
	}
}

func TestMisuse(t *testing.T) {
	t.Parallel()
	CheckLeaks(t)
	s := Start(t)
	for request, failure := range map[string]string{
		"*1\r\n$7\r\nMONITOR\r\n":                            "MONITOR",
		"*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n": "REPLY",
		"PING\r\n":     "not RESP",
		"*1\r\n:1\r\n": "not RESP",
	} {
		r := record(t, func(t testing.TB) {
			c := dial(t, NewProxy(t, s).Addr())
			if _, err := io.WriteString(c.c, request); err != nil {
				t.Errorf("%v", err)
			}
			c.wantEnd(io.EOF)
		})
		r.wantFailure(failure)
	}
	for name, misuse := range map[string]func(*Proxy){
		"Drop":      func(p *Proxy) { p.On(nil, Drop(), 1) },
		"Duplicate": func(p *Proxy) { p.OnPush(nil, Duplicate(0), 1) },
	} {
		record(t, func(t testing.TB) { misuse(NewProxy(t, s)) }).wantFailure(name + " cannot be used")
	}
}

func TestCloseAll(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	held := p.On(Name("SET"), HoldUntil(make(chan struct{})), 1)
	a, b := dial(t, p.Addr()), dial(t, p.Addr())
	a.send("SET k v")
	b.do("PING", "PONG")
	held.Wait(1)
	p.CloseAll()
	a.wantEnd(syscall.ECONNRESET)
	b.wantEnd(syscall.ECONNRESET)
	held.WaitDone(1)
	s.WaitClients(0)
	if s.Must("GET", "k") != nil {
		t.Error("a lost request was executed")
	}
	dial(t, p.Addr()).do("PING", "PONG")
}

func TestServerGone(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	c := dial(t, p.Addr())
	c.do("PING", "PONG")
	c.send("BLPOP list 0")
	s.Kill()
	c.wantEnd(io.EOF)
	dial(t, p.Addr()).wantEnd(io.EOF)
	s.Restart()
	dial(t, p.Addr()).do("PING", "PONG")
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	_, p := proxied(t)
	old := dial(t, p.Addr())
	old.do("PING", "PONG")
	accept, acceptToo := p.Refuse(), p.Refuse()
	for range 2 {
		if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Error(err)
		}
		old.do("PING", "PONG")
		accept()
		accept() // counts once
	}
	acceptToo()
	dial(t, p.Addr()).do("PING", "PONG")
	p.Refuse() // Close gets over it.
}
