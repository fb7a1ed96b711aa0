package kubelease

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/soloist-dev/soloist/internal/lease"
)

// The pauses between one watch and the next: each up to twice as long as the one before,
// unless that watch lasted.
const (
	firstPause = 200 * time.Millisecond
	maxPause   = 30 * time.Second
)

// Join implements [lease.Waker]. It neither blocks nor fails: the watch begins when the
// waiter is first refused, and with the state of the object, so that nothing since is
// missed. Who is granted the lock at once needs none.
func (s *Store) Join(_ context.Context, name string) (lease.Inbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	id := s.instance + "#" + strconv.FormatUint(s.last, 10)
	w := &waiter{notices: make(chan lease.Notice, 1)}
	s.lock(name).waiters[id] = w
	return lease.Inbox{Waiter: id, Notices: w.notices, Leave: func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		l := s.lock(name)
		delete(l.waiters, id)
		if len(l.waiters) == 0 && l.stop != nil {
			l.stop()
			l.stop = nil
		}
	}}, nil
}

// watch sees to it that the lock of a waiter is watched.
func (s *Store) watch(c lease.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lock(c.Lock)
	if l.waiters[c.Waiter] == nil || l.stop != nil || s.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithCancel(s.ctx)
	l.stop = stop
	s.wg.Go(func() { s.follow(ctx, c.Lock) }) // Close waits for it
}

// follow watches for as long as anybody waits.
func (s *Store) follow(ctx context.Context, name string) {
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := s.listen(ctx, name)
		if time.Since(began) > maxPause {
			pause = firstPause
		}
		if err != nil && ctx.Err() == nil && pause == firstPause { // the first in a row
			s.opt.Log.Warn("no watch: what comes free is noticed late", "lock", name, "error", failed("watch", err))
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		pause = min(2*pause, maxPause)
	}
}

// listen follows one watch until it breaks. It begins with the object as some server's
// cache has it, and misses nothing from there on.
func (s *Store) listen(ctx context.Context, name string) error {
	w, err := s.watches.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: "0"})
	if err != nil {
		return err
	}
	defer w.Stop()
	wake := time.NewTimer(rand.N(spread)) // should the object be gone
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wake.C:
			s.tell(name, lease.Notice{Now: true})
		case e, ok := <-w.ResultChan():
			if !ok {
				return nil
			}
			obj, ok := e.Object.(*unstructured.Unstructured)
			if !ok || e.Type == watch.Error {
				return apierrors.FromObject(e.Object)
			}
			r := decode(obj, s.opt.Lease)
			r.held = r.held && e.Type != watch.Deleted
			if left := s.saw(name, r); left > 0 {
				wake.Stop()
				s.tell(name, lease.Notice{Held: heldError(r, left).Held})
			} else {
				wake.Reset(rand.N(spread))
			}
		}
	}
}

// tell puts a notice into the mailbox of each waiter.
func (s *Store) tell(name string, n lease.Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.lock(name).waiters {
		select {
		case <-w.notices:
		default:
		}
		w.notices <- n
	}
}
