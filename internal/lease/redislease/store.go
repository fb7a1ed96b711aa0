package redislease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/soloist-dev/soloist/internal/lease"
)

// Store keeps leases in one Redis: a server, the master of Sentinels, or a cluster. It is safe for concurrent use. It connects when
// it is first used; every method gives up when its context is done.
type Store struct {
	opt    Options
	prefix string
	claim  string
	log    *slog.Logger
	client redis.UniversalClient
	// cluster is client, if that is one of a cluster, else nil.
	cluster *redis.ClusterClient
	calls   chan struct{} // a place for each call but Extend, so that no call delays a renewal

	instance string // this process, in the names of its inboxes
	members  atomic.Uint64
	// unsharded says that the cluster has no channels in slots.
	unsharded atomic.Bool

	mu      sync.Mutex
	nodes   map[string]*incarnation // by address
	inboxes map[string]*inbox       // by channel
	closed  bool
}

var (
	_ lease.Store = (*Store)(nil)
	_ lease.Waker = (*Store)(nil)

	_ lease.Finisher = (*Store)(nil)
)

// Open judges the options and returns a Store. It does not connect. The caller owes it
// a Close.
func Open(o Options) (*Store, error) {
	if o.Lease <= 0 {
		return nil, errors.New("redislease: Options.Lease must be positive")
	}
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if strings.ContainsAny(o.Prefix, "{} \t\r\n") {
		return nil, fmt.Errorf("key prefix %q: must not hold braces or white space", o.Prefix)
	}
	if o.Claim == 0 {
		o.Claim = DefaultClaim
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = 2 * time.Second
	}
	if o.PoolSize == 0 {
		o.PoolSize = 4
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r, err := o.translate()
	if err != nil {
		return nil, err
	}
	s := &Store{
		opt: o, prefix: o.Prefix, log: o.Log, claim: fmt.Sprint(o.Claim.Milliseconds()),
		instance: newInstance(), nodes: map[string]*incarnation{}, inboxes: map[string]*inbox{},
	}
	s.calls = make(chan struct{}, o.PoolSize)
	// Beyond the calls: a renewal at work and a second, so that a hung one is not waited
	// for; and dials whose callers have given up. A renewal takes whatever connection is
	// idle, so a new leader renews on the one that brought its grant.
	r.MaxConcurrentDials = 2
	r.PoolSize = o.PoolSize + 2 + r.MaxConcurrentDials
	s.dial(r)
	return s, nil
}

// Close ends the connections and waits for the inbox's reader. It may be called again.
func (s *Store) Close() error {
	s.closeInboxes()
	if err := s.client.Close(); !errors.Is(err, redis.ErrClosed) {
		return err
	}
	return nil
}

// place waits for a place among the calls; leave gives it back.
func (s *Store) place(ctx context.Context) error {
	select {
	case s.calls <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Store) leave() { <-s.calls }

// Acquire implements [lease.Store].
func (s *Store) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	if err := judge(r.Claim, r.TTL); err != nil {
		return lease.Grant{}, err
	}
	if err := s.place(ctx); err != nil {
		return lease.Grant{}, failed("acquire", err)
	}
	defer s.leave()
	node, client, err := s.nodeOf(ctx, r.Lock)
	if err != nil {
		return lease.Grant{}, failed("acquire", err)
	}
	node.recheck(ctx, client)
	if err := node.trusted(r.TTL); err != nil {
		return lease.Grant{}, err
	}
	reclaim := 0
	if r.Reclaim && r.Holder.PodUID != "" && r.Holder.Address != "" {
		reclaim = 1
	}
	v, err := acquireScript.Run(ctx, s.client, s.keys(r.Claim),
		string(r.Token), r.TTL.Milliseconds(), holderRecord(r.Holder), r.FenceHint, r.Waiter,
		r.Skip, s.claim, kindName(r.Slots), r.FirstSlot, reclaim, s.channels(r.Lock), r.Lock, r.Dead,
	).Slice()
	if err != nil {
		return lease.Grant{}, failed("acquire", err)
	}
	g, err := s.acquired(r, v)
	if err != nil {
		return lease.Grant{}, failed("acquire", err)
	}
	// The connection may have been made just now, and to a server that has just started.
	if err := node.trusted(r.TTL); err != nil {
		_, _ = s.release(ctx, r.Claim, lease.Finish{}) // unknown: it runs out by itself
		return lease.Grant{}, errors.Join(err, lease.ErrBurned)
	}
	return g, nil
}

// acquired reads the reply of acquire.lua.
func (s *Store) acquired(r lease.Request, v reply) (lease.Grant, error) {
	verdict, err := v.num(0)
	if err != nil {
		return lease.Grant{}, err
	}
	switch verdict {
	case 1:
		n, err := v.nums(1, 4)
		if err == nil && (n[0] < 0 || n[0] >= int64(max(r.Slots, 1)) || n[1] <= 0) {
			err = fmt.Errorf("%w: slot %d, fence %d", errReply, n[0], n[1])
		}
		if err != nil {
			return lease.Grant{}, err
		}
		return lease.Grant{
			Claim: r.Claim, Slot: int(n[0]), Fence: uint64(n[1]), Waiting: int(n[2]),
			Reclaimed: n[3] == 1, FromDead: n[3] == 2,
		}, nil
	case 0:
		n, err := v.nums(1, 4)
		if err != nil {
			return lease.Grant{}, err
		}
		joined, err := v.num(6)
		if err == nil && n[3] < 0 {
			err = fmt.Errorf("%w: fence %d", errReply, n[3])
		}
		if err != nil {
			return lease.Grant{}, err
		}
		h := lease.Held{Left: millis(n[0]), Rank: int(n[1]), Waiting: int(n[2]), Fence: uint64(n[3])}
		if n[0] < 0 {
			h.Left = -1
		}
		h.Term, h.Holder = parsePublic(v.str(5))
		h.LookAgain, h.Turn = lease.LookAgain(h, r.TTL, s.opt.Claim, joined == 1)
		return lease.Grant{}, &lease.HeldError{Held: h}
	case -1:
		return lease.Grant{}, lease.ErrBurned
	case -2:
		return lease.Grant{}, fmt.Errorf("%w: %q is, or was within 30 days, a %s lock (if nobody holds it, delete %s)",
			lease.ErrKind, r.Lock, v.str(1), s.key(r.Lock, "fn"))
	}
	return lease.Grant{}, fmt.Errorf("%w: verdict %d", errReply, verdict)
}

// Extend implements [lease.Store].
func (s *Store) Extend(ctx context.Context, g lease.Grant, e lease.Extension) (lease.Extended, error) {
	if err := judge(g.Claim, e.TTL); err != nil {
		return lease.Extended{}, err
	}
	keys := []string{s.key(g.Lock, "fn"), s.key(g.Lock, "q"), s.slotKey(g.Lock, g.Slots, g.Slot)}
	v, err := extendScript.Run(ctx, s.client, keys, string(g.Token), e.TTL.Milliseconds(), e.RaiseTo, kindName(g.Slots)).Slice()
	if err != nil {
		return lease.Extended{}, failed("extend", err)
	}
	ext, err := extended(v)
	return ext, failed("extend", err)
}

// extended reads the reply of extend.lua.
func extended(v reply) (lease.Extended, error) {
	verdict, err := v.num(0)
	if err != nil {
		return lease.Extended{}, err
	}
	switch verdict {
	case 1:
		n, err := v.nums(1, 2)
		if err != nil {
			return lease.Extended{}, err
		}
		return lease.Extended{Left: millis(n[0]), Waiting: int(n[1])}, nil
	case 0:
		return lease.Extended{}, lease.ErrLost
	case -1:
		return lease.Extended{}, fmt.Errorf("%w: stored is %s", lease.ErrFence, v.str(1))
	}
	return lease.Extended{}, fmt.Errorf("%w: verdict %d", errReply, verdict)
}

// judge refuses what can't be right before anything is sent.
func judge(c lease.Claim, ttl time.Duration) error {
	switch {
	case c.Lock == "" || strings.ContainsAny(c.Lock, "{} \t\r\n"):
		return fmt.Errorf("%w: lock name %q", lease.ErrInvalid, c.Lock)
	case c.Token == "":
		return fmt.Errorf("%w: no token", lease.ErrInvalid)
	case c.Slots < 0:
		return fmt.Errorf("%w: %d slots", lease.ErrInvalid, c.Slots)
	case ttl < time.Millisecond:
		return fmt.Errorf("%w: lease of %v, must be at least 1ms", lease.ErrInvalid, ttl)
	}
	return nil
}
