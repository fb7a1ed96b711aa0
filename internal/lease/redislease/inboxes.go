package redislease

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/soloist-dev/soloist/internal/lease"
)

// linger is how long a lock's inbox is kept when nobody waits any more.
const linger = time.Minute

// newInstance names a process among all others.
func newInstance() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// channels is what the name of every process's channel begins with. One server has a channel
// for each process. In a cluster the server that keeps a lock is to know who listens, so
// each lock has its own, in its own slot.
func (s *Store) channels(lock string) string {
	if s.cluster == nil {
		return s.prefix + ":in:"
	}
	return s.key(lock, "in:")
}

// Join implements [lease.Waker].
func (s *Store) Join(ctx context.Context, lock string) (lease.Inbox, error) {
	in, err := s.inbox(lock)
	if err != nil {
		return lease.Inbox{}, err
	}
	member := s.instance + "#" + strconv.FormatUint(s.members.Add(1), 10)
	notices, err := in.join(ctx, lock, member)
	if err != nil {
		s.retire(in)
		return lease.Inbox{}, failed("subscribe", err)
	}
	return lease.Inbox{Waiter: member, Notices: notices, Leave: sync.OnceFunc(func() {
		in.leave(member)
		s.retire(in)
	})}, nil
}

// inbox returns the one for a lock, which it starts unless it is there. The caller owes it
// a retire.
func (s *Store) inbox(lock string) (*inbox, error) {
	channel := s.channels(lock) + s.instance
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, failed("subscribe", redis.ErrClosed)
	}
	in := s.inboxes[channel]
	if in == nil {
		in = &inbox{s: s, channel: channel}
		if s.cluster != nil {
			in.lock = lock
		}
		in.start()
		s.inboxes[channel] = in
	}
	in.users++
	return in, nil
}

// retire takes a user away. A lock's inbox without any is closed a while later.
func (s *Store) retire(in *inbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in.users--
	if in.users > 0 || in.lock == "" {
		return
	}
	time.AfterFunc(linger, func() {
		s.mu.Lock()
		idle := in.users == 0 && s.inboxes[in.channel] == in
		if idle {
			delete(s.inboxes, in.channel)
		}
		s.mu.Unlock()
		if idle {
			in.close()
		}
	})
}

func (s *Store) closeInboxes() {
	s.mu.Lock()
	s.closed = true
	all := s.inboxes
	s.inboxes = nil
	s.mu.Unlock()
	for _, in := range all {
		in.close()
	}
}

// resubscribe makes every inbox begin anew: connections lead elsewhere now.
func (s *Store) resubscribe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, in := range s.inboxes {
		in.mu.Lock()
		in.again()
		in.mu.Unlock()
	}
}

// follow makes a lock's inbox begin anew if the lock is kept by another node than is
// listened to.
func (s *Store) follow(lock, addr string) {
	s.mu.Lock()
	in := s.inboxes[s.channels(lock)+s.instance]
	s.mu.Unlock()
	if in == nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.addr != "" && in.addr != addr {
		in.again()
	}
}

// judgeSharding takes note of a server that is older than channels in slots (Redis 7.0).
func (s *Store) judgeSharding(err error) {
	if strings.Contains(strings.ToLower(err.Error()), "unknown command") {
		s.unsharded.Store(true)
	}
}
