package redislease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/redistest"
)

// Whoever loses the inbox's connection looks again as soon as there is a new one, since
// something may have been missed (B22).
func TestB22_ResubscriptionRechecks(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, srv.URL())
	holder := request("L")
	acquire(t, s, holder)
	_, first := waiting(t, s, "L")
	_, second := waiting(t, s, "L")
	for range 5 {
		srv.Must("CLIENT", "KILL", "TYPE", "pubsub")
		called(t, first)
		called(t, second)
	}
	release(t, s, holder.Claim, true)
	called(t, first)
}

// A candidate in line gets the lock although the inbox's connection is cut again and
// again, and messages with it.
func TestB22_CutInboxes(t *testing.T) {
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv)
	holders, waiters := open(t, srv.URL()), open(t, p.URL())
	p.OnPush(nil, redistest.CutReply(), redistest.Always)
	c := &lease.Candidate{Store: waiters, Timing: lease.JobTiming(long)}
	for range 5 {
		holder := request("L")
		acquire(t, holders, holder)
		terms := make(chan *lease.Term, 1)
		go func() { // ends with the test's context
			if term, err := c.Acquire(t.Context(), request("L")); err == nil {
				terms <- term
			}
		}()
		until(t, "a waiter in line", func() bool {
			info, err := holders.Inspect(t.Context(), "L")
			return err == nil && info.Waiting == 1
		})
		release(t, holders, holder.Claim, true)
		select {
		case term := <-terms:
			if _, err := term.Release(t.Context()); err != nil {
				t.Errorf("Release: %v", err)
			}
		case <-time.After(patient):
			t.Fatalf("not granted within %v", patient)
		}
	}
}

// A message that is lost costs one claim: the next in line looks then.
func TestLostGoCostsAClaim(t *testing.T) {
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv)
	claim := func(o *Options) { o.Claim = 50 * time.Millisecond }
	deaf, other := open(t, p.URL(), claim), open(t, srv.URL(), claim)
	holder := request("L")
	acquire(t, other, holder)
	waiting(t, deaf, "L")
	r, in := waiting(t, other, "L")
	lost := p.OnPush(nil, redistest.Drop(), redistest.Always)
	release(t, other, holder.Claim, true)
	lost.Wait(1)
	for {
		select {
		case n := <-in.Notices:
			if n.Now || n.LookAgain > time.Second || !n.Turn {
				t.Errorf("told %+v, want a turn in about a claim", n)
			}
			<-time.After(n.LookAgain)
		case <-time.After(patient):
			t.Fatal("the second in line was not told")
		}
		r.Skip = 0
		if _, err := other.Acquire(t.Context(), r); err == nil {
			return
		} else if !errors.Is(err, lease.ErrHeld) {
			t.Fatal(err)
		}
	}
}

// A waiter whose process has gone is passed over at once, not after a claim.
func TestGoneProcessIsPassedOver(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, srv.URL())
	holder := request("L")
	acquire(t, s, holder)
	for range 3 {
		gone := open(t, srv.URL())
		waiting(t, gone, "L")
		if err := gone.Close(); err != nil {
			t.Fatal(err)
		}
		channel := gone.channels("") + gone.instance
		until(t, "the server sees it go", func() bool {
			return srv.Must("PUBSUB", "NUMSUB", channel).([]any)[1] == int64(0)
		})
	}
	r, in := waiting(t, s, "L") // drops those right ahead
	if h := refused(t, s, r); h.Rank != 0 {
		t.Errorf("rank %d behind three that have gone", h.Rank)
	}
	release(t, s, holder.Claim, true)
	called(t, in)
	acquire(t, s, r)
}

// What a reserved waiter does not claim goes to the next.
func TestUnclaimedReservation(t *testing.T) {
	srv := redistest.Start(t)
	claim := func(o *Options) { o.Claim = 30 * time.Millisecond }
	s, silent := open(t, srv.URL(), claim), open(t, srv.URL(), claim)
	holder := request("L")
	acquire(t, s, holder)
	_, called1 := waiting(t, silent, "L")
	r, _ := waiting(t, s, "L")
	release(t, s, holder.Claim, true)
	called(t, called1) // and does nothing
	until(t, "the reservation runs out", func() bool {
		_, err := s.Acquire(t.Context(), r)
		return err == nil
	})
}

func TestJoinWaitsForTheSubscription(t *testing.T) {
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv)
	s := open(t, p.URL())
	let := make(chan struct{})
	hold := p.On(redistest.Name("SUBSCRIBE"), redistest.HoldReplyUntil(let), 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	_, err := s.Join(ctx, "L")
	cancel()
	if err == nil || lease.IsVerdict(err) {
		t.Fatalf("Join before the subscription is confirmed: %v", err)
	}
	hold.Wait(1)
	close(let)
	waiting, err := s.Join(t.Context(), "L")
	if err != nil {
		t.Fatal(err)
	}
	waiting.Leave()
	if n := p.TotalCommands("SUBSCRIBE"); n != 1 {
		t.Errorf("%d subscriptions", n)
	}
}

func TestJoinAfterClose(t *testing.T) {
	s := open(t, redistest.Start(t).URL())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Join(t.Context(), "L")
	wantKind(t, "Join", err, lease.KindClosed)
	for op, err := range everyOp(t.Context(), s, lease.Grant{Claim: request("L").Claim}) {
		wantKind(t, op, err, lease.KindClosed)
	}
}

// Messages that make no sense, or are for others, are dropped.
func TestStrayMessages(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, srv.URL())
	holder := request("L")
	acquire(t, s, holder)
	_, in := waiting(t, s, "L")
	channel := s.channels("") + s.instance
	for _, payload := range []string{
		"", "x", "go", in.Waiter, in.Waiter + " L", in.Waiter + " other go", "someone#1 L go",
		in.Waiter + " L go now", in.Waiter + " L in x 5 1 ", in.Waiter + " L in 0 5", "\x00\xff \xfe go",
	} {
		if n := srv.Must("PUBLISH", channel, payload); n != int64(1) {
			t.Fatalf("%v receive it", n)
		}
	}
	srv.Must("PUBLISH", channel, in.Waiter+" L in 2 5000 7 17 1000 pod uid addr")
	n := <-in.Notices
	want := lease.Held{
		Holder: lease.Holder{Identity: lease.Identity{Name: "pod", PodUID: "uid", Address: "addr"}, Since: time.UnixMilli(1000)},
		Term:   17, Fence: 17, Left: 5 * time.Second, Rank: 2, Waiting: 7,
		LookAgain: n.LookAgain, Turn: true,
	}
	if n.Now || n.Held != want || n.LookAgain < n.Left {
		t.Errorf("told %+v, want %+v", n, want)
	}
}
