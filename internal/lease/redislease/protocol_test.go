package redislease

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/redistest"
)

// A ttl of 0 would make Redis delete the key, or keep it for ever.
func TestB13_RefusedWithoutSending(t *testing.T) {
	p := redistest.NewProxy(t, redistest.Start(t))
	s := open(t, p.URL())
	g := acquire(t, s, request("L"))
	before := p.TotalCommands()
	for _, ttl := range []time.Duration{0, -1, -time.Hour, time.Millisecond - 1} {
		r := request("L")
		r.TTL = ttl
		if _, err := s.Acquire(t.Context(), r); !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("Acquire for %v: %v", ttl, err)
		}
		if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: ttl}); !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("Extend by %v: %v", ttl, err)
		}
	}
	for _, name := range []string{"", "a b", "{a}", "a}", "a\n"} {
		r := request(name)
		if _, err := s.Acquire(t.Context(), r); !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("lock %q: %v", name, err)
		}
		if _, err := s.Release(t.Context(), r.Claim); !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("lock %q: %v", name, err)
		}
	}
	if n := p.TotalCommands() - before; n != 0 {
		t.Errorf("%d commands were sent", n)
	}
}

// The scripts refuse it too, whoever runs them.
func TestB13_ScriptsRefuse(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, srv.URL())
	r := request("L")
	acquire(t, s, r)
	keys := s.keys(r.Claim)
	for _, ttl := range []string{"0", "-1", "", "x", "0.5"} {
		_, err := acquireScript.Run(t.Context(), s.client, keys,
			string(r.Token), ttl, "pod uid addr", 0, "", 0, s.claim, plain, 0, 0, s.channels("L"), "L").Slice()
		if !errors.Is(failed("acquire", err), lease.ErrInvalid) {
			t.Errorf("acquire.lua with ttl %q: %v", ttl, err)
		}
		_, err = extendScript.Run(t.Context(), s.client, keys, string(r.Token), ttl, 0).Slice()
		if !errors.Is(failed("extend", err), lease.ErrInvalid) {
			t.Errorf("extend.lua with ttl %q: %v", ttl, err)
		}
	}
	if left := srv.Must("PTTL", "soloist:{L}:lk").(int64); left < long.Milliseconds()/2 {
		t.Errorf("%d ms are left", left)
	}
}

// The floor of a fence is the server's clock, and the queue's order too: nothing that a
// client sends depends on its own.
func TestB20_NoClientTimeIsSent(t *testing.T) {
	p := redistest.NewProxy(t, redistest.Start(t))
	s := open(t, p.URL())
	var mu sync.Mutex
	var sent []string
	p.On(func(c redistest.Command) bool {
		if c.Name() == "EVALSHA" {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, strings.Join(c.Args, " "))
		}
		return false
	}, redistest.Pass(), redistest.Always)
	r := request("L")
	rounds := make([][]string, 2)
	for i := range rounds {
		g := acquire(t, s, r)
		if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: long}); err != nil {
			t.Fatal(err)
		}
		<-time.After(3 * time.Millisecond)
		mu.Lock()
		rounds[i], sent = sent, nil
		mu.Unlock()
	}
	if len(rounds[0]) == 0 || !slices.Equal(rounds[0], rounds[1]) {
		t.Errorf("sent first\n%q,\nlater\n%q", rounds[0], rounds[1])
	}
}

func TestB35_NoEvalAfterWarmUp(t *testing.T) {
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv)
	s := open(t, p.URL())
	cycle := func() {
		r := request("L")
		g := acquire(t, s, r)
		if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: long}); err != nil {
			t.Fatal(err)
		}
		release(t, s, r.Claim, true)
	}
	for i := range 3 {
		before := p.CommandCounts()
		cycle()
		after := p.CommandCounts()
		if n := after["EVAL"] - before["EVAL"]; n != 3 {
			t.Errorf("after flush %d: %d EVAL for three scripts that the server does not know", i, n)
		}
		if n := after["EVALSHA"] - before["EVALSHA"]; n != 3 {
			t.Errorf("after flush %d: %d EVALSHA, want 3", i, n)
		}
		for range 100 {
			cycle()
		}
		if n := p.CommandCounts()["EVAL"] - after["EVAL"]; n != 0 {
			t.Errorf("%d EVAL after the first", n)
		}
		srv.Must("SCRIPT", "FLUSH")
	}
}

