package leasetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

var grants = []contract{
	{"a free lock is granted", func(b *bench) {
		g := b.grant(b.plain())
		if g.Slot != 0 || g.Waiting != 0 || g.Reclaimed {
			b.Errorf("grant %+v, want slot 0, nobody waiting, not reclaimed", g)
		}
	}},
	{"a held lock is refused, with its holder and the time left", func(b *bench) {
		before := time.Now()
		g := b.grant(b.plain())
		r := b.plain()
		r.Holder = identity("other")
		h := b.refused(r)
		if h.Holder.Identity != identity("pod") {
			b.Errorf("holder is %+v", h.Holder)
		}
		if off := h.Holder.Since.Sub(before).Abs(); off > time.Minute {
			b.Errorf("held since %v, acquired at %v", h.Holder.Since, before)
		}
		if h.Left > long || h.Left < long/2 {
			b.Errorf("left are %v, of %v", h.Left, long)
		}
		if h.Fence < g.Fence {
			b.Errorf("fence %d is below the holder's, %d", h.Fence, g.Fence)
		}
		if h.Rank != -1 || h.Waiting != 0 {
			b.Errorf("rank %d of %d; one that does not wait has no place", h.Rank, h.Waiting)
		}
	}},
	{"an acquire repeated with its token is the same grant (B33)", func(b *bench) {
		r := b.plain()
		first := b.grant(r)
		for range 3 {
			if again := b.grant(r); again != first {
				b.Fatalf("granted %+v, then %+v", first, again)
			}
		}
		if h := b.holder(); h.Fence != first.Fence {
			b.Errorf("held with fence %d, granted %d", h.Fence, first.Fence)
		}
	}},
	{"an acquire repeated with its token never shortens the lease", func(b *bench) {
		r := b.plain()
		b.grant(r)
		r.TTL = time.Second
		b.grant(r)
		if h := b.holder(); h.Left < long/2 {
			b.Errorf("left are %v, of %v", h.Left, long)
		}
	}},
	{"an acquire repeated with its token lengthens the lease (B12: it does not add)", func(b *bench) {
		r := b.plain()
		r.TTL = long / 10
		b.grant(r)
		r.TTL = long
		b.grant(r)
		if h := b.holder(); h.Left < long/2 || h.Left > long {
			b.Errorf("left are %v, want %v", h.Left, long)
		}
	}},
	{"a released token is never granted again (B1)", func(b *bench) {
		r := b.plain()
		b.grant(r)
		b.release(r.Claim, true)
		_, err := b.store.Acquire(b.Context(), r)
		b.want(err, lease.ErrBurned)
		b.grant(b.plain())
	}},
	{"a token is burned even if its release came first (B1)", func(b *bench) {
		r := b.plain()
		b.release(r.Claim, false)
		_, err := b.store.Acquire(b.Context(), r)
		b.want(err, lease.ErrBurned)
		if held := b.inspect().Holders; len(held) != 0 {
			b.Errorf("held by %+v", held)
		}
	}},
	{"a burned token is refused as burned, not as held", func(b *bench) {
		r := b.plain()
		b.release(r.Claim, false)
		b.grant(b.plain())
		_, err := b.store.Acquire(b.Context(), r)
		b.want(err, lease.ErrBurned)
	}},
	{"a release of nothing is no error; repeated, it says the same again (B32)", func(b *bench) {
		r := b.plain()
		b.release(r.Claim, false)
		b.release(r.Claim, false)
		r = b.plain()
		b.grant(r)
		b.release(r.Claim, true)
		next := b.grant(b.plain())
		b.release(r.Claim, true) // its answer was lost
		b.extend(next, long)
		b.release(next.Claim, true)
		b.release(r.Claim, true)
	}},
	{"a release that came too late says so again (B32)", func(b *bench) {
		r := b.plain()
		r.TTL = b.suite.Short
		b.grant(r)
		b.runOut()
		b.release(r.Claim, false)
		b.release(r.Claim, false)
	}},
	{"a release by another token changes nothing (B11)", func(b *bench) {
		g := b.grant(b.plain())
		b.release(b.plain().Claim, false)
		if h := b.holder(); h.Fence != g.Fence {
			b.Errorf("held with fence %d, want %d", h.Fence, g.Fence)
		}
		b.extend(g, long)
	}},
	{"what can't be right is refused (B13)", func(b *bench) {
		for what, change := range map[string]func(*lease.Request){
			"no lease":         func(r *lease.Request) { r.TTL = 0 },
			"a negative lease": func(r *lease.Request) { r.TTL = -time.Second },
			"no lock":          func(r *lease.Request) { r.Lock = "" },
			"no token":         func(r *lease.Request) { r.Token = "" },
			"negative slots":   func(r *lease.Request) { r.Slots = -1 },
		} {
			r := b.plain()
			change(&r)
			if _, err := b.store.Acquire(b.Context(), r); !errors.Is(err, lease.ErrInvalid) {
				b.Errorf("Acquire with %s: %v, want ErrInvalid", what, err)
			}
		}
		g := b.grant(b.plain())
		for _, ttl := range []time.Duration{0, -time.Second} {
			_, err := b.store.Extend(b.Context(), g, lease.Extension{TTL: ttl})
			b.want(err, lease.ErrInvalid)
		}
		if h := b.holder(); h.Left < long/2 {
			b.Errorf("left are %v, of %v", h.Left, long)
		}
	}},
	{"a predecessor's lease is taken back by the same pod and address, both not empty", func(b *bench) {
		id := func(uid, address string) lease.Identity {
			return lease.Identity{Name: "pod", PodUID: uid, Address: address}
		}
		for _, c := range []struct {
			dead, me lease.Identity
			want     bool
		}{
			{id("uid", "10.0.0.1:4040"), id("uid", "10.0.0.1:4040"), true},
			{id("uid", "10.0.0.1:4040"), lease.Identity{Name: "renamed", PodUID: "uid", Address: "10.0.0.1:4040"}, true},
			{id("uid", "10.0.0.1:4040"), id("uid", "10.0.0.1:404"), false},
			{id("uid", "10.0.0.1:4040"), id("uid", "10.0.0.1:40400"), false},
			{id("uid", "10.0.0.1:4040"), id("uid2", "10.0.0.1:4040"), false},
			{id("uid", "10.0.0.1:4040"), id("ui.", "10.0.0.1:4040"), false},
			{id("uid", "10.0.0.1:4040"), id("", "10.0.0.1:4040"), false},
			{id("", "10.0.0.1:4040"), id("", "10.0.0.1:4040"), false},
			{id("uid", ""), id("uid", ""), false},
			{id("", ""), id("", ""), false},
		} {
			dead := b.plain()
			dead.Holder = c.dead
			lost := b.grant(dead)
			r := b.plain()
			r.Holder = c.me
			b.refused(r) // without asking for it never
			r.Reclaim = true
			g, err := b.store.Acquire(b.Context(), r)
			switch {
			case !c.want:
				b.want(err, lease.ErrHeld)
				b.extend(lost, long)
				b.release(dead.Claim, true)
				continue
			case err != nil || !g.Reclaimed || g.Fence <= lost.Fence:
				b.Errorf("%+v takes back the lease of %+v: %+v, %v; want a reclaimed grant above %d",
					c.me, c.dead, g, err, lost.Fence)
			}
			_, err = b.store.Extend(b.Context(), lost, lease.Extension{TTL: long})
			b.want(err, lease.ErrLost)
			b.release(dead.Claim, false)
			b.release(r.Claim, true)
		}
	}},
	{"the lease of one known to be dead is taken by its fence, and no other", func(b *bench) {
		dead := b.grant(b.plain())
		h := b.refused(b.plain())
		if h.Term != dead.Fence {
			b.Errorf("refused by the term %d, want %d", h.Term, dead.Fence)
		}
		for _, fence := range []uint64{0, 1, dead.Fence - 1, dead.Fence + 1, dead.Fence * 10, dead.Fence / 10} {
			r := b.plain()
			r.Dead = fence
			b.refused(r)
		}
		b.extend(dead, long)
		r := b.plain()
		r.Dead = dead.Fence
		next := b.grant(r)
		if !next.FromDead || next.Reclaimed || next.Fence <= dead.Fence {
			b.Errorf("%+v, want one from the dead, above %d", next, dead.Fence)
		}
		_, err := b.store.Extend(b.Context(), dead, lease.Extension{TTL: long})
		b.want(err, lease.ErrLost)
		b.release(dead.Claim, false)
		again := b.grant(r) // the reply was lost
		if again.Fence != next.Fence {
			b.Errorf("repeated: fence %d, want %d", again.Fence, next.Fence)
		}
		late := b.plain()
		late.Dead = dead.Fence
		b.refused(late)
		b.release(next.Claim, true)
	}},
	{"Inspect shows who holds, since when, for how long, and the fence", func(b *bench) {
		if info := b.inspect(); len(info.Holders) != 0 || info.Waiting != 0 {
			b.Errorf("of a lock never used: %+v", info)
		}
		before := time.Now()
		g := b.grant(b.plain())
		info := b.inspect()
		h := b.holder()
		if info.Lock != b.lock || info.Slots != 0 || info.Fence != g.Fence {
			b.Errorf("%+v, want lock %s, plain, fence %d", info, b.lock, g.Fence)
		}
		if h.Slot != 0 || h.Fence != g.Fence || h.Identity != identity("pod") ||
			h.Left < long/2 || h.Left > long || h.Since.Sub(before).Abs() > time.Minute {
			b.Errorf("holder %+v of grant %+v", h, g)
		}
		b.release(g.Claim, true)
		if info := b.inspect(); len(info.Holders) != 0 || info.Fence != g.Fence {
			b.Errorf("after the release: %+v, want no holder, fence %d", info, g.Fence)
		}
	}},
	{"a token is shown to nobody else", func(b *bench) {
		g := b.grant(b.plain())
		_, err := b.store.Acquire(b.Context(), b.plain())
		_, lost := b.store.Extend(b.Context(), lease.Grant{Claim: b.plain().Claim}, lease.Extension{TTL: long})
		var held *lease.HeldError
		if !errors.As(err, &held) {
			b.Fatalf("Acquire: %v", err)
		}
		for _, shown := range []string{
			err.Error(), fmt.Sprintf("%#v", *held), fmt.Sprintf("%#v", b.inspect()), lost.Error(),
		} {
			if strings.Contains(shown, string(g.Token)) {
				b.Errorf("shows the token: %s", shown)
			}
		}
	}},
	{"a call whose context is done returns at once, and is no verdict", func(b *bench) {
		g := b.grant(b.plain())
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		_, acquire := b.store.Acquire(ctx, b.plain())
		_, extend := b.store.Extend(ctx, g, lease.Extension{TTL: long})
		_, release := b.store.Release(ctx, b.plain().Claim)
		_, inspect := b.store.Inspect(ctx, b.lock)
		for op, err := range map[string]error{
			"Acquire": acquire, "Extend": extend, "Release": release, "Inspect": inspect,
		} {
			if !errors.Is(err, context.Canceled) || lease.IsVerdict(err) {
				b.Errorf("%s: %v, want context.Canceled and no verdict", op, err)
			}
		}
	}},
}
