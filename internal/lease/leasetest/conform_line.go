package leasetest

import (
	"context"
	"math/rand/v2"

	"github.com/soloist-dev/soloist/internal/lease"
)

// wakes makes a contract that only a Waker is held to.
func wakes(sentence string, check func(*bench)) contract {
	return contract{sentence, func(b *bench) {
		if _, ok := b.waker(); ok {
			check(b)
		}
	}}
}

// ordered makes a contract that only a Waker with a line is held to.
func ordered(sentence string, check func(*bench)) contract {
	return wakes(sentence, func(b *bench) {
		if b.suite.Unordered {
			b.Skip("no line")
		}
		check(b)
	})
}

var lines = []contract{
	ordered("the line is kept in the order of arrival, however often they ask (B21)", func(b *bench) {
		b.grant(b.plain())
		line := b.waiters(5)
		for range 100 {
			i := rand.N(len(line))
			if h := line[i].refused(); h.Rank != i || h.Waiting != len(line) {
				b.Fatalf("waiter %d has rank %d of %d", i, h.Rank, h.Waiting)
			}
		}
		if info := b.inspect(); info.Waiting != len(line) {
			b.Errorf("Inspect shows %d waiting, want %d", info.Waiting, len(line))
		}
	}),
	ordered("a lock is handed on in the order of arrival", func(b *bench) {
		g := b.grant(b.plain())
		line := b.waiters(5)
		last := g.Fence
		b.release(g.Claim, true)
		for i, w := range line {
			w.called()
			g := w.grant()
			if g.Fence <= last || g.Waiting != len(line)-i-1 {
				b.Errorf("waiter %d: fence %d after %d, %d waiting", i, g.Fence, last, g.Waiting)
			}
			last = g.Fence
			b.releaseBy(w.store, g.Claim, true)
		}
		b.grant(b.plain())
	}),
	wakes("what is sent right after Join arrives (B22)", func(b *bench) {
		for range 10 {
			g := b.grant(b.plain())
			w := b.join(b.plain())
			w.refused()
			b.release(g.Claim, true)
			w.called()
			b.releaseBy(w.store, w.grant().Claim, true)
		}
	}),
	ordered("a slot kept for the next in line is nobody's yet, and nobody else's", func(b *bench) {
		g := b.grant(b.plain())
		w := b.waiters(1)[0]
		b.release(g.Claim, true)
		if h := b.refused(b.plain()); h.Holder != (lease.Holder{}) || h.Left > Claim {
			b.Errorf("%+v, want no holder, and at most %v left", h, Claim)
		}
		if held := b.inspect().Holders; len(held) != 0 {
			b.Errorf("held by %+v", held)
		}
		late := b.join(b.plain())
		if h := late.refused(); h.Rank != 0 {
			b.Errorf("rank %d, want 0: the slot is kept for another", h.Rank)
		}
		w.called()
		if next := w.grant(); next.Fence <= g.Fence || next.Waiting != 1 {
			b.Errorf("%+v, want a fence above %d and one waiting", next, g.Fence)
		}
	}),
	ordered("the first four are told their rank, the holder and the time left", func(b *bench) {
		g := b.grant(b.plain())
		line := b.waiters(6)
		b.release(g.Claim, true)
		line[0].called()
		next := line[0].grant()
		for i, w := range line[1 : 1+lease.Heads] {
			n := w.hears("rank and time left", func(n lease.Notice) bool { return n.Left > long/2 })
			if n.Now || n.Rank != i || n.Waiting != 5 || n.Fence != next.Fence || n.Left > long ||
				n.Holder.Identity != identity("pod") || n.LookAgain < n.Left || !n.Turn {
				b.Errorf("waiter %d was told %+v", i+1, n)
			}
		}
	}),
	ordered("a waiter whose turn comes when nobody called takes the lock", func(b *bench) {
		b.uncalled(1)[0].grant()
	}),
	ordered("a free lock is the first in line's", func(b *bench) {
		first := b.uncalled(1)[0]
		second := b.join(b.plain())
		if h := second.refused(); h.Rank != 0 || h.Holder != (lease.Holder{}) {
			b.Errorf("%+v, want rank 0 and no holder: the lock is kept for the other", h)
		}
		first.called()
		first.grant()
	}),
	ordered("waiters ahead that missed their turn are passed over", func(b *bench) {
		last := b.uncalled(3)[2]
		last.r.Skip = 2
		if g := last.grant(); g.Waiting != 0 {
			b.Errorf("%d waiting, want the others dropped", g.Waiting)
		}
	}),
	ordered("a waiter that leaves is out of the line", func(b *bench) {
		g := b.grant(b.plain())
		line := b.waiters(3)
		b.releaseBy(line[0].store, line[0].r.Claim, false)
		if h := line[1].refused(); h.Rank != 0 || h.Waiting != 2 {
			b.Errorf("rank %d of %d, want 0 of 2", h.Rank, h.Waiting)
		}
		if e := b.extend(g, long); e.Waiting != 2 {
			b.Errorf("%d waiting, want 2", e.Waiting)
		}
	}),
	ordered("a waiter that leaves passes on what was kept for it", func(b *bench) {
		g := b.grant(b.plain())
		line := b.waiters(2)
		b.release(g.Claim, true)
		line[0].called()
		b.releaseBy(line[0].store, line[0].r.Claim, false)
		line[1].called()
		line[1].grant()
	}),
	wakes("the last waiter that leaves leaves the lock free", func(b *bench) {
		g := b.grant(b.plain())
		w := b.waiters(1)[0]
		b.release(g.Claim, true)
		w.called()
		b.releaseBy(w.store, w.r.Claim, false)
		b.grant(b.plain())
	}),
	ordered("one that does not wait takes no place in line", func(b *bench) {
		b.grant(b.plain())
		b.waiters(2)
		if h := b.refused(b.plain()); h.Rank != -1 || h.Waiting != 2 {
			b.Errorf("rank %d of %d, want none of 2", h.Rank, h.Waiting)
		}
		if info := b.inspect(); info.Waiting != 2 {
			b.Errorf("%d waiting, want 2", info.Waiting)
		}
	}),
	ordered("a slot that comes free goes to the first in line", func(b *bench) {
		const n = 3
		var holders []lease.Grant
		for range n {
			holders = append(holders, b.grant(b.slots(n)))
		}
		first, second := b.join(b.slots(n)), b.join(b.slots(n))
		first.refused()
		second.refused()
		b.release(holders[1].Claim, true)
		first.called()
		if g := first.grant(); g.Slot != 1 {
			b.Errorf("slot %d, want 1", g.Slot)
		}
		b.release(holders[0].Claim, true)
		second.called()
		if g := second.grant(); g.Slot != 0 {
			b.Errorf("slot %d, want 0", g.Slot)
		}
	}),
	wakes("all who wait without a line are told when it is free", func(b *bench) {
		if !b.suite.Unordered {
			b.Skip("a line")
		}
		g := b.grant(b.plain())
		crowd := b.waiters(4)
		b.release(g.Claim, true)
		for _, w := range crowd {
			w.called()
		}
		if next := crowd[2].grant(); next.Fence <= g.Fence {
			b.Errorf("fence %d after %d", next.Fence, g.Fence)
		}
		crowd[0].refused()
	}),
	wakes("Join gives up when its context is done", func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		inbox, err := b.open().(lease.Waker).Join(ctx, b.lock)
		if err == nil { // it was ready at once
			inbox.Leave()
		} else if lease.IsVerdict(err) {
			b.Errorf("%v is a verdict", err)
		}
	}),
	{"candidates in line hold the lock one after another", func(b *bench) { b.takeTurns(5) }},
}
