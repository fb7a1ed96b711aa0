package leasetest

import (
	"context"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// A revoker is a store whose leases an operator can end.
type revoker interface {
	Revoke(ctx context.Context, lock string, force bool) (int, error)
}

// finishing makes a contract that only a [lease.Finisher] is held to.
func finishing(sentence string, check func(*bench, lease.Finisher)) contract {
	return contract{sentence, func(b *bench) {
		f, ok := b.store.(lease.Finisher)
		if !ok {
			b.Skip("no lease.Finisher")
		}
		check(b, f)
	}}
}

func revoking(sentence string, check func(*bench, revoker)) contract {
	return contract{sentence, func(b *bench) {
		r, ok := b.store.(revoker)
		if !ok {
			b.Skip("nothing can be revoked")
		}
		check(b, r)
	}}
}

func (b *bench) finish(s lease.Finisher, c lease.Claim, f lease.Finish, want bool) {
	b.Helper()
	if got, err := s.Finish(b.Context(), c, f); err != nil || got != want {
		b.Fatalf("Finish: %v, %v; want %v", got, err, want)
	}
}

func (b *bench) done(s lease.Finisher, run string) *lease.Run {
	b.Helper()
	r, err := s.Done(b.Context(), b.lock, run)
	if err != nil {
		b.Fatalf("Done: %v", err)
	}
	return r
}

func (b *bench) revoke(r revoker, force bool, want int) {
	b.Helper()
	if n, err := r.Revoke(b.Context(), b.lock, force); err != nil || n != want {
		b.Fatalf("Revoke: %d, %v; want %d", n, err, want)
	}
}

var finishes = []contract{
	finishing("a run that is done is remembered, with who and when", func(b *bench, s lease.Finisher) {
		if r := b.done(s, "monday"); r != nil {
			b.Errorf("%+v before anybody did it", r)
		}
		g := b.grant(b.plain())
		since := b.holder().Since
		b.finish(s, g.Claim, lease.Finish{Done: "monday", Keep: long}, true)
		r := b.done(s, "monday")
		if r == nil {
			b.Fatal("no record of what was done")
		}
		if r.Name != "monday" || r.By != "pod" || r.Fence != g.Fence || r.At.Before(since) || r.Took != r.At.Sub(since) {
			b.Errorf("%+v, want it by pod with fence %d, from %v on", r, g.Fence, since)
		}
		if last := b.inspect().LastRun; last == nil || *last != *r {
			b.Errorf("Inspect shows the last run %+v, want %+v", last, r)
		}
		if r := b.done(s, "tuesday"); r != nil {
			b.Errorf("%+v for another run", r)
		}
		b.grant(b.plain())
	}),
	finishing("what no longer holds does not record a run", func(b *bench, s lease.Finisher) {
		r := b.plain()
		r.TTL = b.suite.Short
		g := b.grant(r)
		b.runOut()
		b.finish(s, g.Claim, lease.Finish{Done: "late", Keep: long, AtLeast: long}, false)
		if r := b.done(s, "late"); r != nil {
			b.Errorf("%+v, though the lease had run out", r)
		}
		b.grant(b.plain())
	}),
	finishing("the record of a run is forgotten when it was kept for long enough", func(b *bench, s lease.Finisher) {
		b.finish(s, b.grant(b.plain()).Claim, lease.Finish{Done: "brief", Keep: b.suite.Short}, true)
		b.until("the record goes", func() bool { return b.done(s, "brief") == nil })
	}),
	finishing("a finish repeated changes nothing", func(b *bench, s lease.Finisher) {
		g := b.grant(b.plain())
		b.finish(s, g.Claim, lease.Finish{Done: "once", Keep: long}, true)
		first := b.done(s, "once")
		next := b.grant(b.plain())
		b.finish(s, g.Claim, lease.Finish{Done: "once", Keep: long, AtLeast: long}, true)
		if again := b.done(s, "once"); *again != *first {
			b.Errorf("the record was %+v, and is %+v", first, again)
		}
		b.extend(next, long)
	}),
	finishing("a slot held for too short a time rests until its time has passed", func(b *bench, s lease.Finisher) {
		g := b.grant(b.plain())
		b.finish(s, g.Claim, lease.Finish{AtLeast: long}, true)
		held := b.refused(b.plain())
		if held.Left <= long/2 || held.Left > long {
			b.Errorf("%v are left, want nearly %v", held.Left, long)
		}
		h := b.holder()
		if !h.Resting || h.Fence != g.Fence || h.Name != "pod" {
			b.Errorf("%+v, want the slot at rest after fence %d", h, g.Fence)
		}
		b.lost(g)
		b.release(g.Claim, true)
		b.refused(b.plain())
	}),
	finishing("a slot that rests is not taken back, nor taken over", func(b *bench, s lease.Finisher) {
		g := b.grant(b.plain())
		b.finish(s, g.Claim, lease.Finish{AtLeast: long}, true)
		r := b.plain()
		r.Reclaim, r.Dead = true, g.Fence
		b.refused(r)
	}),
	finishing("a slot that has rested is granted", func(b *bench, s lease.Finisher) {
		g := b.grant(b.plain())
		b.finish(s, g.Claim, lease.Finish{AtLeast: b.suite.Short}, true)
		b.runOut()
		if next := b.grant(b.plain()); next.Fence <= g.Fence {
			b.Errorf("fence %d after %d", next.Fence, g.Fence)
		}
	}),
	finishing("what was held for long enough does not rest", func(b *bench, s lease.Finisher) {
		g := b.grant(b.plain())
		b.until("a millisecond has passed", func() bool { return b.holder().Left < long-time.Millisecond })
		b.finish(s, g.Claim, lease.Finish{AtLeast: time.Millisecond}, true)
		b.grant(b.plain())
	}),
	withSlots("one slot rests and the others do not", func(b *bench) {
		s, ok := b.store.(lease.Finisher)
		if !ok {
			b.Skip("no lease.Finisher")
		}
		g := b.grant(b.slots(2))
		b.finish(s, g.Claim, lease.Finish{AtLeast: long, Done: "slot", Keep: long}, true)
		if next := b.grant(b.slots(2)); next.Slot == g.Slot {
			b.Errorf("slot %d, which rests", next.Slot)
		}
		b.refused(b.slots(2))
	}),
	finishing("a run must have a name, and be kept for a time", func(b *bench, s lease.Finisher) {
		g := b.grant(b.plain())
		for _, f := range []lease.Finish{{Done: "a b", Keep: long}, {Done: "a"}, {Done: "a", Keep: -1}} {
			_, err := s.Finish(b.Context(), g.Claim, f)
			b.want(err, lease.ErrInvalid)
		}
		b.extend(g, long)
	}),
	revoking("a revoked lease is lost at its next renewal, and keeps others out until it has run out", func(b *bench, r revoker) {
		b.revoke(r, false, 0)
		request := b.plain()
		g := b.grant(request)
		b.revoke(r, false, 1)
		b.refused(b.plain())
		b.lost(g)
		_, err := b.store.Acquire(b.Context(), request)
		b.want(err, lease.ErrBurned)
		b.refused(b.plain())
		b.release(g.Claim, true)
		next := b.grant(b.plain())
		if next.Fence <= g.Fence {
			b.Errorf("fence %d after %d", next.Fence, g.Fence)
		}
		b.extend(next, long)
	}),
	revoking("a lock unlocked by force is free at once, for a higher fence", func(b *bench, r revoker) {
		g := b.grant(b.plain())
		before := b.inspect().Fence
		b.revoke(r, true, 1)
		b.lost(g)
		if after := b.inspect(); after.Fence <= before || len(after.Holders) != 0 {
			b.Errorf("%+v, want nobody, and a fence above %d", after, before)
		}
		next := b.grant(b.plain())
		b.release(g.Claim, false)
		b.extend(next, long)
	}),
	revoking("what rests is unlocked by force", func(b *bench, r revoker) {
		s, ok := b.store.(lease.Finisher)
		if !ok {
			b.Skip("nothing rests")
		}
		b.finish(s, b.grant(b.plain()).Claim, lease.Finish{AtLeast: long}, true)
		b.revoke(r, true, 1)
		b.grant(b.plain())
	}),
	revoking("all slots are unlocked", func(b *bench, r revoker) {
		if b.suite.Plain {
			b.Skip("a store of plain locks")
		}
		for range 3 {
			b.grant(b.slots(3))
		}
		b.revoke(r, true, 3)
		for range 3 {
			b.grant(b.slots(3))
		}
	}),
	revoking("the next in line is told when a lock is unlocked by force", func(b *bench, r revoker) {
		w, ok := b.waker()
		if !ok {
			b.Skip("no line")
		}
		b.grant(b.plain())
		inbox, err := w.Join(b.Context(), b.lock)
		if err != nil {
			b.Fatal(err)
		}
		defer inbox.Leave()
		waiting := b.plain()
		waiting.Waiter = inbox.Waiter
		b.refused(waiting)
		b.revoke(r, true, 1)
		timeout := time.After(patient)
		for told := false; !told; {
			select {
			case n := <-inbox.Notices:
				told = n.Now
			case <-timeout:
				b.Fatal("nobody was told")
			}
		}
		b.grant(waiting)
	}),
}
