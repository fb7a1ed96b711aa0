package redistest

import (
	"io"
	"strings"
	"testing"
	"time"
)

// helloed returns a client of the proxy that speaks RESP2 or RESP3.
func helloed(t *testing.T, p *Proxy, version string) *peer {
	t.Helper()
	c := dial(t, p.Addr())
	c.send("HELLO " + version)
	if _, err := c.in.next(); err != nil {
		t.Fatal(err)
	}
	return c
}

// Answers are told from messages, whatever comes between them: each request's
// answer is delayed, and its rule is done exactly when the answer is whole.
func TestPubSub(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2", "3"} {
		t.Run("RESP"+version, func(t *testing.T) {
			t.Parallel()
			s, p := proxied(t)
			answered := p.On(nil, Pass(), Always)
			messages := p.OnPush(nil, Pass(), Always)
			c := helloed(t, p, version)
			requests := 1
			exchange := func(request string, answers ...any) {
				t.Helper()
				c.send(request)
				c.want(answers...)
				requests++
				answered.Wait(requests)
				if n := answered.Count(); n != requests {
					t.Fatalf("after %s: %d answers, not %d", request, n, requests)
				}
			}
			publish := func(channel string, want ...any) {
				t.Helper()
				s.Must("PUBLISH", channel, "m")
				c.want(want...)
			}
			exchange("SUBSCRIBE a b", "[subscribe a 1]", "[subscribe b 2]")
			publish("a", "[message a m]")
			exchange("PSUBSCRIBE a*", "[psubscribe a* 3]")
			publish("a", "[message a m]", "[pmessage a* a m]")
			exchange("SSUBSCRIBE s", "[ssubscribe s 1]")
			s.Must("SPUBLISH", "s", "m")
			c.want("[smessage s m]")
			pong := map[string]any{"2": "[pong x]", "3": "x"}[version]
			exchange("PING x", pong)
			exchange("UNSUBSCRIBE a none", "[unsubscribe a 2]", "[unsubscribe none 2]")
			exchange("UNSUBSCRIBE", "[unsubscribe b 1]")
			exchange("UNSUBSCRIBE", "[unsubscribe <nil> 1]")
			exchange("subscribe x y", "[subscribe x 2]", "[subscribe y 3]")
			exchange("PUNSUBSCRIBE", "[punsubscribe a* 2]")
			exchange("PING x", pong)
			if version == "3" {
				exchange("RPUSH list message x y", 3)
				exchange("LRANGE list 0 -1", "[message x y]")
				exchange("UNSUBSCRIBE x", "[unsubscribe x 1]")
				exchange("UNSUBSCRIBE y", "[unsubscribe y 0]")
			}
			exchange("RESET", "RESET")
			exchange("RPUSH list2 message x y", 3)
			exchange("LRANGE list2 0 -1", "[message x y]")
			exchange("SUBSCRIBE", "ERR wrong number of arguments for 'subscribe' command")
			if messages.Wait(4); messages.Count() != 4 {
				t.Error(messages)
			}
		})
	}
}

// A subscription's answer is one, however many confirmations it has.
func TestSubscribeLoseAndCut(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2", "3"} {
		s, p := proxied(t)
		c := helloed(t, p, version)
		p.On(Name("SUBSCRIBE"), DelayReply(10*time.Millisecond), 1)
		c.send("SUBSCRIBE a b")
		c.want("[subscribe a 1]", "[subscribe b 2]")
		cut := p.On(Name("SUBSCRIBE"), CutReply(), 1)
		c.send("SUBSCRIBE c d")
		cut.Wait(1)
		c.wantEnd(io.EOF)
		s.WaitClients(0)
	}
}

// The proxy's own answer to the next request comes after the last confirmation.
func TestConfirmations(t *testing.T) {
	t.Parallel()
	_, p := proxied(t)
	p.On(Name("ECHO"), ReplyError("ERR own"), Always)
	for _, version := range []string{"2", "3"} {
		c := helloed(t, p, version)
		for _, request := range []string{"SUBSCRIBE a b", "UNSUBSCRIBE", "PSUBSCRIBE a b", "PUNSUBSCRIBE b a"} {
			c.send(request, "ECHO x")
			for range 2 {
				m, err := c.in.next()
				if want := strings.ToLower(strings.Fields(request)[0]); err != nil || word(m, 0) != want {
					t.Errorf("%s: %v, %v", request, m.value, err)
				}
			}
			c.want("ERR own")
		}
	}
}

// Messages that come after a request was sent, and before its answer, are told
// from the answer.
func TestMessagesBeforeAnswer(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2", "3"} {
		s, p := proxied(t)
		c := helloed(t, p, version)
		c.do("SUBSCRIBE ch", "[subscribe ch 1]")
		c.do("PSUBSCRIBE c*", "[psubscribe c* 2]")
		c.do("SSUBSCRIBE s", "[ssubscribe s 1]")
		ping := make(chan struct{})
		first := p.OnPush(nil, HoldReplyUntil(ping), 1)
		s.Must("PUBLISH", "ch", "m")
		first.Wait(1)
		s.Must("SPUBLISH", "s", "m")
		cut := p.On(Name("PING"), CutReply(), 1)
		c.send("PING")
		for p.TotalCommands("PING") == 0 {
			<-time.After(time.Millisecond)
		}
		close(ping)
		c.want("[message ch m]", "[pmessage c* ch m]", "[smessage s m]")
		c.wantEnd(io.EOF)
		cut.Wait(1)
	}
}

func TestOnPush(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	for _, version := range []string{"2", "3"} {
		c := helloed(t, p, version)
		c.do("SUBSCRIBE ch", "[subscribe ch 1]")
		lost := p.OnPush(All(Name("message"), Arg("lost")), Drop(), 1)
		for _, m := range []string{"first", "lost", "lost"} {
			s.Must("PUBLISH", "ch", m)
		}
		c.want("[message ch first]", "[message ch lost]")
		lost.Wait(1)
		late := p.OnPush(nil, DelayReply(10*time.Millisecond), 1)
		s.Must("PUBLISH", "ch", "late")
		late.Wait(1)
		c.want("[message ch late]")
		late.WaitDone(1)
		mute := p.OnPush(nil, LoseReply(), 1)
		s.Must("PUBLISH", "ch", "m")
		mute.Wait(1)
		s.Must("PUBLISH", "ch", "m")
		c.wantSilence()
		_ = c.c.Close()

		c = helloed(t, p, version)
		c.do("SUBSCRIBE ch2", "[subscribe ch2 1]")
		cut := p.OnPush(Arg("ch2"), CutReply(), 1)
		s.Must("PUBLISH", "ch2", "m")
		cut.Wait(1)
		c.wantEnd(io.EOF)
	}
	// Client-side caching pushes too.
	c := helloed(t, p, "3")
	c.do("CLIENT TRACKING ON", "OK")
	c.do("GET k", "<nil>")
	invalid := p.OnPush(All(Name("INVALIDATE"), Arg("k")), Pass(), 1)
	s.Must("SET", "k", "v")
	c.want("[invalidate [k]]")
	invalid.Wait(1)
}
