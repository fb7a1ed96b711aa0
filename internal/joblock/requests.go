package joblock

import (
	"context"
)

// attempt is one request of a client, however often it asks.
type attempt struct {
	stop    context.CancelCauseFunc
	clients int           // who wait for it; guarded by Locks.mu
	over    bool          // guarded by Locks.mu
	decided chan struct{} // closed when got and err are set
	got     Lease
	err     error
}

// shared makes one attempt of all asks with the same request. It goes on while anybody
// waits for it; what came of it is told to whoever asks again while it is held.
func (l *Locks) shared(ctx context.Context, a Ask) (Lease, error) {
	if a.Request == "" {
		return l.enter(ctx, a)
	}
	key := a.requestKey()
	l.mu.Lock()
	switch {
	case l.life.Err() != nil:
		l.mu.Unlock()
		return Lease{}, ErrClosing
	case l.requestsEnded.has(key):
		l.mu.Unlock()
		return Lease{}, ErrReleased
	}
	t := l.requests[key]
	again := t != nil
	if !again {
		detached, stop := context.WithCancelCause(context.WithoutCancel(ctx))
		t = &attempt{stop: stop, decided: make(chan struct{})}
		l.requests[key] = t
		l.running.Go(func() { l.attempt(detached, a, t) }) // Close waits for it
	}
	t.clients++
	l.mu.Unlock()
	select {
	case <-t.decided:
	case <-ctx.Done():
		l.abandon(key, t, context.Cause(ctx))
		return Lease{}, context.Cause(ctx)
	}
	if t.err != nil {
		return Lease{}, t.err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.held[t.got.Token.lease]
	if h == nil || !h.has(t.got.Token) {
		return Lease{}, ErrReleased
	}
	if again {
		h.term.Prolong()
	}
	return l.lease(h, t.got.Token), nil
}

// abandon ends an attempt that nobody waits for any more. What it has got already stays
// for who asks again.
func (l *Locks) abandon(key requestKey, t *attempt, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.clients--; t.clients > 0 || t.over {
		return
	}
	if l.requests[key] == t {
		delete(l.requests, key)
	}
	t.stop(cause)
}

// attempt competes until it is decided, or until no client waits.
func (l *Locks) attempt(ctx context.Context, a Ask, t *attempt) {
	defer t.stop(nil)
	defer close(t.decided)
	t.got, t.err = l.enter(ctx, a)
	l.mu.Lock()
	t.over = true
	orphan := t.err == nil && t.clients == 0
	if key := a.requestKey(); t.err != nil && l.requests[key] == t {
		delete(l.requests, key) // asked again, it is a new attempt
	}
	l.mu.Unlock()
	if orphan { // granted at the very moment at which the last client left
		_, _ = l.Release(ctx, a.Lock, t.got.Token, false) // unknown: it runs out by itself
	}
}

// forget lets a request go whose lock has been released or lost. Locks.mu is held.
func (l *Locks) forget(key requestKey) {
	if key.request != "" && l.requests[key] != nil {
		delete(l.requests, key)
		l.requestsEnded.put(key, struct{}{})
	}
}
