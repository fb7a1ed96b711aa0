package leasetest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// maxFence is the first number that a script can't count with.
const maxFence = 1 << 53

func kind(slots int) string {
	if slots == 0 {
		return "plain"
	}
	return "slots"
}

// keys returns the names of a lock's leases.
func keys(slots int) []string {
	if slots == 0 {
		return []string{"lk"}
	}
	names := make([]string, slots)
	for i := range names {
		names[i] = "lk:" + strconv.Itoa(i)
	}
	return names
}

// acquiring is one run of acquire.lua. Its methods are called with the Memory locked.
type acquiring struct {
	m      *Memory
	r      lease.Request
	now    int64
	record *record
	keys   []string
}

// run returns a grant, or a verdict. A *lease.HeldError lacks its plan: see Acquire.
func (a *acquiring) run() (g lease.Grant, joined bool, err error) {
	f, leases := &a.record.fn, a.record.leases
	if f.find(a.r.Token) >= 0 {
		return g, false, lease.ErrBurned
	}
	if f.kind != "" && f.kind != kind(a.r.Slots) {
		return g, false, fmt.Errorf("%w: %q is in use as a %s lock", lease.ErrKind, a.r.Lock, f.kind)
	}
	for slot, key := range a.keys {
		if v := leases[key]; v.mine(a.r.Token) {
			if v.fence <= f.revoked {
				return g, false, lease.ErrBurned
			}
			v.extend(a.r.TTL, a.now)
			return a.granted(slot, v.fence, fromNobody), false, nil
		}
	}
	for slot, key := range a.keys {
		if v := leases[key]; v.keptFor(a.r.Waiter) {
			g, err = a.grant(slot, fromNobody)
			return g, false, err
		}
		if v := leases[key]; a.r.Reclaim && a.reclaimable(v) {
			g, err = a.grant(slot, fromPredecessor)
			return g, false, err
		}
		if v := leases[key]; v.live() && a.r.Dead != 0 && v.fence == a.r.Dead {
			g, err = a.grant(slot, fromDead)
			return g, false, err
		}
	}
	for i := range a.keys {
		slot := ((a.r.FirstSlot+i)%len(a.keys) + len(a.keys)) % len(a.keys)
		if leases[a.keys[slot]] == nil && a.isNext(slot) {
			g, err = a.grant(slot, fromNobody)
			return g, false, err
		}
	}
	return a.held()
}

// reclaimable reports whether v is a lease of our own dead predecessor.
func (a *acquiring) reclaimable(v *value) bool {
	me := clean(a.r.Holder)
	return v.live() && me.PodUID != "" && me.Address != "" &&
		v.holder.PodUID == me.PodUID && v.holder.Address == me.Address
}

// isNext reports whether a free slot is ours to take. If not, it is then kept for the
// first in line.
func (a *acquiring) isNext(slot int) bool {
	l := &a.record.line
	for ; a.r.Skip > 0; a.r.Skip-- {
		front := l.front()
		if front == "" || front == a.r.Waiter {
			break
		}
		l.remove(front)
	}
	for {
		front := l.front()
		if front == "" || front == a.r.Waiter || a.m.listening(front) {
			break
		}
		l.remove(front)
	}
	front := l.front()
	return front == "" || front == a.r.Waiter || !a.m.offer(a.record, a.r.Lock, a.keys, a.keys[slot], a.now)
}

// Whose lease a grant takes.
const (
	fromNobody = iota
	fromPredecessor
	fromDead
)

