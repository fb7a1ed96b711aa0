package leasetest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

var (
	_ lease.Store = (*Process)(nil)
	_ lease.Waker = (*Process)(nil)

	_ lease.Finisher = (*Process)(nil)
)

// A Process is one client of a Memory, with one inbox for all of its waiters. All of
// its state is guarded by the Memory's mutex. It is safe for concurrent use.
type Process struct {
	m        *Memory
	instance string
	waiters  map[string]mailbox
	last     int
	deaf     bool
	ready    chan struct{} // closed while subscribed; replaced when that ends
}

// mailbox is a waiter's.
type mailbox struct {
	lock    string
	notices chan lease.Notice
}

// NewProcess returns a new client of the server. Its waiters are called INSTANCE#1,
// INSTANCE#2 …; without an instance it gets one of its own.
func (m *Memory) NewProcess(instance string) *Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.instances++
	if instance == "" {
		instance = fmt.Sprintf("p%d", m.instances)
	}
	p := &Process{m: m, instance: instance, waiters: map[string]mailbox{}, ready: make(chan struct{})}
	close(p.ready)
	m.processes[instance] = p
	return p
}

// Disconnect ends the subscription: the server sees that nobody listens, and messages
// are lost.
func (p *Process) Disconnect() {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if p.subscribed() {
		p.ready = make(chan struct{})
	}
}

// Subscribe subscribes anew, whether or not the process was connected: every waiter
// is told to look again.
func (p *Process) Subscribe() {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	if !p.subscribed() {
		close(p.ready)
	}
	for _, w := range p.waiters {
		put(w.notices, lease.Notice{Now: true})
	}
}

// Deafen sets whether messages are lost while the server believes that the process
// listens, as with a connection whose other end has vanished without a word.
func (p *Process) Deafen(deaf bool) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.deaf = deaf
}

func (p *Process) subscribed() bool {
	select {
	case <-p.ready:
		return true
	default:
		return false
	}
}

// Acquire implements [lease.Store].
func (p *Process) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	if err := judge(ctx, r.Claim, r.TTL); err != nil {
		return lease.Grant{}, err
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.m.counts["acquire"]++
	now := p.m.now()
	a := acquiring{m: p.m, r: r, now: now, record: p.m.record(r.Lock, now), keys: keys(r.Slots)}
	g, joined, err := a.run()
	if h, ok := err.(*lease.HeldError); ok { //nolint:errorlint // made by run, never wrapped
		h.LookAgain, h.Turn = lease.LookAgain(h.Held, r.TTL, p.m.cfg.Claim, joined)
	}
	return g, err
}

// Extend implements [lease.Store].
func (p *Process) Extend(ctx context.Context, g lease.Grant, e lease.Extension) (lease.Extended, error) {
	if err := judge(ctx, g.Claim, e.TTL); err != nil {
		return lease.Extended{}, err
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.m.counts["extend"]++
	return p.m.extendScript(g, e)
}

// Release implements [lease.Store].
func (p *Process) Release(ctx context.Context, c lease.Claim) (bool, error) {
	return p.Finish(ctx, c, lease.Finish{})
}

// Inspect implements [lease.Store].
func (p *Process) Inspect(ctx context.Context, lock string) (lease.Info, error) {
	if ctx.Err() != nil {
		return lease.Info{}, noAnswer(ctx)
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.m.counts["inspect"]++
	now := p.m.now()
	r := p.m.record(lock, now)
	info := lease.Info{Lock: lock, Fence: r.fn.fence, Waiting: len(r.line.places)}
	if last := r.fn.last; last != nil {
		info.LastRun = new(*last)
	}
	if r.fn.kind == kind(1) {
		info.Slots = max(r.fn.slots, 1)
	}
	for slot, key := range keys(info.Slots) {
		v := r.leases[key]
		if v == nil || v.kept != "" {
			continue
		}
		h := lease.HolderInfo{Slot: slot, Left: v.left(now), Resting: v.resting}
		h.Fence, h.Holder = v.public()
		info.Holders = append(info.Holders, h)
	}
	return info, nil
}

// Join implements [lease.Waker].
func (p *Process) Join(ctx context.Context, lock string) (lease.Inbox, error) {
	p.m.mu.Lock()
	ready := p.ready
	p.m.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
		return lease.Inbox{}, noAnswer(ctx)
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.last++
	member := p.instance + "#" + strconv.Itoa(p.last)
	w := mailbox{lock, make(chan lease.Notice, 1)}
	p.waiters[member] = w
	return lease.Inbox{Waiter: member, Notices: w.notices, Leave: func() {
		p.m.mu.Lock()
		defer p.m.mu.Unlock()
		delete(p.waiters, member)
	}}, nil
}

// listening reports whether anybody reads the member's inbox.
func (m *Memory) listening(member string) bool {
	instance, _, _ := strings.Cut(member, "#")
	p := m.processes[instance]
	return p != nil && p.subscribed()
}

// publish delivers a message, and reports whether anybody listens.
func (m *Memory) publish(msg Message) bool {
	m.counts["publish"]++
	if m.cfg.Tap != nil {
		m.cfg.Tap(msg)
	}
	if !m.listening(msg.Waiter) {
		return false
	}
	instance, _, _ := strings.Cut(msg.Waiter, "#")
	p := m.processes[instance]
	w, ok := p.waiters[msg.Waiter]
	if !ok || w.lock != msg.Lock || p.deaf {
		return true
	}
	n := lease.Notice{Now: msg.Go, Held: msg.Held}
	if !n.Now {
		n.LookAgain, n.Turn = lease.LookAgain(n.Held, m.cfg.Lease, m.cfg.Claim, false)
	}
	put(w.notices, n)
	return true
}

// put replaces what the waiter has not read yet. Its callers exclude each other.
func put(notices chan lease.Notice, n lease.Notice) {
	select {
	case <-notices:
	default:
	}
	notices <- n
}

// judge refuses what can't be right, and what was given up before it was sent.
func judge(ctx context.Context, c lease.Claim, ttl time.Duration) error {
	switch {
	case c.Lock == "" || strings.ContainsAny(c.Lock, "{} \t\r\n"):
		return fmt.Errorf("%w: lock name %q", lease.ErrInvalid, c.Lock)
	case c.Token == "":
		return fmt.Errorf("%w: no token", lease.ErrInvalid)
	case c.Slots < 0:
		return fmt.Errorf("%w: %d slots", lease.ErrInvalid, c.Slots)
	case ttl < time.Millisecond:
		return fmt.Errorf("%w: lease of %v", lease.ErrInvalid, ttl)
	case ctx.Err() != nil:
		return noAnswer(ctx)
	}
	return nil
}

// noAnswer says that ctx is done: what was asked may or may not have happened.
func noAnswer(ctx context.Context) error {
	return fmt.Errorf("leasetest: no answer: %w", context.Cause(ctx))
}
