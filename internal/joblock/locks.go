package joblock

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// DefaultLimit is how many locks one process keeps at most.
const DefaultLimit = 1000

// Config configures Locks.
type Config struct {
	Store    lease.Store // for [Ask.Once] and [Ask.AtLeast] a [lease.Finisher]
	Identity lease.Identity
	Clock    lease.Clock  // nil: the system's
	Limit    int          // of locks held and asked for; 0: DefaultLimit
	Log      *slog.Logger // nil: discard
}

// Locks are the job locks of one process. They are safe for concurrent use. The caller owes
// them a Close.
type Locks struct {
	cfg Config
	log *slog.Logger

	life    context.Context // ends with Close
	close   context.CancelCauseFunc
	running sync.WaitGroup // of what watches holdings, and of shared attempts

	mu       sync.Mutex
	held     map[lease.Token]*holding
	owners   map[ownerKey]*entry     // who shares a lease with itself
	requests map[requestKey]*attempt // from the first ask to the end of what came of it
	asking   int                     // attempts under way
	idle     chan struct{}           // closed when nothing is held or asked for any more, after close
	stats    Stats

	ended         memory[Token, outcome]
	requestsEnded memory[requestKey, struct{}]
}

type ownerKey struct{ lock, owner string }

type requestKey struct{ lock, owner, request string }

// holding is a lease that is held, or was until a moment ago. Its last four fields are
// guarded by Locks.mu; the others do not change.
type holding struct {
	ask     Ask
	token   Token // without a handle
	term    *lease.Term
	since   time.Time
	handles map[uint64]string // to the request that each was asked for with; alone 0 if not re-entrant
	last    uint64            // the latest handle
	changed chan struct{}     // closed and replaced at each renewal; closed for good at the end
	release *releasing        // nil: nobody has asked for it
}

// New returns Locks without any.
func New(c Config) *Locks {
	if c.Clock == nil {
		c.Clock = lease.SystemClock
	}
	if c.Limit == 0 {
		c.Limit = DefaultLimit
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	life, stop := context.WithCancelCause(context.Background())
	return &Locks{
		cfg: c, log: c.Log, life: life, close: stop,
		held:     map[lease.Token]*holding{},
		owners:   map[ownerKey]*entry{},
		requests: map[requestKey]*attempt{},
		idle:     make(chan struct{}),
		stats:    newStats(),
	}
}

// A Lease is what was granted, as a client sees it.
type Lease struct {
	Lock  string
	Slot  int
	Slots int // 0: a plain lock
	Token Token
	Fence uint64 // 0: not known here
	Owner string
	Since time.Time
	Count int           // handles of a re-entrant lock, 1 otherwise
	Valid time.Duration // from the call on

	term *lease.Term
	of   *Locks
}

// lease describes h to who has token. Locks.mu is held.
func (l *Locks) lease(h *holding, token Token) Lease {
	g := h.term.Grant()
	return Lease{
		Lock: g.Lock, Slot: g.Slot, Slots: g.Slots, Token: token, Fence: g.Fence, Owner: h.ask.Owner,
		Since: h.since, Count: len(h.handles), Valid: l.left(h.term), term: h.term, of: l,
	}
}

// left returns for how long the belief of a term is valid: 0 if it is not.
func (l *Locks) left(t *lease.Term) time.Duration {
	switch belief, left := t.Validity().At(l.cfg.Clock()); belief {
	case lease.Valid:
		return left
	case lease.Unverified:
		t.Verify()
	}
	return 0
}

// Left returns for how long the lease may be believed in from now: 0 if it may not.
func (l Lease) Left() time.Duration { return l.of.left(l.term) }

// Ended is closed when the lease has ended, for whatever reason.
func (l Lease) Ended() <-chan struct{} { return l.term.Ended() }

// Err returns why it has ended: an error of package lease, or nil while it lasts.
func (l Lease) Err() error { return l.term.Err() }

// Changed returns a channel that is closed at the next renewal, or at the end.
func (l Lease) Changed() <-chan struct{} {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if h := l.of.held[l.Token.lease]; h != nil {
		return h.changed
	}
	return l.term.Ended()
}

// List returns what is held now, without tokens, in no order. It does not block.
func (l *Locks) List() []Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Lease, 0, len(l.held))
	for _, h := range l.held {
		all = append(all, l.lease(h, Token{}))
	}
	return all
}

// hold takes in a new term. Locks.mu is held.
func (l *Locks) hold(a Ask, t *lease.Term) *holding {
	g := t.Grant()
	h := &holding{
		ask: a, term: t, since: time.Now(), changed: make(chan struct{}), handles: map[uint64]string{},
		token: Token{lease: g.Token, slot: g.Slot, slots: g.Slots, ttl: a.Lease, finish: a.finish()},
	}
	l.held[g.Token] = h
	l.running.Go(func() { l.watch(h) }) // Close waits for it
	return h
}

// handle gives out a token for h to who asks. Locks.mu is held.
func (h *holding) handle(a Ask) Token {
	t := h.token
	if h.ask.Reenter {
		h.last++
		t.handle = h.last
	}
	h.handles[t.handle] = a.Request
	return t
}

// has reports whether the token is one of h's. Locks.mu is held.
func (h *holding) has(t Token) bool {
	_, ok := h.handles[t.handle]
	return ok
}

// watch passes renewals on until the term ends, and takes note of its end.
func (l *Locks) watch(h *holding) {
	for {
		select {
		case <-h.term.Renewed():
			l.mu.Lock()
			close(h.changed)
			h.changed = make(chan struct{})
			l.mu.Unlock()
			continue
		case <-h.term.Ended():
		}
		break
	}
	h.term.Stop(nil) // it has ended: this waits for its last request
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := h.release; r != nil {
		// Who asks again meanwhile is to find what this one finds.
		l.mu.Unlock()
		<-r.done
		l.mu.Lock()
	} else {
		err := h.term.Err()
		l.stats.lost(err)
		for handle := range h.handles {
			t := h.token
			t.handle = handle
			l.ended.put(t, outcome{lost: err})
		}
		l.log.Warn("job lock lost", "lock", h.ask.Lock, "owner", h.ask.Owner, "fence", h.term.Grant().Fence, "reason", err)
	}
	l.drop(h)
	close(h.changed)
}

// drop forgets h. Locks.mu is held.
func (l *Locks) drop(h *holding) {
	delete(l.held, h.token.lease)
	owner := ownerKey{h.ask.Lock, h.ask.Owner}
	if e := l.owners[owner]; e != nil && e.holding == h {
		delete(l.owners, owner)
	}
	for _, request := range h.handles {
		l.forget(requestKey{h.ask.Lock, h.ask.Owner, request})
	}
	l.settle()
}

// settle says when nothing is left, to who waits for that. Locks.mu is held.
func (l *Locks) settle() {
	if l.life.Err() != nil && len(l.held) == 0 && l.asking == 0 {
		select {
		case <-l.idle:
		default:
			close(l.idle)
		}
	}
}

func (a Ask) requestKey() requestKey { return requestKey{a.Lock, a.Owner, a.Request} }