func (a *acquiring) grant(slot, from int) (lease.Grant, error) {
	f := &a.record.fn
	floor := max(f.fence, uint64(a.now), a.r.FenceHint)
	if floor >= maxFence-1 {
		return lease.Grant{}, fmt.Errorf("%w: fence out of range", lease.ErrInvalid)
	}
	fence := floor + 1
	v := &value{
		token: a.r.Token,
		fence: fence,
		holder: lease.Holder{
			Identity: clean(a.r.Holder),
			Since:    time.UnixMilli(millis(a.now)),
		},
		dies: millis(a.now) + a.r.TTL.Milliseconds(),
	}
	a.record.leases[a.keys[slot]] = v
	f.fence, f.kind = fence, kind(a.r.Slots)
	if a.r.Slots > 1 {
		f.slots = max(f.slots, a.r.Slots)
	}
	f.keep(a.now)
	if a.r.Waiter != "" {
		a.record.line.remove(a.r.Waiter)
	}
	for _, key := range a.keys { // those that came free with it
		if a.record.leases[key] == nil {
			a.m.offer(a.record, a.r.Lock, a.keys, key, a.now)
		}
	}
	a.m.tell(a.record, a.r.Lock, a.keys, a.now, v)
	return a.granted(slot, fence, from), nil
}

func (a *acquiring) granted(slot int, fence uint64, from int) lease.Grant {
	return lease.Grant{
		Claim: a.r.Claim, Slot: slot, Fence: fence,
		Waiting:   len(a.record.line.places),
		Reclaimed: from == fromPredecessor, FromDead: from == fromDead,
	}
}

// held joins the line and drops those right ahead that have gone.
func (a *acquiring) held() (lease.Grant, bool, error) {
	l := &a.record.line
	h := lease.Held{Fence: a.record.fn.fence, Left: -1, Rank: -1}
	joined := false
	if a.r.Waiter != "" {
		joined = l.join(a.r.Waiter, a.now)
		h.Rank = l.rank(a.r.Waiter)
		for {
			if h.Rank == 0 || a.m.listening(l.places[h.Rank-1].member) {
				break
			}
			l.remove(l.places[h.Rank-1].member)
			h.Rank--
		}
	}
	h.Waiting = len(l.places)
	named := false
	h.Left = a.record.soonest(a.keys, a.now)
	for _, key := range a.keys {
		v := a.record.leases[key]
		if !named && v.kept == "" {
			h.Term, h.Holder = v.public()
			named = true
		}
	}
	return lease.Grant{}, joined, &lease.HeldError{Held: h}
}

// offer keeps a slot for the first in line that listens, and reports whether there
// was one.
func (m *Memory) offer(r *record, lock string, all []string, key string, now int64) bool {
	for {
		front := r.line.front()
		if front == "" {
			return false
		}
		r.line.remove(front)
		if m.publish(Message{Waiter: front, Lock: lock, Go: true}) {
			r.leases[key] = &value{kept: front, dies: millis(now) + m.cfg.Claim.Milliseconds()}
			m.tell(r, lock, all, now, nil)
			return true
		}
	}
}

// tell informs the head of the line of its ranks, and of what it waits for.
func (m *Memory) tell(r *record, lock string, all []string, now int64, v *value) {
	left := r.soonest(all, now)
	for rank, p := range r.line.places[:min(len(r.line.places), lease.Heads)] {
		h := lease.Held{Left: left, Rank: rank, Waiting: len(r.line.places)}
		h.Term, h.Holder = v.public()
		h.Fence = h.Term
		m.publish(Message{Waiter: p.member, Lock: lock, Held: h})
	}
}

// soonest returns when a slot comes free; 0 if one is.
func (r *record) soonest(all []string, now int64) time.Duration {
	least := time.Duration(-1)
	for _, key := range all {
		v := r.leases[key]
		if v == nil {
			return 0
		}
		if left := v.left(now); least < 0 || left < least {
			least = left
		}
	}
	return least
}

// clean makes an identity's fields fit between spaces, as they are stored.
func clean(id lease.Identity) lease.Identity {
	return lease.Identity{Name: field(id.Name), PodUID: field(id.PodUID), Address: field(id.Address)}
}

func field(s string) string {
	if s == "-" { // how an empty one is stored
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, s)
}
