package redislease

import (
	"errors"
	"fmt"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// lockAndSlots mostly returns a lock with slots of its kind.
func (tw *twins) lockAndSlots() (string, int) {
	lock, slots := "plain", 0
	if tw.rand.IntN(2) == 0 {
		lock, slots = "slots", 1+tw.rand.IntN(4)
	}
	if tw.rand.IntN(25) == 0 {
		slots = tw.rand.IntN(3)
	}
	return lock, slots
}

func (tw *twins) claim() lease.Claim {
	lock, slots := tw.lockAndSlots()
	c := lease.Claim{Lock: lock, Slots: slots, Token: tw.tokens[tw.rand.IntN(len(tw.tokens))]}
	if tw.rand.IntN(3) > 0 {
		c.Waiter = fmt.Sprintf("%c#%d", 'a'+tw.rand.IntN(4), 1+tw.rand.IntN(2))
	}
	return c
}

func (tw *twins) ttl() time.Duration { return time.Duration(1+tw.rand.IntN(4)) * 5 * time.Minute }

// number returns a fence for each, equally far from the highest that each has seen.
func (tw *twins) number() [2]uint64 {
	switch tw.rand.IntN(6) {
	case 0:
		return [2]uint64{tw.top[0] + farAbove, tw.top[1] + farAbove}
	case 1:
		return tw.top
	case 2:
		return [2]uint64{tw.top[0] - min(farBelow, tw.top[0]), tw.top[1] - min(farBelow, tw.top[1])}
	}
	return [2]uint64{}
}

func (tw *twins) acquire() {
	r := lease.Request{Claim: tw.claim(), TTL: tw.ttl(), FirstSlot: tw.rand.IntN(6), Reclaim: tw.rand.IntN(5) == 0}
	r.Holder = []lease.Identity{
		{Name: "one", PodUID: "u1", Address: "10.0.0.1:4040"},
		{Name: "two", PodUID: "u1", Address: "10.0.0.2:4040"},
		{Name: "", PodUID: "u2", Address: "10.0.0.1:4040"},
		{Name: "three", PodUID: "u1", Address: ""},
		{Name: "spa ced", PodUID: "-", Address: "10.0.0.1:4040"},
	}[tw.rand.IntN(5)]
	if tw.rand.IntN(3) == 0 {
		r.Skip = tw.rand.IntN(4)
	}
	hints := tw.number()
	m := r
	if tw.rand.IntN(4) == 0 {
		dead := tw.number()
		r.Dead, m.Dead = dead[0], dead[1]
	}
	r.FenceHint, m.FenceHint = hints[0], hints[1]
	g, err := tw.store.Acquire(tw.ctx, r)
	h, err2 := tw.mem.Acquire(tw.ctx, m)
	tw.logf("acquire %s/%d token %d waiter %q skip %d first %d reclaim %v %q hint %d: %+v %v | %+v %v", r.Lock, r.Slots, tw.index(r.Token),
		r.Waiter, r.Skip, r.FirstSlot, r.Reclaim, r.Holder.Name, r.FenceHint, g, err, h, err2)
	tw.sameErrors("acquire", err, err2)
	if err == nil && err2 == nil {
		tw.grants[r.Token] = g
		tw.sameFence("grant", g.Fence, h.Fence)
		g.Fence, h.Fence = 0, 0
		if g != h {
			tw.Errorf("granted %+v, Memory: %+v", g, h)
		}
	}
	if held, held2 := new(lease.HeldError), new(lease.HeldError); errors.As(err, &held) && errors.As(err2, &held2) {
		tw.sameHeld("held", held.Held, held2.Held)
	}
}

// grantAndTwin returns a grant for each: what was granted to some token, or nonsense.
func (tw *twins) grantAndTwin() (lease.Grant, lease.Grant) {
	c := tw.claim()
	g, ok := tw.grants[c.Token]
	if !ok || tw.rand.IntN(6) == 0 {
		g = lease.Grant{Claim: c, Slot: tw.rand.IntN(max(c.Slots, 1))}
	}
	h := g
	h.Fence = tw.fences[g.Fence]
	return g, h
}

func (tw *twins) extend() {
	g, h := tw.grantAndTwin()
	raise := tw.number()
	e := lease.Extension{TTL: tw.ttl()}
	e.RaiseTo = raise[0]
	x, err := tw.store.Extend(tw.ctx, g, e)
	e.RaiseTo = raise[1]
	y, err2 := tw.mem.Extend(tw.ctx, h, e)
	tw.logf("extend %s/%d slot %d token %d raise %d: %+v %v | %+v %v", g.Lock, g.Slots, g.Slot, tw.index(g.Token), raise[0], x, err, y, err2)
	tw.sameErrors("extend", err, err2)
	if err == nil && err2 == nil {
		if raise[0] > 0 {
			tw.sameFence("raise", raise[0], raise[1])
		}
		if x.Waiting != y.Waiting || !roughly(x.Left, y.Left) {
			tw.Errorf("extended %+v, Memory: %+v", x, y)
		}
	}
}

func (tw *twins) release() {
	c := tw.claim()
	if g, ok := tw.grants[c.Token]; ok && tw.rand.IntN(6) > 0 {
		c = g.Claim
	}
	var f lease.Finish
	if tw.rand.IntN(3) == 0 {
		f.AtLeast = tw.ttl()
	}
	if tw.rand.IntN(3) == 0 {
		f.Done, f.Keep = fmt.Sprint("run", tw.rand.IntN(2)), time.Hour
	}
	x, err := tw.store.Finish(tw.ctx, c, f)
	y, err2 := tw.mem.Finish(tw.ctx, c, f)
	tw.logf("release %s/%d token %d waiter %q %+v: %v %v | %v %v", c.Lock, c.Slots, tw.index(c.Token), c.Waiter, f, x, err, y, err2)
	tw.sameErrors("release", err, err2)
	for _, run := range []string{"run0", "run1"} {
		x, err := tw.store.Done(tw.ctx, c.Lock, run)
		y, err2 := tw.mem.Done(tw.ctx, c.Lock, run)
		tw.sameErrors("done", err, err2)
		tw.sameRun(run, x, y)
	}
	if x != y {
		tw.Errorf("released %v, Memory: %v", x, y)
	}
	// Some tokens are used again, as a late request would; most are not.
	if i := tw.index(c.Token); tw.rand.IntN(3) > 0 {
		tw.tokens[i] = lease.NewToken()
	}
}

func (tw *twins) revoke() {
	lock, _ := tw.lockAndSlots()
	force := tw.rand.IntN(2) == 0
	x, err := tw.store.Revoke(tw.ctx, lock, force)
	y, err2 := tw.mem.Revoke(tw.ctx, lock, force)
	tw.logf("revoke %s %v: %d %v | %d %v", lock, force, x, err, y, err2)
	tw.sameErrors("revoke", err, err2)
	if x != y {
		tw.Errorf("revoked %d, Memory: %d", x, y)
	}
}

// drop makes a key vanish, as when it has run out.
func (tw *twins) drop(lock, key string) {
	tw.logf("drop %s %s", lock, key)
	tw.srv.Must("DEL", tw.store.key(lock, key))
	tw.mem.Drop(lock, key)
}

func (tw *twins) index(token lease.Token) int {
	for i, t := range tw.tokens {
		if t == token {
			return i
		}
	}
	return 0
}
