package leasetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// How to open a store for [Conformance].
const (
	// Claim is how long it should keep a free slot for the first in line: so long that
	// no machine is too slow to claim in time.
	Claim = time.Minute
	// Lease is the longest lease in use.
	Lease = 10 * time.Minute
)

// A Suite is the contract of [lease.Store], and of [lease.Waker] for stores that are
// one, as tests. Set Open.
type Suite struct {
	// Open returns a client of its own to one and the same backing store; a Waker must
	// have an inbox of its own. What it opens it closes with t.Cleanup.
	Open func(t *testing.T) lease.Store
	// Short is the lease that tests let run out; 0: 60 ms. The store must be able to
	// keep one of this length.
	Short time.Duration
	// Plain is for a store of plain locks alone: it must refuse slots as ErrInvalid.
	Plain bool
	// Unordered is for a Waker without a line: all who wait are told at once, and no rank
	// nor number of waiters is known.
	Unordered bool
	// Crowd is how many compete for a lock at once; 0: 50. Each asks again without a pause.
	Crowd int
	// Bubble runs each test; nil: at once. With synctest.Test each has a bubble.
	Bubble func(*testing.T, func(*testing.T))
}

// Conformance runs the suite in named subtests, one after another. What they wait for
// they wait for as long as a busy machine needs, up to a minute.
func Conformance(t *testing.T, open func(t *testing.T) lease.Store) {
	Suite{Open: open}.Run(t)
}

// Run is Conformance with the other settings.
func (s Suite) Run(t *testing.T) {
	if s.Short == 0 {
		s.Short = 60 * time.Millisecond
	}
	if s.Crowd == 0 {
		s.Crowd = 50
	}
	if s.Bubble == nil {
		s.Bubble = func(t *testing.T, f func(*testing.T)) { f(t) }
	}
	slots := slotted
	if s.Plain {
		slots = slotless
	}
	for _, group := range [][]contract{grants, extensions, fences, slots, times, lines, finishes} {
		for _, c := range group {
			t.Run(c.sentence, func(t *testing.T) {
				s.Bubble(t, func(t *testing.T) { c.check(newBench(t, s)) })
			})
		}
	}
}

// contract is one sentence of the contract and its test.
type contract struct {
	sentence string
	check    func(*bench)
}

const (
	long    = Lease       // does not run out in a test
	patient = time.Minute // how long a test waits for what must happen
)

// bench is what one test works with: a store, and a lock that nobody else uses.
type bench struct {
	*testing.T
	suite Suite
	store lease.Store
	lock  string
}

func newBench(t *testing.T, s Suite) *bench {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return &bench{T: t, suite: s, store: s.Open(t), lock: "conformance-" + hex.EncodeToString(b[:])}
}

func (b *bench) open() lease.Store { return b.suite.Open(b.T) }

// waker returns the store as a Waker. A store that is none has no line to test.
func (b *bench) waker() (lease.Waker, bool) {
	w, ok := b.store.(lease.Waker)
	return w, ok
}

func identity(name string) lease.Identity {
	return lease.Identity{Name: name, PodUID: "uid-" + name, Address: "10.0.0.1:4040"}
}

// plain returns a request for a plain lock with a token of its own.
func (b *bench) plain() lease.Request { return b.slots(0) }

// slots returns a request for a lock with n slots.
func (b *bench) slots(n int) lease.Request {
	return lease.Request{
		Claim:  lease.Claim{Lock: b.lock, Slots: n, Token: lease.NewToken()},
		Holder: identity("pod"),
		TTL:    long,
	}
}

// grant acquires what must be free.
func (b *bench) grant(r lease.Request) lease.Grant {
	b.Helper()
	return b.grantBy(b.store, r)
}

func (b *bench) grantBy(s lease.Store, r lease.Request) lease.Grant {
	b.Helper()
	g, err := s.Acquire(b.Context(), r)
	if err != nil {
		b.Fatalf("Acquire: %v, want a grant", err)
	}
	if g.Claim != r.Claim {
		b.Errorf("grant of claim %+v, want that of the request, %+v", g.Claim, r.Claim)
	}
	if g.Fence == 0 {
		b.Error("grant without a fence")
	}
	return g
}

// refused acquires what must be held.
func (b *bench) refused(r lease.Request) lease.Held {
	b.Helper()
	return b.refusedBy(b.store, r)
}

func (b *bench) refusedBy(s lease.Store, r lease.Request) lease.Held {
	b.Helper()
	g, err := s.Acquire(b.Context(), r)
	var held *lease.HeldError
	if !errors.As(err, &held) {
		b.Fatalf("Acquire: %+v, %v; want a *HeldError", g, err)
	}
	if !errors.Is(err, lease.ErrHeld) || !lease.IsVerdict(err) {
		b.Errorf("%v is not ErrHeld and a verdict", err)
	}
	if held.LookAgain <= 0 {
		b.Errorf("LookAgain is %v", held.LookAgain)
	}
	return held.Held
}

func (b *bench) extend(g lease.Grant, ttl time.Duration) lease.Extended {
	b.Helper()
	e, err := b.store.Extend(b.Context(), g, lease.Extension{TTL: ttl})
	if err != nil {
		b.Fatalf("Extend: %v", err)
	}
	return e
}

// release wants to know whether the token held a slot.
func (b *bench) release(c lease.Claim, want bool) {
	b.Helper()
	b.releaseBy(b.store, c, want)
}

func (b *bench) releaseBy(s lease.Store, c lease.Claim, want bool) {
	b.Helper()
	if got, err := s.Release(b.Context(), c); err != nil || got != want {
		b.Fatalf("Release: %v, %v; want %v", got, err, want)
	}
}

func (b *bench) inspect() lease.Info {
	b.Helper()
	info, err := b.store.Inspect(b.Context(), b.lock)
	if err != nil {
		b.Fatalf("Inspect: %v", err)
	}
	return info
}

// holder wants exactly one slot to be held.
func (b *bench) holder() lease.HolderInfo {
	b.Helper()
	info := b.inspect()
	if len(info.Holders) != 1 {
		b.Fatalf("Inspect shows holders %+v, want one", info.Holders)
	}
	return info.Holders[0]
}

// want checks the error of a call.
func (b *bench) want(err, target error) {
	b.Helper()
	if !errors.Is(err, target) {
		b.Errorf("error is %v, want %v", err, target)
	}
}

// until polls until what is awaited has happened.
func (b *bench) until(what string, happened func() bool) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patient)
	defer cancel()
	for !happened() {
		b.pause(ctx, 2*time.Millisecond, what)
	}
}

func (b *bench) pause(ctx context.Context, d time.Duration, what string) {
	b.Helper()
	select {
	case <-time.After(d):
	case <-ctx.Done():
		b.Fatalf("%s: not within %v", what, patient)
	}
}

// runOut waits until nobody holds the lock.
func (b *bench) runOut() {
	b.Helper()
	b.until("the lease runs out", func() bool { return len(b.inspect().Holders) == 0 })
}
