package redislease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/soloist-dev/soloist/internal/lease"
)

// inbox is a channel on which this process hears of its waiters. Its connection is opened
// with the first of them and kept; whenever it was opened anew, something may have been
// missed, so every waiter is told to look again.
type inbox struct {
	s       *Store
	channel string
	lock    string // "": of all locks
	users   int    // who wait, or are about to; guarded by Store.mu

	mu      sync.Mutex
	waiters map[string]waiter
	ready   chan struct{} // closed while subscribed; replaced when that ends
	err     error         // why not, if not
	addr    string        // of the node of a cluster that is listened to
	again   func()        // ends the connection that is read; a new one follows

	cancel context.CancelFunc
	done   chan struct{} // closed when the reader has returned
}

type waiter struct {
	lock    string
	ttl     time.Duration
	notices chan lease.Notice // a mailbox of one: the newest counts
}

// start starts the reader. The caller owes the inbox a close.
func (in *inbox) start() {
	ctx, cancel := context.WithCancel(context.Background())
	in.cancel, in.done = cancel, make(chan struct{})
	in.waiters, in.ready, in.again = map[string]waiter{}, make(chan struct{}), func() {}
	go in.read(ctx) // close waits for it
}

func (in *inbox) close() {
	in.cancel()
	<-in.done
}

// join waits until messages are sure to arrive, and adds a waiter.
func (in *inbox) join(ctx context.Context, lock, member string) (<-chan lease.Notice, error) {
	in.mu.Lock()
	ready := in.ready
	in.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.err != nil {
			return nil, in.err
		}
		return nil, context.Cause(ctx)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	w := waiter{lock: lock, ttl: in.s.opt.Lease, notices: make(chan lease.Notice, 1)}
	in.waiters[member] = w
	return w.notices, nil
}

func (in *inbox) leave(member string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.waiters, member)
}

// read subscribes for ever, with a pause after each failure.
func (in *inbox) read(ctx context.Context) {
	defer close(in.done)
	for failures := 0; ctx.Err() == nil; {
		subscribed, err := in.listen(ctx)
		if subscribed {
			failures = 0
		}
		in.lost(err)
		if in.s.cluster != nil {
			in.s.judgeSharding(err)
			in.s.cluster.ReloadState(ctx) // the lock may be kept elsewhere
		}
		failures++
		pause := time.NewTimer(min(20*time.Millisecond<<min(failures-1, 10), in.s.opt.CallTimeout))
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

// errMoved ends a subscription whose channel is elsewhere now.
var errMoved = errors.New("the lock's slot has moved")

// listen reads one connection until it breaks.
func (in *inbox) listen(ctx context.Context) (subscribed bool, err error) {
	ctx, again := context.WithCancel(ctx)
	defer again()
	in.mu.Lock()
	in.again = again
	in.mu.Unlock()
	sub, err := in.subscribe(ctx)
	if err != nil {
		return false, err
	}
	stop := context.AfterFunc(ctx, func() { _ = sub.Close() })
	defer func() {
		stop()
		_ = sub.Close() // a second Close says so, and no more
	}()
	for {
		timeout := time.Duration(0) // a broken connection is the kernel's to find: see dialer
		if !subscribed {
			timeout = in.s.opt.CallTimeout
		}
		msg, err := sub.ReceiveTimeout(ctx, timeout)
		if err != nil {
			return subscribed, err
		}
		switch m := msg.(type) {
		case *redis.Subscription:
			if m.Kind == "sunsubscribe" {
				return subscribed, errMoved
			}
			subscribed = true
			in.found()
		case *redis.Message:
			in.deliver(m.Payload)
		}
	}
}

// subscribe sends the request on a connection to the server that keeps the lock.
func (in *inbox) subscribe(ctx context.Context) (*redis.PubSub, error) {
	if in.s.cluster == nil {
		sub := in.s.client.Subscribe(ctx)
		return sub, sub.Subscribe(ctx, in.channel)
	}
	node, err := in.s.cluster.MasterForKey(ctx, in.channel)
	if err != nil {
		return nil, err
	}
	in.mu.Lock()
	in.addr = node.Options().Addr
	in.mu.Unlock()
	if in.s.unsharded.Load() {
		sub := node.Subscribe(ctx)
		return sub, sub.Subscribe(ctx, in.channel)
	}
	sub := node.SSubscribe(ctx)
	return sub, sub.SSubscribe(ctx, in.channel)
}

func (in *inbox) found() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.err = nil
	select {
	case <-in.ready: // go-redis reconnected by itself
	default:
		close(in.ready)
	}
	for _, w := range in.waiters {
		w.put(lease.Notice{Now: true})
	}
}

func (in *inbox) lost(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.err = err
	select {
	case <-in.ready:
		in.ready = make(chan struct{})
	default:
	}
}

// deliver puts a message into its waiter's mailbox. One that makes no sense, or whose
// waiter has left, is dropped: nobody depends on messages, they only save time.
func (in *inbox) deliver(payload string) {
	m, err := parseMessage(payload)
	if err != nil {
		in.s.log.Warn("message in the inbox makes no sense", "error", err)
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	w, ok := in.waiters[m.member]
	if !ok || w.lock != m.lock {
		return
	}
	n := lease.Notice{Now: m.now, Held: m.held}
	if !n.Now {
		n.LookAgain, n.Turn = lease.LookAgain(n.Held, w.ttl, in.s.opt.Claim, false)
	}
	w.put(n)
}

// put replaces what the waiter has not read yet. Only the holder of in.mu calls it.
func (w waiter) put(n lease.Notice) {
	select {
	case <-w.notices:
	default:
	}
	w.notices <- n
}

// message is what common.lua publishes.
type message struct {
	member, lock string
	now          bool
	held         lease.Held
}

// parseMessage reads "<member> <lock> go" and
// "<member> <lock> in <rank> <left ms> <waiting> [<public value>]".
func parseMessage(s string) (message, error) {
	f := strings.SplitN(s, " ", 7)
	if len(f) < 3 {
		return message{}, fmt.Errorf("%w: %d words", errReply, len(f))
	}
	m := message{member: f[0], lock: f[1]}
	switch {
	case f[2] == "go" && len(f) == 3:
		m.now = true
		return m, nil
	case f[2] == "in" && len(f) == 7:
		n, err := reply{f[3], f[4], f[5]}.nums(0, 3)
		if err != nil {
			return message{}, err
		}
		m.held = lease.Held{Rank: int(n[0]), Left: millis(n[1]), Waiting: int(n[2])}
		if n[1] < 0 {
			m.held.Left = -1
		}
		m.held.Term, m.held.Holder = parsePublic(f[6])
		m.held.Fence = m.held.Term
		return m, nil
	}
	return message{}, fmt.Errorf("%w: %q", errReply, f[2])
}
