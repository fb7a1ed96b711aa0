package redistest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

var seed = flag.Uint64("redistest.seed", 0, "seed of TestSeeded; 0 for a new one")

// Clients add to counters while every request may meet any fault. What each fault
// says about the server and about the client must hold for every single request.
func TestSeeded(t *testing.T) {
	t.Parallel()
	s, p := proxied(t)
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-redistest.seed=%d", *seed)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() { addUnderFaults(t, s, p, i) })
	}
	all.Wait()
	p.Close()
	s.WaitClients(0)
}

// addUnderFaults checks the counter with the number i.
func addUnderFaults(t *testing.T, s *Server, p *Proxy, i int) {
	rnd := rand.New(rand.NewPCG(*seed, uint64(i)))
	key := fmt.Sprintf("n%d", i)
	faults := []struct {
		action  func() Action
		adds    int  // how often the server executes the request
		answers bool // whether the client gets the answer
	}{
		{Pass, 1, true},
		{LoseRequest, 0, false},
		{CutRequest, 0, false},
		{LoseReply, 1, false},
		{CutReply, 1, false},
		{func() Action { return ReplyError("ERR no") }, 0, true},
		{func() Action { return Delay(time.Duration(rnd.IntN(3)) * time.Millisecond) }, 1, true},
		{func() Action { return DelayReply(time.Duration(rnd.IntN(3)) * time.Millisecond) }, 1, true},
		{func() Action { return Duplicate(time.Duration(rnd.IntN(3)) * time.Millisecond) }, 2, true},
	}
	var c *peer
	n := 0
	for step := range 60 {
		if c == nil {
			c = dial(t, p.Addr())
		}
		fault := faults[rnd.IntN(len(faults))]
		rule := p.On(All(Name("INCR"), Arg(key)), fault.action(), 1)
		behind := rnd.IntN(3) // requests behind it in the same pipeline
		pipeline := []string{"INCR " + key}
		for range behind {
			pipeline = append(pipeline, "ECHO "+key)
		}
		c.send(pipeline...)
		if fault.answers {
			m, err := c.in.next()
			want := any(int64(n + 1))
			if fault.adds == 0 {
				want = Error("ERR no")
			}
			if err != nil || m.value != want {
				t.Errorf("client %d, step %d, %s: %v, %v, want %v", i, step, rule, m.value, err, want)
				return
			}
			for range behind {
				c.want(key)
			}
		}
		rule.WaitDone(1)
		n += fault.adds
		if got, err := s.Do("INCRBY", key, 0); err != nil || got != int64(n) {
			t.Errorf("client %d, step %d, %s: the server has %v, %v, want %d", i, step, rule, got, err, n)
			return
		}
		if !fault.answers {
			_ = c.c.Close()
			c = nil
		}
	}
}
