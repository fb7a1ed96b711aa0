package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// Errors of a Link. Neither is a verdict.
var (
	ErrRefused = errors.New("leasetest: connection refused")
	ErrCut     = errors.New("leasetest: connection broke before the answer")
)

// A Call is one request on its way through a Link.
type Call struct {
	Op   string // acquire, extend, release, inspect, join
	N    int    // how many of this Op went before it
	Lock string
}

// A Fate is what becomes of a Call. The zero Fate is to be answered at once. Of Lost,
// Refused, Cut and Mute the first that is set applies.
type Fate struct {
	Delay   time.Duration // until the store has the request, even if nobody waits any more
	Lost    bool          // the store never sees it, and the client no answer
	Refused bool          // the store never sees it; the client gets ErrRefused at once
	Cut     bool          // the store executes it; the client gets ErrCut
	Mute    bool          // the store executes it; the client gets no answer

	ReplyDelay time.Duration // until the client has the answer, or ErrCut
	// Again, if positive, is after how long the store gets the request a second time.
	// A join is never doubled.
	Again time.Duration
}

// A NoticeFate is what becomes of a notice. A delayed one may overtake another.
type NoticeFate struct {
	Lost  bool
	Delay time.Duration
}

// A Link is the network between one client and a store. It obeys ctx in every call, as
// a store does; a request that is on its way is delivered all the same. The caller owes
// it a Close, in a bubble before the bubble's end. It is safe for concurrent use.
type Link struct {
	store lease.Store
	ctx   context.Context // ends with Close
	close context.CancelFunc
	wg    sync.WaitGroup // of deliveries and of inboxes

	mu      sync.Mutex
	fates   func(Call) Fate
	notices func(n int) NoticeFate
	down    bool
	calls   map[string]int
	told    int
	inboxes map[*linkInbox]struct{}
}

var (
	_ lease.Store = (*Link)(nil)
	_ lease.Waker = (*Link)(nil)
)

// NewLink returns a Link without faults. If the store is no [lease.Waker], the Link's
// inboxes stay empty and name no waiter.
func NewLink(store lease.Store) *Link {
	l := &Link{
		store:   store,
		fates:   func(Call) Fate { return Fate{} },
		notices: func(int) NoticeFate { return NoticeFate{} },
		calls:   map[string]int{},
		inboxes: map[*linkInbox]struct{}{},
	}
	l.ctx, l.close = context.WithCancel(context.Background())
	return l
}

// Close loses what is on its way, and waits for the goroutines of the Link. What waits
// for an answer then, or is sent later, waits for its ctx.
func (l *Link) Close() {
	l.mu.Lock()
	l.close()
	l.mu.Unlock()
	l.wg.Wait()
}

// start runs f in a goroutine that Close waits for, unless the link is closed.
func (l *Link) start(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() == nil {
		l.wg.Go(f)
	}
}

// SetFates decides the fate of each call from now on. The function must not block, nor
// use the Link.
func (l *Link) SetFates(f func(Call) Fate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fates = f
}

// SetNotices decides the fate of each notice from now on; n is how many went before.
func (l *Link) SetNotices(f func(n int) NoticeFate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notices = f
}

// SetDown makes the link a black hole, or heals it: while it is down, what is sent into
// it, either way, is lost without a word. What is on its way to the store arrives. The
// store goes on to believe that the client listens.
func (l *Link) SetDown(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

func (l *Link) isDown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down
}

// Acquire implements [lease.Store].
func (l *Link) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	return send(ctx, l, "acquire", r.Lock, func(ctx context.Context) (lease.Grant, error) {
		return l.store.Acquire(ctx, r)
	})
}

// Extend implements [lease.Store].
func (l *Link) Extend(ctx context.Context, g lease.Grant, e lease.Extension) (lease.Extended, error) {
	return send(ctx, l, "extend", g.Lock, func(ctx context.Context) (lease.Extended, error) {
		return l.store.Extend(ctx, g, e)
	})
}

// Release implements [lease.Store].
func (l *Link) Release(ctx context.Context, c lease.Claim) (bool, error) {
	return send(ctx, l, "release", c.Lock, func(ctx context.Context) (bool, error) {
		return l.store.Release(ctx, c)
	})
}

// Inspect implements [lease.Store].
func (l *Link) Inspect(ctx context.Context, lock string) (lease.Info, error) {
	return send(ctx, l, "inspect", lock, func(ctx context.Context) (lease.Info, error) {
		return l.store.Inspect(ctx, lock)
	})
}

func (l *Link) fate(op, lock string) Fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	fate := l.fates(Call{Op: op, N: l.calls[op], Lock: lock})
	l.calls[op]++
	if l.down {
		return Fate{Lost: true}
	}
	return fate
}

type answer[T any] struct {
	v   T
	err error
}

// send sends a call through l, and returns what of an answer comes before ctx is done.
func send[T any](ctx context.Context, l *Link, op, lock string, call func(context.Context) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, noAnswer(ctx)
	}
	fate := l.fate(op, lock)
	switch {
	case fate.Lost:
		<-ctx.Done()
		return none, noAnswer(ctx)
	case fate.Refused:
		return none, ErrRefused
	}
	answers := make(chan answer[T], 1)
	l.start(func() {
		if !l.sleep(fate.Delay) {
			return
		}
		v, err := call(l.ctx)
		if fate.Again > 0 && op != "join" {
			l.start(func() {
				if l.sleep(fate.Again) {
					_, _ = call(l.ctx) // nobody waits for this answer
				}
			})
		}
		if fate.Cut {
			v, err = none, ErrCut
		}
		if fate.Mute || l.isDown() || !l.sleep(fate.ReplyDelay) || l.isDown() {
			return
		}
		answers <- answer[T]{v, err}
	})
	select {
	case a := <-answers:
		if a.err != nil && !lease.IsVerdict(a.err) {
			a.err = fmt.Errorf("link: %w", a.err)
		}
		return a.v, a.err
	case <-ctx.Done():
		return none, noAnswer(ctx)
	}
}

// sleep returns false if the link was closed meanwhile.
func (l *Link) sleep(d time.Duration) bool {
	if d <= 0 {
		return l.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.ctx.Done():
		return false
	}
}
