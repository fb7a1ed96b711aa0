package leasetest

import (
	"fmt"
	"strconv"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// extendScript is extend.lua.
func (m *Memory) extendScript(g lease.Grant, e lease.Extension) (lease.Extended, error) {
	now := m.now()
	r := m.record(g.Lock, now)
	key := "lk"
	if g.Slots > 0 {
		key = "lk:" + strconv.Itoa(g.Slot)
	}
	v := r.leases[key]
	if !v.mine(g.Token) || v.fence <= r.fn.revoked {
		return lease.Extended{}, lease.ErrLost
	}
	if e.RaiseTo >= maxFence {
		return lease.Extended{}, fmt.Errorf("%w: fence out of range", lease.ErrInvalid)
	}
	if e.RaiseTo > 0 && e.RaiseTo != v.fence {
		stored := r.fn.fence
		if stored == 0 {
			stored = v.fence
		}
		if e.RaiseTo <= stored {
			return lease.Extended{}, fmt.Errorf("%w: stored is %d", lease.ErrFence, stored)
		}
		r.fn.fence, v.fence = e.RaiseTo, e.RaiseTo
		r.fn.keep(now)
	}
	if r.fn.dies == 0 { // the key was lost
		r.fn.fence, r.fn.kind = v.fence, kind(g.Slots)
	}
	r.fn.keep(now)
	left := v.left(now)
	v.extend(e.TTL, now)
	return lease.Extended{Left: left, Waiting: len(r.line.places)}, nil
}

// releaseScript is release.lua.
func (m *Memory) releaseScript(c lease.Claim, f lease.Finish) bool {
	now := m.now()
	r := m.record(c.Lock, now)
	if c.Waiter != "" {
		r.line.remove(c.Waiter)
	}
	released := false
	for _, key := range keys(c.Slots) {
		v := r.leases[key]
		held := v.mine(c.Token)
		released = released || held
		switch {
		case held && m.rest(r, c, f, v, now):
		case held || v.keptFor(c.Waiter):
			if !m.offer(r, c.Lock, keys(c.Slots), key, now) {
				delete(r.leases, key)
			}
		}
		if held && f.Done != "" {
			at := time.UnixMilli(millis(now))
			done := lease.Run{Name: f.Done, By: v.holder.Name, Fence: v.fence, At: at, Took: max(0, at.Sub(v.holder.Since))}
			r.runs[f.Done] = run{done, millis(now) + f.Keep.Milliseconds()}
			r.fn.last = &done
		}
	}
	return r.fn.remember(c.Token, released, now)
}

// rest parks a slot that was held for too short a time, and reports whether it was.
func (m *Memory) rest(r *record, c lease.Claim, f lease.Finish, v *value, now int64) bool {
	until := min(v.holder.Since.UnixMilli(), millis(now)) + f.AtLeast.Milliseconds()
	if until <= millis(now) {
		return false
	}
	v.token, v.resting, v.dies = "", true, until
	m.tell(r, c.Lock, keys(c.Slots), now, v)
	return true
}

// revokeScript is revoke.lua.
func (m *Memory) revokeScript(lock string, force bool) int {
	now := m.now()
	r := m.record(lock, now)
	all := keys(r.fn.slots)
	if r.fn.kind == kind(1) {
		all = keys(max(r.fn.slots, 1))
	}
	var held []string
	for _, key := range all {
		if v := r.leases[key]; v != nil && v.kept == "" {
			held = append(held, key)
		}
	}
	if len(held) == 0 {
		return 0
	}
	r.fn.fence = max(r.fn.fence, uint64(now))
	if force {
		r.fn.fence++
	}
	r.fn.revoked = r.fn.fence
	r.fn.keep(now)
	if force {
		for _, key := range held {
			if !m.offer(r, lock, all, key, now) {
				delete(r.leases, key)
			}
		}
	}
	return len(held)
}
