package redistest

import (
	"io"
	"testing"
)

func TestBlackHole(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		dir      Direction
		executed any
	}{
		"ToServer": {ToServer, nil},
		"ToClient": {ToClient, "v"},
		"Both":     {Both, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p := proxied(t)
			old, silent := dial(t, p.Addr()), dial(t, p.Addr())
			old.do("PING", "PONG")
			silent.do("PING", "PONG")
			heal := p.BlackHole(test.dir)
			fresh := dial(t, p.Addr())
			fresh.send("SET fresh v")
			old.send("SET old v")
			silent.send("PING")
			silent.wantSilence()
			if test.executed != nil {
				for s.Must("GET", "old") == nil || s.Must("GET", "fresh") == nil {
				}
			} else if s.Must("GET", "old") != nil || s.Must("GET", "fresh") != nil {
				t.Error("passed")
			}
			heal()
			heal()
			old.want("OK")
			fresh.want("OK")
			fresh.do("GET old", "v")
		})
	}
}

// A request that waits in a black hole outlives its client, as with TCP, unless
// the connection is lost.
func TestBlackHoleLate(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	for _, lost := range []bool{false, true} {
		c := dial(t, p.Addr())
		c.do("DEL k", s.Must("EXISTS", "k"))
		read := p.On(Name("SET"), Delay(0), 1)
		heal := p.BlackHole(ToServer)
		c.send("SET k v")
		read.Wait(1)
		_ = c.c.Close()
		s.WaitClients(1)
		if lost {
			p.CloseAll()
		}
		heal()
		s.WaitClients(0)
		if executed := s.Must("EXISTS", "k") == int64(1); executed == lost {
			t.Errorf("lost %v, executed %v", lost, executed)
		}
	}
}

// The server's end does not pass either, nor the proxy's own answers.
func TestBlackHoleEnd(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	for _, heals := range []bool{true, false} {
		a, b := dial(t, p.Addr()), dial(t, p.Addr())
		a.do("PING", "PONG")
		b.do("PING", "PONG")
		refuse := p.On(Name("GET"), ReplyError("ERR no"), 1)
		heal := p.BlackHole(ToClient)
		b.send("GET k")
		b.wantSilence()
		s.Kill()
		if refuse.Count() != 0 {
			t.Error("answered")
		}
		if heals {
			heal()
			a.wantEnd(io.EOF)
		} else {
			a.wantSilence() // The cleanup must get over it.
		}
		s.Restart()
	}
}
