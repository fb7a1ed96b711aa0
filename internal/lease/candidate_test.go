package lease_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

type ctx = context.Context

func cancelled(t *testing.T) ctx {
	c, cancel := context.WithCancel(t.Context())
	cancel()
	return c
}

// B33: the lease of a first try, whose reply was lost, does not block the second.
func TestB33ALostReplyIsOursAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		for _, fate := range []leasetest.Fate{{Cut: true}, {Mute: true}} {
			r := newRig(t, server, 1)
			r.link.SetFates(nth("acquire", 0, fate))
			term := r.acquire(timing.RetryPeriod + time.Second)
			if got, want := term.Grant().Fence, server.State(lock).Fence; got != want {
				t.Errorf("fence %d, server has %d", got, want)
			}
			term.Release(t.Context())
		}
	})
}

// B4: a grant that is told when its belief is over is given back, under a new token.
func TestB4ALateGrantIsGivenBack(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		tokens := &tokens{Link: r.link}
		r.Candidate.Store = tokens
		r.Candidate.Timing.RetryPeriod = time.Hour // so that the call does not give up first
		r.link.SetFates(nth("acquire", 0, leasetest.Fate{ReplyDelay: timing.Belief()}))
		from := time.Now()
		term, err := r.Acquire(t.Context(), request("a"))
		if err != nil {
			t.Fatal(err)
		}
		defer term.Stop(nil)
		if took := time.Since(from); took < timing.Belief() {
			t.Fatalf("granted after %v", took)
		}
		if len(tokens.sent) != 2 || tokens.sent[0] == tokens.sent[1] {
			t.Errorf("%d tries; want two, with two tokens", len(tokens.sent))
		}
	})
}

// tokens remembers the token of each try.
type tokens struct {
	*leasetest.Link
	mu   sync.Mutex
	sent []lease.Token
}

func (s *tokens) Acquire(ctx ctx, r lease.Request) (lease.Grant, error) {
	s.mu.Lock()
	s.sent = append(s.sent, r.Token)
	s.mu.Unlock()
	return s.Link.Acquire(ctx, r)
}

// B1: a token for which a release was sent is never used again, though that release
// arrives late, or the request arrives after it.
func TestB1ALateReleaseHurtsNobody(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		r.link.SetFates(func(c leasetest.Call) leasetest.Fate {
			switch {
			case c.Op == "acquire" && c.N == 0: // arrives long after it was given up
				return leasetest.Fate{Delay: 2 * time.Second}
			case c.Op == "release" && c.N <= 1:
				return leasetest.Fate{Delay: 1500 * time.Millisecond}
			}
			return leasetest.Fate{}
		})
		c, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := r.Acquire(c, request("a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("first Acquire: %v", err)
		}
		term := r.acquire(time.Second)
		for range 40 { // both stragglers arrive
			time.Sleep(100 * time.Millisecond)
			if r.belief(term) == lease.Valid && left(server) < 0 {
				t.Fatal("believes in a lease that is gone")
			}
		}
		if err := term.Err(); err != nil {
			t.Errorf("the term ended: %v", err)
		}
		term.Release(t.Context())
		if left := left(server); left >= 0 {
			t.Errorf("a late request holds the lock for %v", left)
		}
	})
}

// B41: giving up while a request is under way leaves nothing behind.
func TestB41GivingUpLeavesNothing(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond, 50 * time.Millisecond} {
		bubble(t, func(t *testing.T, server *leasetest.Memory) {
			r := newRig(t, server, 1)
			r.link.SetFates(func(c leasetest.Call) leasetest.Fate {
				if c.Op != "acquire" {
					return leasetest.Fate{}
				}
				return leasetest.Fate{Delay: delay, ReplyDelay: delay}
			})
			c, cancel := context.WithTimeout(t.Context(), delay+delay/2)
			defer cancel()
			if term, err := r.Acquire(c, request("a")); err == nil {
				term.Release(t.Context())
			}
			time.Sleep(time.Second)
			if s := server.State(lock); len(s.Leases) != 0 || len(s.Line) != 0 {
				t.Errorf("left behind: %d leases, line %v", len(s.Leases), s.Line)
			}
		})
	}
}

// B25: Acquire returns at once when it is cancelled, wherever it waits.
func TestB25CancelIsObeyedEverywhere(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		holder := newRig(t, server, 1)
		term := holder.acquire(time.Second)
		defer term.Stop(nil)
		for after := time.Duration(0); after < 3*time.Second; after += 37 * time.Millisecond {
			r := newRig(t, server, 1)
			r.link.SetFates(leasetest.Chaos{Seed: uint64(after), Lost: .3, Refused: .3, Slow: .3, MaxDelay: time.Second}.Fate)
			c, cancel := context.WithTimeout(t.Context(), after)
			_, err := r.Acquire(c, request("b"))
			deadline, _ := c.Deadline()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("Acquire = %v", err)
			}
			if late := time.Since(deadline); late > timing.RetryPeriod {
				t.Errorf("returned %v late", late)
			}
			cancel()
		}
	})
}

