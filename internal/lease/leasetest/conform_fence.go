package leasetest

import (
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

var extensions = []contract{
	{"an extension says what was left, and how many wait", func(b *bench) {
		r := b.plain()
		r.TTL = long / 2
		g := b.grant(r)
		e := b.extend(g, long)
		if e.Left > long/2 || e.Left < long/4 || e.Waiting != 0 {
			b.Errorf("extended %+v, want %v left, nobody waiting", e, long/2)
		}
		if h := b.holder(); h.Left < long*3/4 || h.Left > long {
			b.Errorf("left are %v, want %v", h.Left, long)
		}
		if h := b.holder(); h.Fence != g.Fence || h.Identity != identity("pod") {
			b.Errorf("holder %+v, want that of %+v", h, g)
		}
	}},
	{"an extension never shortens a lease", func(b *bench) {
		g := b.grant(b.plain())
		b.extend(g, time.Second)
		if e := b.extend(g, time.Second); e.Left < long/2 {
			b.Errorf("left are %v, of %v", e.Left, long)
		}
	}},
	{"extensions do not add up (B12)", func(b *bench) {
		g := b.grant(b.plain())
		for range 100 {
			if e := b.extend(g, long); e.Left > long {
				b.Fatalf("left are %v, of %v", e.Left, long)
			}
		}
		if h := b.holder(); h.Left > long {
			b.Errorf("left are %v, of %v", h.Left, long)
		}
	}},
	{"an extension of what was released is lost, and creates nothing (B6)", func(b *bench) {
		g := b.grant(b.plain())
		b.release(g.Claim, true)
		b.lost(g)
		if held := b.inspect().Holders; len(held) != 0 {
			b.Errorf("held by %+v", held)
		}
		b.grant(b.plain())
	}},
	{"an extension of what another holds is lost, and leaves it alone (B6)", func(b *bench) {
		g := b.grant(b.plain())
		b.release(g.Claim, true)
		r := b.plain()
		r.TTL = long / 2
		now := b.grant(r)
		b.lost(g)
		if h := b.holder(); h.Fence != now.Fence || h.Left > long/2 {
			b.Errorf("held %+v, want fence %d and at most %v left", h, now.Fence, long/2)
		}
	}},
	{"an extension of what was never granted is lost", func(b *bench) {
		b.lost(lease.Grant{Claim: b.plain().Claim})
	}},
}

func (b *bench) lost(g lease.Grant) {
	b.Helper()
	_, err := b.store.Extend(b.Context(), g, lease.Extension{TTL: long})
	b.want(err, lease.ErrLost)
	if !lease.IsVerdict(err) {
		b.Errorf("%v is no verdict", err)
	}
}

var fences = []contract{
	{"fences rise from release to grant", func(b *bench) {
		var last uint64
		for range 50 {
			g := b.grant(b.plain())
			if g.Fence <= last {
				b.Fatalf("fence %d after %d", g.Fence, last)
			}
			last = g.Fence
			b.release(g.Claim, true)
		}
	}},
	{"fences rise from a lease that ran out to the next", func(b *bench) {
		r := b.plain()
		r.TTL = b.suite.Short
		first := b.grant(r)
		b.runOut()
		if g := b.grant(b.plain()); g.Fence <= first.Fence {
			b.Errorf("fence %d after %d", g.Fence, first.Fence)
		}
	}},
	{"a fence does not change while the lease is held (B40)", func(b *bench) {
		r := b.plain()
		g := b.grant(r)
		b.extend(g, long)
		if again := b.grant(r); again.Fence != g.Fence {
			b.Errorf("fence %d, then %d", g.Fence, again.Fence)
		}
	}},
	{"a fence is higher than the hint", func(b *bench) {
		g := b.grant(b.plain())
		b.release(g.Claim, true)
		r := b.plain()
		r.FenceHint = g.Fence + 1_000_000_000_000
		high := b.grant(r)
		if high.Fence <= r.FenceHint {
			b.Errorf("fence %d, hint %d", high.Fence, r.FenceHint)
		}
		b.release(high.Claim, true)
		r = b.plain()
		r.FenceHint = g.Fence // a low hint lowers nothing
		if next := b.grant(r); next.Fence <= high.Fence {
			b.Errorf("fence %d after %d", next.Fence, high.Fence)
		}
	}},
	{"a raised fence is the holder's, and the next is higher", func(b *bench) {
		g := b.grant(b.plain())
		high := g.Fence + 1_000_000_000_000
		if _, err := b.store.Extend(b.Context(), g, lease.Extension{TTL: long, RaiseTo: high}); err != nil {
			b.Fatalf("Extend: %v", err)
		}
		if info := b.inspect(); info.Fence != high || b.holder().Fence != high {
			b.Errorf("Inspect says %+v, want fence %d", info, high)
		}
		if again := b.grant(lease.Request{Claim: g.Claim, Holder: identity("pod"), TTL: long}); again.Fence != high {
			b.Errorf("the same grant has fence %d, was raised to %d", again.Fence, high)
		}
		b.release(g.Claim, true)
		if next := b.grant(b.plain()); next.Fence <= high {
			b.Errorf("fence %d after %d", next.Fence, high)
		}
	}},
	{"a fence is never lowered", func(b *bench) {
		g := b.grant(b.plain())
		_, err := b.store.Extend(b.Context(), g, lease.Extension{TTL: long, RaiseTo: g.Fence - 1})
		b.want(err, lease.ErrFence)
		if h := b.holder(); h.Fence != g.Fence {
			b.Errorf("fence %d, want %d", h.Fence, g.Fence)
		}
		b.extend(g, long)
	}},
	withSlots("a fence is raised strictly above that of every other slot", func(b *bench) {
		low, high := b.grant(b.slots(2)), b.grant(b.slots(2))
		_, err := b.store.Extend(b.Context(), low, lease.Extension{TTL: long, RaiseTo: high.Fence})
		b.want(err, lease.ErrFence)
		if info := b.inspect(); info.Fence != high.Fence {
			b.Errorf("fence %d, want %d", info.Fence, high.Fence)
		}
	}),
	{"only the holder raises the fence", func(b *bench) {
		g := b.grant(b.plain())
		other := lease.Grant{Claim: b.plain().Claim, Fence: g.Fence}
		_, err := b.store.Extend(b.Context(), other, lease.Extension{TTL: long, RaiseTo: g.Fence + 1000})
		b.want(err, lease.ErrLost)
		if info := b.inspect(); info.Fence != g.Fence {
			b.Errorf("fence %d, want %d", info.Fence, g.Fence)
		}
	}},
}
