package redislease

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/soloist-dev/soloist/internal/lease"
)

// inbox is the one channel on which this process hears of its waiters. Its connection
// is opened with the first waiter and kept; whenever it was opened anew, something may
// have been missed, so every waiter is told to look again.
type inbox struct {
	s        *Store
	instance string

	mu      sync.Mutex
	last    uint64
	waiters map[string]waiter
	ready   chan struct{} // closed while subscribed; replaced when that ends
	err     error         // why not, if not
	cancel  context.CancelFunc
	done    chan struct{} // closed when the reader has returned; nil if never started
	closed  bool
}

type waiter struct {
	lock    string
	ttl     time.Duration
	notices chan lease.Notice // a mailbox of one: the newest counts
}

func (in *inbox) init(s *Store) {
	var b [8]byte
	rand.Read(b[:]) // never fails
	in.s, in.instance = s, hex.EncodeToString(b[:])
	in.waiters = map[string]waiter{}
	in.ready = make(chan struct{})
}

// channels is what the name of every process's channel begins with.
func (in *inbox) channels() string { return in.s.prefix + ":in:" }

// Join implements [lease.Waker].
func (s *Store) Join(ctx context.Context, lock string) (lease.Inbox, error) {
	in := &s.inbox
	ready, err := in.start()
	if err != nil {
		return lease.Inbox{}, err
	}
	select {
	case <-ready:
	case <-ctx.Done():
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.err != nil {
			return lease.Inbox{}, failed("subscribe", in.err)
		}
		return lease.Inbox{}, failed("subscribe", context.Cause(ctx))
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.last++
	member := in.instance + "#" + strconv.FormatUint(in.last, 10)
	w := waiter{lock: lock, ttl: s.opt.Lease, notices: make(chan lease.Notice, 1)}
	in.waiters[member] = w
	return lease.Inbox{Waiter: member, Notices: w.notices, Leave: func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		delete(in.waiters, member)
	}}, nil
}

// start starts the reader unless it runs.
func (in *inbox) start() (ready <-chan struct{}, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return nil, failed("subscribe", redis.ErrClosed)
	}
	if in.done == nil {
		ctx, cancel := context.WithCancel(context.Background())
		in.cancel, in.done = cancel, make(chan struct{})
		go in.read(ctx) // close waits for it
	}
	return in.ready, nil
}

func (in *inbox) close() {
	in.mu.Lock()
	in.closed = true
	cancel, done := in.cancel, in.done
	in.mu.Unlock()
	if done != nil {
		cancel()
		<-done
	}
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
		failures++
		pause := time.NewTimer(min(20*time.Millisecond<<min(failures-1, 10), in.s.opt.CallTimeout))
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

// listen reads one connection until it breaks.
func (in *inbox) listen(ctx context.Context) (subscribed bool, err error) {
	sub := in.s.client.Subscribe(ctx)
	stop := context.AfterFunc(ctx, func() { _ = sub.Close() })
	defer func() {
		stop()
		_ = sub.Close() // a second Close says so, and no more
	}()
	if err := sub.Subscribe(ctx, in.channels()+in.instance); err != nil {
		return false, err
	}
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
			subscribed = true
			in.found()
		case *redis.Message:
			in.deliver(m.Payload)
		}
	}
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