// 10,000 cycles leave one channel, the connections of one process, and keys that expire.
func TestB23_B39_NothingPilesUp(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, srv.URL())
	const workers, cycles, locks = 8, 1250, 50
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range cycles {
				lock := fmt.Sprintf("L%d", (w*cycles+i)%locks)
				in, err := s.Join(t.Context(), lock)
				if err != nil {
					t.Errorf("Join: %v", err)
					return
				}
				r := request(lock)
				r.Waiter = in.Waiter
				_, err = s.Acquire(t.Context(), r)
				if err != nil && !errors.Is(err, lease.ErrHeld) {
					t.Errorf("Acquire: %v", err)
				}
				if _, err := s.Release(t.Context(), r.Claim); err != nil {
					t.Errorf("Release: %v", err)
				}
				in.Leave()
			}
		})
	}
	wg.Wait()
	if channels := srv.Must("PUBSUB", "CHANNELS", "*").([]any); len(channels) != 1 {
		t.Errorf("channels: %v", channels)
	}
	if n := srv.Clients(); n > s.opt.PoolSize+2+1 {
		t.Errorf("%d connections", n)
	}
	// fn of each lock; a slot may still be kept for a waiter that has left.
	if n := expires(t, srv); n > 3*locks {
		t.Errorf("%d keys of %d locks", n, locks)
	}
	for i := range locks {
		if n := srv.Must("ZCARD", fmt.Sprintf("soloist:{L%d}:q", i)); n != int64(0) {
			t.Errorf("%d still in line for L%d", n, i)
		}
	}
	in := s.inboxes[s.channels("")+s.instance]
	in.mu.Lock()
	defer in.mu.Unlock()
	if n := len(in.waiters); n != 0 {
		t.Errorf("%d waiters are remembered", n)
	}
}

// 1000 waiters that died do not keep the living from their turn.
func TestB19_DeadWaitersDrain(t *testing.T) {
	srv := redistest.Start(t)
	s, live := open(t, srv.URL()), open(t, srv.URL())
	holder := request("L")
	acquire(t, s, holder)
	const dead = 1000
	for i := range dead {
		srv.Must("ZADD", "soloist:{L}:q", i, fmt.Sprintf("dead%d#1", i))
	}
	r, in := waiting(t, live, "L")
	for looks := 1; ; looks++ {
		h := refused(t, live, r)
		if h.Rank == 0 && h.Waiting == 1 {
			break
		}
		if looks > 1+dead/256 {
			t.Fatalf("rank %d of %d after %d looks", h.Rank, h.Waiting, looks)
		}
	}
	release(t, s, holder.Claim, true)
	called(t, in)
	acquire(t, live, r)
	expires(t, srv)
}

// A key that somebody made persistent is not waited for without bound, and our own heals.
func TestB34_KeyWithoutTTL(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, srv.URL())
	r := request("L")
	g := acquire(t, s, r)
	srv.Must("PERSIST", "soloist:{L}:lk")
	waiter := request("L")
	if h := refused(t, s, waiter); h.Left >= 0 || h.LookAgain <= 0 || h.LookAgain > 2*long || h.Turn {
		t.Errorf("%+v, want Left < 0 and a bounded LookAgain", h)
	}
	if info, err := s.Inspect(t.Context(), "L"); err != nil || len(info.Holders) != 1 || info.Holders[0].Left >= 0 {
		t.Errorf("Inspect: %+v, %v; want a holder with Left < 0", info, err)
	}
	if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: long}); err != nil {
		t.Fatal(err)
	}
	expires(t, srv)
	srv.Must("PERSIST", "soloist:{L}:lk")
	acquire(t, s, r)
	expires(t, srv)
}

// What we did not write is nobody's of ours: held, shown without its content, left alone.
func TestForeignValue(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, srv.URL())
	for _, value := range []string{"", "x", "secret value", "a b c d e f", "~", "0123 not a fence pod uid addr", strings.Repeat("f ", 6)} {
		srv.Must("FLUSHALL")
		srv.Must("SET", "soloist:{L}:lk", value, "PX", long.Milliseconds())
		r := request("L")
		if h := refused(t, s, r); h.Holder.Name == "secret" || h.Left <= 0 {
			t.Errorf("%q: %+v", value, h)
		}
		r.Reclaim = true
		refused(t, s, r)
		if _, err := s.Extend(t.Context(), lease.Grant{Claim: r.Claim}, lease.Extension{TTL: long}); !errors.Is(err, lease.ErrLost) {
			t.Errorf("%q: Extend: %v", value, err)
		}
		release(t, s, r.Claim, false)
		if info, err := s.Inspect(t.Context(), "L"); err != nil || strings.Contains(fmt.Sprint(info), "secret") {
			t.Errorf("%q: Inspect: %+v, %v", value, info, err)
		}
		if got := srv.Must("GET", "soloist:{L}:lk"); got != value {
			t.Errorf("%q became %q", value, got)
		}
	}
}

// Half a script is not to be seen even when a key has the wrong type: no key stays
// without a TTL, and nothing is taken for a verdict.
func TestWrongType(t *testing.T) {
	for _, key := range []string{"lk", "fn", "q"} {
		srv := redistest.Start(t)
		s := open(t, srv.URL())
		g := acquire(t, s, request("L"))
		srv.Must("DEL", "soloist:{L}:"+key)
		srv.Must("LPUSH", "soloist:{L}:"+key, "x")
		srv.Must("PEXPIRE", "soloist:{L}:"+key, long.Milliseconds())
		for op, err := range everyOp(t.Context(), s, g) {
			if err != nil { // not every operation looks at every key
				wantKind(t, key+" "+op, err, KindWrongType)
			}
		}
		if _, err := s.Inspect(t.Context(), "L"); err == nil {
			t.Errorf("Inspect with a list at %s: no error", key)
		}
		expires(t, srv)
	}
}