// The next in line takes over as soon as the server lets it, and not before.
func TestTakeoverAfterACrash(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := newRig(t, server, 1), newRig(t, server, 1)
		term := a.acquire(time.Second)
		got := make(chan *lease.Term)
		go func() { got <- b.acquire(time.Minute) }()
		time.Sleep(5 * time.Second)
		a.link.SetDown(true)
		dies := left(server)
		from := time.Now()
		next := <-got
		if late := time.Since(from) - dies; late < 0 || late > 3*time.Millisecond {
			t.Errorf("took over %v after the lease's end", late)
		}
		if next.Grant().Fence <= term.Grant().Fence {
			t.Errorf("fence %d after %d", next.Grant().Fence, term.Grant().Fence)
		}
	})
}

// B22: who joins is listening before it tries, so a release in between is not missed.
func TestB22ListensBeforeItTries(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := newRig(t, server, 1), newRig(t, server, 1)
		a.Candidate.Timing = lease.DefaultTiming
		term := a.acquire(time.Second)
		// b's first try is answered after the release that it does not know of.
		b.link.SetFates(nth("acquire", 0, leasetest.Fate{ReplyDelay: 300 * time.Millisecond}))
		go func() {
			time.Sleep(150 * time.Millisecond)
			term.Release(t.Context())
		}()
		from := time.Now()
		b.acquire(time.Minute)
		if took := time.Since(from); took > 310*time.Millisecond {
			t.Errorf("took over after %v", took)
		}
	})
}

// A message that is lost costs one claim: the next in line looks when its turn comes.
func TestALostMessageCostsOneClaim(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b := newRig(t, server, 1), newRig(t, server, 1)
		term := a.acquire(time.Second)
		c := newRig(t, server, 1)
		b.link.SetNotices(func(int) leasetest.NoticeFate { return leasetest.NoticeFate{Lost: true} })
		got := make(chan *lease.Term)
		go func() { got <- b.acquire(time.Minute) }()
		synctest.Wait()
		go func() { got <- c.acquire(time.Minute) }()
		synctest.Wait()
		from := time.Now()
		term.Release(t.Context())
		next := <-got
		if took := time.Since(from); took > leasetest.DefaultClaim+5*time.Millisecond {
			t.Errorf("the lock stood idle for %v", took)
		}
		next.Release(t.Context())
		<-got
	})
}

// A first in line that does not take a lease which has run out, though it seems to
// listen, costs one claim: the second takes it over its head.
func TestADeafFirstInLineCostsOneClaim(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		a, b, c := newRig(t, server, 1), newRig(t, server, 1), newRig(t, server, 1)
		a.acquire(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		var deaf sync.WaitGroup
		defer deaf.Wait()
		defer cancel()
		deaf.Go(func() { b.Acquire(ctx, request("b")) })
		synctest.Wait()
		got := make(chan *lease.Term)
		go func() { got <- c.acquire(time.Minute) }()
		synctest.Wait()
		a.link.SetDown(true)
		b.link.SetDown(true)
		dies, from := left(server), time.Now()
		<-got
		if late := time.Since(from) - dies; late > leasetest.DefaultClaim+5*time.Millisecond {
			t.Errorf("took over %v after the lease's end, want one claim", late)
		}
	})
}

// A store that says when it can be trusted again is asked then.
func TestWaitErrorIsObeyed(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		young := &young{Link: r.link, until: time.Now().Add(7 * time.Second)}
		r.Candidate.Store = young
		from := time.Now()
		r.acquire(time.Minute)
		if took := time.Since(from); took != 7*time.Second || young.asked != 1 {
			t.Errorf("granted after %v and %d refusals, want 7s and 1", took, young.asked)
		}
	})
}

type young struct {
	*leasetest.Link
	until time.Time
	asked int
}

func (y *young) Acquire(ctx ctx, r lease.Request) (lease.Grant, error) {
	if d := time.Until(y.until); d > 0 {
		y.asked++
		return lease.Grant{}, &lease.WaitError{For: d, Reason: "test"}
	}
	return y.Link.Acquire(ctx, r)
}

// What can't be granted is not asked for again.
func TestInvalidRequestsEnd(t *testing.T) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		r := newRig(t, server, 1)
		r.acquire(time.Second)
		slotted := request("b")
		slotted.Slots = 2
		if _, err := r.Acquire(t.Context(), slotted); !errors.Is(err, lease.ErrKind) {
			t.Errorf("a slotted use of a plain lock: %v", err)
		}
		bad := request("b")
		bad.Lock = "{x}"
		if _, err := r.Acquire(t.Context(), bad); !errors.Is(err, lease.ErrInvalid) {
			t.Errorf("a name with braces: %v", err)
		}
	})
}
