package leasetest

import (
	"context"
	"sync"

	"github.com/soloist-dev/soloist/internal/lease"
)

// linkInbox passes one waiter's notices on.
type linkInbox struct {
	l     *Link
	inner lease.Inbox
	left  chan struct{} // closed by leave

	mu  sync.Mutex // held to write to out
	out chan lease.Notice
}

// Join implements [lease.Waker].
func (l *Link) Join(ctx context.Context, lock string) (lease.Inbox, error) {
	waker, ok := l.store.(lease.Waker)
	if !ok {
		return lease.Inbox{Leave: func() {}}, nil
	}
	inner, err := send(ctx, l, "join", lock, func(ctx context.Context) (lease.Inbox, error) {
		return waker.Join(ctx, lock)
	})
	if err != nil {
		return lease.Inbox{}, err
	}
	in := &linkInbox{l: l, inner: inner, left: make(chan struct{}), out: make(chan lease.Notice, 1)}
	l.mu.Lock()
	l.inboxes[in] = struct{}{}
	l.mu.Unlock()
	l.start(in.pass)
	return lease.Inbox{Waiter: inner.Waiter, Notices: in.out, Leave: sync.OnceFunc(in.leave)}, nil
}

// pass passes notices on until the waiter leaves, or the link is closed.
func (in *linkInbox) pass() {
	for {
		select {
		case n := <-in.inner.Notices:
			fate := in.l.noticeFate()
			switch {
			case fate.Lost:
			case fate.Delay <= 0:
				in.put(n)
			default:
				in.l.start(func() {
					if in.l.sleep(fate.Delay) && !in.l.isDown() {
						in.put(n)
					}
				})
			}
		case <-in.left:
			return
		case <-in.l.ctx.Done():
			return
		}
	}
}

func (l *Link) noticeFate() NoticeFate {
	l.mu.Lock()
	defer l.mu.Unlock()
	fate := l.notices(l.told)
	l.told++
	if l.down {
		return NoticeFate{Lost: true}
	}
	return fate
}

func (in *linkInbox) put(n lease.Notice) {
	in.mu.Lock()
	defer in.mu.Unlock()
	put(in.out, n)
}

func (in *linkInbox) leave() {
	in.l.mu.Lock()
	delete(in.l.inboxes, in)
	in.l.mu.Unlock()
	close(in.left)
	in.inner.Leave()
}

// Resubscribe tells every waiter to look again, as a client does that had to make a new
// connection for its inbox.
func (l *Link) Resubscribe() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for in := range l.inboxes {
		in.put(lease.Notice{Now: true})
	}
}
