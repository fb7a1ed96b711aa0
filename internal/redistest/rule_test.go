package redistest

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestLoseAndCut(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	for _, test := range []struct {
		action   Action
		executed int64
		end      bool
	}{
		{LoseRequest(), 0, false},
		{CutRequest(), 0, true},
		{LoseReply(), 1, false},
		{CutReply(), 1, true},
	} {
		s.Must("SET", "n", 0)
		c := dial(t, p.Addr())
		c.do("GET n", 0)
		r := p.On(Name("incr"), test.action, 1)
		c.send("INCR n")
		r.Wait(1)
		r.WaitDone(1)
		if got := s.Must("INCRBY", "n", 0); got != test.executed {
			t.Errorf("%s: executed %v times", r, got)
		}
		if !test.end {
			c.send("INCR n") // lost in the same way
			_ = c.c.(*net.TCPConn).CloseWrite()
			test.executed *= 2
		}
		c.wantEnd(io.EOF)
		s.WaitClients(0)
		if got := s.Must("INCRBY", "n", 0); got != test.executed || r.Count() != 1 {
			t.Errorf("%s: executed %v times", r, got)
		}
		// The rule is used up.
		c = dial(t, p.Addr())
		c.do("INCR n", test.executed+1)
		_ = c.c.Close()
	}
}

func TestReplyError(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	r := p.On(Name("GET"), ReplyError("-LOADING Redis is loading"), 2)
	c := dial(t, p.Addr())
	// Its place among the answers is that of the request, also behind a blocked one.
	c.send("BLPOP list 0", "GET k", "GET k", "PING", "GET k")
	if r.Count() != 0 {
		t.Error(r)
	}
	for s.Must("LPUSH", "list", "x"); s.Must("LLEN", "list") != int64(0); {
	}
	c.want("[list x]", "LOADING Redis is loading", "LOADING Redis is loading", "PONG", "<nil>")
	if r.Wait(2); s.TotalCommands("GET") != 1 {
		t.Error(s.CommandCounts())
	}
}

// A release that is late hits the lock of the next attempt: what HoldUntil is for.
func TestHoldUntil(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	second := p.On(All(Name("SET"), Arg("second")), Pass(), 1)
	late := p.On(Name("DEL"), HoldUntil(second.Done()), 1)
	a, b := dial(t, p.Addr()), dial(t, p.Addr())
	a.do("SET k first", "OK")
	a.send("DEL k")
	a.send("INCR after") // stays behind it
	late.Wait(1)
	_ = a.c.Close() // does not stop it
	if s.Must("GET", "k") != "first" || s.Must("GET", "after") != nil {
		t.Error("not held")
	}
	b.do("SET k second", "OK")
	late.WaitDone(1)
	if s.Must("GET", "k") != nil {
		t.Error("not executed")
	}
	s.WaitClients(1)
}

func TestDelays(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	const d = 30 * time.Millisecond
	after := func() <-chan struct{} {
		ch := make(chan struct{})
		time.AfterFunc(d, func() { close(ch) })
		return ch
	}
	c := dial(t, p.Addr())
	for _, test := range []struct {
		action   func() Action
		executed bool // when it has fired
	}{
		{func() Action { return Delay(d) }, false},
		{func() Action { return DelayReply(d) }, true},
		{func() Action { return HoldUntil(after()) }, false},
		{func() Action { return HoldReplyUntil(after()) }, true},
	} {
		s.Must("DEL", "k")
		start := time.Now()
		r := p.On(nil, test.action(), 1)
		c.send("SET k v")
		<-r.Fired()
		executed := s.Must("EXISTS", "k") == int64(1)
		if executed != test.executed && (test.executed || time.Since(start) < d) {
			t.Errorf("%s: executed %v", r, executed)
		}
		c.want("OK")
		<-r.Done()
		if elapsed := time.Since(start); elapsed < d {
			t.Errorf("%s: %v", r, elapsed)
		}
	}
}

func TestDuplicate(t *testing.T) {
	t.Parallel()
	s, p := proxied(t, RequirePass("secret"))
	c := dial(t, p.Addr())
	c.do("AUTH secret", "OK")
	c.do("SELECT 5", "OK")
	r := p.On(Name("INCR"), Duplicate(30*time.Millisecond), 1)
	c.do("INCR n", 1)
	r.Wait(1)
	c.do("DECR n", 0) // Its client does not see the second, nor does its leaving stop it.
	_ = c.c.Close()
	r.WaitDone(1)
	s.Must("SELECT", 5)
	if n := s.Must("GET", "n"); n != "1" {
		t.Error(n)
	}
	if got := s.TotalCommands("INCR"); got != 2 {
		t.Error(got)
	}
	// One that is never to come must not keep the proxy.
	c = dial(t, p.Addr())
	c.do("AUTH secret", "OK")
	p.On(Name("INCR"), Duplicate(time.Hour), 1)
	c.do("INCR n", 1)
}

func TestScript(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	const source = "return{KEYS[1],ARGV[1]}"
	sha := s.Must("SCRIPT", "LOAD", source).(string)
	c := dial(t, p.Addr())
	byText := p.On(Script(source), Pass(), Always)
	byArgs := p.On(ScriptWhere(func(args []string) bool { return args[2] == "other" }), Pass(), Always)
	c.do("EVALSHA "+sha+" 1 k a", "[k a]")
	c.do("EVALSHA "+strings.ToUpper(sha)+" 1 k a", "[k a]")
	c.do("EVAL "+source+" 1 k a", "[k a]")
	c.do("EVAL return(1) 1 other", 1)
	byText.Wait(3)
	byArgs.Wait(1)
	byText.Remove()
	byArgs.Remove()

	// A script that the server does not know has not run: the rule waits.
	s.Must("SCRIPT", "FLUSH")
	cut := p.On(Script(source), CutReply(), 1)
	c.do("EVALSHA "+sha+" 1 k a", "NOSCRIPT No matching script. Please use EVAL.")
	if cut.Count() != 0 {
		t.Error(cut)
	}
	c.send("EVAL " + source + " 1 k a")
	cut.Wait(1)
	c.wantEnd(io.EOF)
	if byText.Count() != 3 {
		t.Error("a removed rule fired")
	}
}

func TestRulesInOrder(t *testing.T) {
	t.Parallel()
	_, p := proxied(t)
	n := 0
	third := func(Command) bool { n++; return n%3 == 0 }
	first := p.On(third, ReplyError("ERR third"), 2)
	second := p.On(func(c Command) bool { return c.Conn == 2 }, ReplyError("ERR two"), Always)
	one := dial(t, p.Addr())
	one.do("PING", "PONG")
	two := dial(t, p.Addr())
	two.do("PING", "ERR two")
	one.do("PING", "ERR third")
	two.do("PING", "ERR two")
	one.do("PING", "PONG")
	two.do("PING", "ERR third")
	second.Remove()
	two.do("PING", "PONG")
	first.Wait(2)
	second.Wait(2)
}
