package leasetest

import (
	"slices"

	"github.com/soloist-dev/soloist/internal/lease"
)

// withSlots makes a contract that a store of plain locks is not held to.
func withSlots(sentence string, check func(*bench)) contract {
	return contract{sentence, func(b *bench) {
		if b.suite.Plain {
			b.Skip("a store of plain locks")
		}
		check(b)
	}}
}

var slotless = []contract{
	{"slots are refused where there are none", func(b *bench) {
		_, acquire := b.store.Acquire(b.Context(), b.slots(2))
		_, extend := b.store.Extend(b.Context(), lease.Grant{Claim: b.slots(2).Claim}, lease.Extension{TTL: long})
		_, release := b.store.Release(b.Context(), b.slots(2).Claim)
		for _, err := range []error{acquire, extend, release} {
			b.want(err, lease.ErrInvalid)
		}
		b.grant(b.plain())
	}},
}

var slotted = []contract{
	{"N slots are granted to N, and no more", func(b *bench) {
		const n = 4
		taken, fences := map[int]lease.Grant{}, map[uint64]bool{}
		for range n {
			g := b.grant(b.slots(n))
			if g.Slot < 0 || g.Slot >= n {
				b.Errorf("slot %d of %d", g.Slot, n)
			}
			taken[g.Slot], fences[g.Fence] = g, true
		}
		if len(taken) != n || len(fences) != n {
			b.Fatalf("%d slots with %d fences were granted, want %d of each", len(taken), len(fences), n)
		}
		b.refused(b.slots(n))
		b.release(taken[2].Claim, true)
		if g := b.grant(b.slots(n)); g.Slot != 2 {
			b.Errorf("slot %d, only 2 is free", g.Slot)
		}
		b.refused(b.slots(n))
	}},
	{"the search for a free slot begins where it is told", func(b *bench) {
		for _, c := range []struct{ first, want int }{{2, 2}, {2, 3}, {2, 0}, {0, 1}} {
			r := b.slots(4)
			r.FirstSlot = c.first
			if g := b.grant(r); g.Slot != c.want {
				b.Errorf("slot %d, want %d: the first free from %d on", g.Slot, c.want, c.first)
			}
		}
	}},
	{"a lock of one slot is a slotted lock", func(b *bench) {
		g := b.grant(b.slots(1))
		b.refused(b.slots(1))
		if info := b.inspect(); info.Slots != 1 || len(info.Holders) != 1 || info.Holders[0].Fence != g.Fence {
			b.Errorf("%+v, want one slot, held with fence %d", info, g.Fence)
		}
	}},
	{"an acquire repeated with its token is the same slot", func(b *bench) {
		b.grant(b.slots(3))
		r := b.slots(3)
		first := b.grant(r)
		r.FirstSlot = (first.Slot + 1) % 3
		if again := b.grant(r); again != first {
			b.Errorf("granted %+v, then %+v", first, again)
		}
		if held := b.inspect().Holders; len(held) != 2 {
			b.Errorf("held are %+v, want two slots", held)
		}
	}},
	{"each takes slots below its own count only", func(b *bench) {
		b.grant(b.slots(2))
		b.grant(b.slots(2))
		b.refused(b.slots(2))
		third := b.grant(b.slots(3))
		if third.Slot != 2 {
			b.Errorf("slot %d, want 2", third.Slot)
		}
		b.refused(b.slots(3))
		b.release(third.Claim, true)
		b.refused(b.slots(2))
	}},
	{"slots are extended and released one by one", func(b *bench) {
		a, c := b.grant(b.slots(2)), b.grant(b.slots(2))
		b.extend(a, long)
		b.release(a.Claim, true)
		b.lost(a)
		b.extend(c, long)
		if held := b.inspect().Holders; len(held) != 1 || held[0].Slot != c.Slot {
			b.Errorf("held are %+v, want slot %d", held, c.Slot)
		}
	}},
	{"Inspect shows every slot that is held", func(b *bench) {
		for range 3 {
			b.grant(b.slots(3))
		}
		info := b.inspect()
		var slots []int
		for _, h := range info.Holders {
			slots = append(slots, h.Slot)
			if h.Identity != identity("pod") || h.Fence == 0 || h.Fence > info.Fence {
				b.Errorf("holder %+v of %+v", h, info)
			}
		}
		if info.Slots != 3 || !slices.Equal(slots, []int{0, 1, 2}) {
			b.Errorf("slots %v of %d, want 0, 1, 2 of 3", slots, info.Slots)
		}
	}},
	{"a lease of one of several slots is taken back", func(b *bench) {
		dead := b.slots(2)
		dead.Holder = identity("dead")
		b.grant(b.slots(2))
		lost := b.grant(dead)
		r := b.slots(2)
		r.Holder, r.Reclaim = identity("dead"), true
		if g := b.grant(r); g.Slot != lost.Slot || !g.Reclaimed {
			b.Errorf("%+v, want slot %d, reclaimed", g, lost.Slot)
		}
	}},
	{"a plain lock that is held is not used with slots", func(b *bench) {
		g := b.grant(b.plain())
		_, err := b.store.Acquire(b.Context(), b.slots(2))
		b.want(err, lease.ErrKind)
		b.extend(g, long)
	}},
	{"a lock with slots that is held is not used as a plain one", func(b *bench) {
		g := b.grant(b.slots(2))
		_, err := b.store.Acquire(b.Context(), b.plain())
		b.want(err, lease.ErrKind)
		b.extend(g, long)
	}},
}
