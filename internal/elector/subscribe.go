package elector

import "sync"

// Subscription receives states. Only the newest is kept: a slow reader misses the ones
// between, and is never waited for.
type Subscription struct {
	C     <-chan *State // never closed
	c     chan *State
	owner *subscribers
}

// Close ends the subscription. It does not block and may be called again.
func (s *Subscription) Close() {
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	delete(s.owner.all, s)
}

type subscribers struct {
	mu  sync.Mutex
	all map[*Subscription]struct{}
}

// add subscribes, with now as the first state received.
func (s *subscribers) add(now func() *State) *Subscription {
	c := make(chan *State, 1)
	sub := &Subscription{C: c, c: c, owner: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*Subscription]struct{}{}
	}
	s.all[sub] = struct{}{}
	c <- now() // under the lock, so that no newer one comes before it
	return sub
}

func (s *subscribers) send(st *State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.all {
		select {
		case <-sub.c: // unread: the new one takes its place
		default:
		}
		sub.c <- st
	}
}
