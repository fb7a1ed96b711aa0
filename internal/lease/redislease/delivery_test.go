package redislease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/redistest"
)

func script(s *redis.Script) redistest.Matcher {
	return redistest.ScriptWhere(func(args []string) bool { return args[0] == s.Hash() })
}

// warm makes the server know the scripts, so that each request is one command.
func warm(t *testing.T, s *Store) {
	t.Helper()
	r := request("warm")
	g := acquire(t, s, r)
	if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: long}); err != nil {
		t.Fatal(err)
	}
	release(t, s, r.Claim, true)
}

// A lost reply: the retry with the same token wins at once, with the same fence.
func TestB33_LostReplyThenRetry(t *testing.T) {
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv)
	s := open(t, p.URL())
	warm(t, s)
	for name, action := range map[string]redistest.Action{
		"cut": redistest.CutReply(), "lost": redistest.LoseReply(),
	} {
		r := request("L-" + name)
		p.On(script(acquireScript), action, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := s.Acquire(ctx, r)
		cancel()
		if err == nil || lease.IsVerdict(err) {
			t.Fatalf("%s: %v", name, err)
		}
		value := srv.Must("GET", "soloist:{"+r.Lock+"}:lk")
		g := acquire(t, s, r)
		if again := srv.Must("GET", "soloist:{"+r.Lock+"}:lk"); again != value || g.Fence == 0 {
			t.Errorf("%s: the lock was %v, became %v", name, value, again)
		}

		p.On(script(extendScript), action, 1)
		ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err = s.Extend(ctx, g, lease.Extension{TTL: long})
		cancel()
		if err == nil || lease.IsVerdict(err) {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: long}); err != nil {
			t.Errorf("%s: Extend again: %v", name, err)
		}

		p.On(script(releaseScript), action, 1)
		ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err = s.Release(ctx, r.Claim)
		cancel()
		if err == nil || lease.IsVerdict(err) {
			t.Fatalf("%s: %v", name, err)
		}
		release(t, s, r.Claim, true)
	}
}

// An acquire that arrives after its own release takes nothing.
func TestB1_AcquireThatArrivesLate(t *testing.T) {
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv)
	s := open(t, p.URL())
	warm(t, s)
	let := make(chan struct{})
	late := p.On(script(acquireScript), redistest.HoldUntil(let), 1)
	r := request("L")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	_, err := s.Acquire(ctx, r)
	cancel()
	wantKind(t, "acquire", err, lease.KindTimeout)
	late.Wait(1)
	release(t, s, r.Claim, false)
	close(let)
	late.WaitDone(1)
	if v := srv.Must("GET", "soloist:{L}:lk"); v != nil {
		t.Errorf("a late acquire took the lock: %v", v)
	}
	if _, err := s.Acquire(t.Context(), r); !errors.Is(err, lease.ErrBurned) {
		t.Errorf("Acquire: %v", err)
	}
}

// A release that arrives late ends nobody else's lease, a late extend lengthens none.
func TestB1_B11_LateRequestsOfAnEndedTerm(t *testing.T) {
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv)
	s, other := open(t, p.URL()), open(t, srv.URL())
	warm(t, s)
	for _, op := range []*redis.Script{releaseScript, extendScript} {
		r, next := request("L"), request("L")
		g := acquire(t, s, r)
		let := make(chan struct{})
		late := p.On(script(op), redistest.HoldUntil(let), 1)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		var err error
		if op == releaseScript {
			_, err = s.Release(ctx, r.Claim)
		} else {
			_, err = s.Extend(ctx, g, lease.Extension{TTL: 2 * long})
		}
		cancel()
		wantKind(t, "late", err, lease.KindTimeout)
		late.Wait(1)
		srv.Must("DEL", "soloist:{L}:lk") // as when the lease has run out
		n := acquire(t, other, next)
		close(let)
		late.WaitDone(1)
		if e, err := other.Extend(t.Context(), n, lease.Extension{TTL: long}); err != nil || e.Left > long {
			t.Errorf("the next holder's lease: %+v, %v", e, err)
		}
		release(t, other, next.Claim, true)
	}
}

// Each request may be delivered twice, the second time late.
func TestDeliveredTwice(t *testing.T) {
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv)
	s := open(t, p.URL())
	warm(t, s)
	twice := p.On(script(acquireScript), redistest.Duplicate(time.Millisecond), 1)
	r := request("L")
	g := acquire(t, s, r)
	twice.WaitDone(1)
	if again := acquire(t, s, r); again != g {
		t.Errorf("%+v, then %+v", g, again)
	}
	twice = p.On(script(extendScript), redistest.Duplicate(time.Millisecond), 1)
	if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: 2 * long}); err != nil {
		t.Fatal(err)
	}
	twice.WaitDone(1)
	if e, err := s.Extend(t.Context(), g, lease.Extension{TTL: long}); err != nil || e.Left > 2*long {
		t.Errorf("%+v, %v", e, err)
	}
	// The second release comes when another holds.
	twice = p.On(script(releaseScript), redistest.Duplicate(50*time.Millisecond), 1)
	release(t, s, r.Claim, true)
	n := acquire(t, s, request("L"))
	twice.WaitDone(1)
	if _, err := s.Extend(t.Context(), n, lease.Extension{TTL: long}); err != nil {
		t.Error(err)
	}
}
