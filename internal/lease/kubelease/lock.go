package kubelease

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/soloist-dev/soloist/internal/lease"
)

// spread is the time in which a crowd looks at what came free, at random: by then the first
// of them has it, and the others are told so before they ask.
const spread = 50 * time.Millisecond

// maxLocks is how many locks are remembered before those are forgotten that nobody needs.
const maxLocks = 1000

// lock is what this process knows of a lock. The Store's mutex guards it.
type lock struct {
	write   string    // the holder's write that was seen last; "": free
	at      time.Time // read after the reply that showed it first
	ends    time.Time // for an observer
	mine    *record   // as our own last write left it, if it left a holder; nil: read first
	waiters map[string]*waiter
	stop    context.CancelFunc // ends the watch; nil: none runs
}

// waiter is one that has joined.
type waiter struct {
	notices chan lease.Notice // a mailbox of one: the newest counts
	wrote   bool              // a write for it was sent, and may still arrive
	burned  []string          // released before that
}

// lock returns the lock of that name. Its callers hold s.mu.
func (s *Store) lock(name string) *lock {
	l := s.locks[name]
	if l == nil {
		if now := time.Now(); len(s.locks) >= maxLocks {
			maps.DeleteFunc(s.locks, func(_ string, l *lock) bool {
				return len(l.waiters) == 0 && now.After(l.ends)
			})
		}
		l = &lock{waiters: map[string]*waiter{}}
		s.locks[name] = l
	}
	return l
}

// saw takes in what a reply shows, and returns what is left of the lease as this process
// sees it: 0 if it has run out, or nobody holds it. It is called right after the reply.
func (s *Store) saw(name string, r record) time.Duration {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lock(name)
	if !r.held {
		l.write, l.ends = "", time.Time{}
		return 0
	}
	if l.write != r.write {
		l.write, l.at = r.write, now
	}
	l.ends = l.at.Add(r.length)
	return max(l.ends.Sub(now), 0)
}

// written takes in the reply to a write of ours; nil: it is not known, or was refused.
func (s *Store) written(name string, r *record) {
	if r != nil {
		s.saw(name, *r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lock(name)
	l.mine = nil
	if r != nil && r.held {
		l.mine = r
	}
}

// own returns the object as our own last write left it, if that was for this token and
// nothing newer was seen.
func (s *Store) own(name, hash string) (record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.locks[name]
	if l == nil || l.mine == nil || l.mine.token != hash || l.mine.write != l.write {
		return record{}, false
	}
	return *l.mine, true
}

// waiter returns the claim's, or nil. Its callers hold s.mu.
func (s *Store) waiter(c lease.Claim) *waiter {
	if l := s.locks[c.Lock]; l != nil {
		return l.waiters[c.Waiter]
	}
	return nil
}

// spent reports whether the claim was released here. If not, and a write for it is to be
// sent, none of its releases is for this process alone from now on.
func (s *Store) spent(c lease.Claim, sending bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiter(c)
	if w == nil {
		return false
	}
	if slices.Contains(w.burned, hashOf(c.Token)) {
		return true
	}
	w.wrote = w.wrote || sending
	return false
}

// burn burns the claim's token in this process, if that is enough: if no write for it was
// ever sent, none can arrive late. So a waiter that gives up costs the server nothing.
func (s *Store) burn(c lease.Claim) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiter(c)
	if w == nil || w.wrote {
		return false
	}
	w.burned = append(w.burned, hashOf(c.Token))
	return true
}

// heldError refuses a claim, and plans when to look again.
func heldError(r record, left time.Duration) *lease.HeldError {
	h := lease.Held{Holder: r.holder, Fence: r.fence, Left: left, Rank: -1}
	if r.token != "" {
		h.Term = r.fence
	}
	h.LookAgain = left + time.Millisecond + rand.N(spread)
	return &lease.HeldError{Held: h}
}

// judge refuses what can't be right before anything is sent.
func judge(c lease.Claim, ttl time.Duration) error {
	switch {
	case c.Token == "":
		return fmt.Errorf("%w: no token", lease.ErrInvalid)
	case c.Slots < 0:
		return fmt.Errorf("%w: %d slots", lease.ErrInvalid, c.Slots)
	case c.Slots > 0:
		return fmt.Errorf("%w: a Lease object has one holder: locks with slots need another store", lease.ErrInvalid)
	case ttl < time.Millisecond || ttl > longest:
		return fmt.Errorf("%w: lease of %v, must be from 1ms to %v", lease.ErrInvalid, ttl, longest)
	}
	return judgeName(c.Lock)
}

func judgeName(lock string) error {
	if errs := validation.IsDNS1123Subdomain(lock); len(errs) > 0 {
		return fmt.Errorf("%w: lock name %q is the name of a Lease: %s", lease.ErrInvalid, lock, strings.Join(errs, "; "))
	}
	return nil
}
