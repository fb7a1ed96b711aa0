package lease

import (
	"context"
	"time"
)

// An Identity says who holds: shown to people, and compared when a process takes
// back the lease of its own dead predecessor. Its fields hold no spaces.
type Identity struct {
	Name    string // the pod's name
	PodUID  string // "" outside Kubernetes
	Address string // the HTTP address that the process has bound
}

// A Claim names one attempt at a lock, and the lease that comes of it.
type Claim struct {
	Lock  string
	Slots int   // 0: a plain lock. N ≥ 1: a lock with slots 0 to N-1
	Token Token // this attempt's own
	// Waiter is what a [Waker] gave: with it a refused attempt takes its place in
	// line. Empty: the attempt does not wait.
	Waiter string
}

// A Request asks for a slot.
type Request struct {
	Claim
	Holder Identity
	TTL    time.Duration // the lease's length, > 0; a [Candidate] sets it
	// FenceHint is the highest fence that the candidate has seen; the grant's is higher.
	FenceHint uint64
	// FirstSlot is where the search for a free slot begins.
	FirstSlot int
	// Skip is how many waiters ahead in line missed their turn; they are dropped.
	Skip int
	// Reclaim lets the attempt take a lease whose holder has the same non-empty
	// PodUID and Address. Set it only where that holder is known to be dead.
	Reclaim bool
	// Dead, if not 0, is the fence of a lease whose holder is known to be dead, with all
	// that acted on it. The attempt takes that lease, and no other.
	Dead uint64
}

// A Grant is a lease, as it was granted. It is immutable.
type Grant struct {
	Claim
	Slot      int
	Fence     uint64
	Waiting   int  // candidates in line behind it
	Reclaimed bool // taken back from a dead predecessor
	FromDead  bool // taken over from the holder of Request.Dead
}

// An Extension asks that a lease last for TTL from when the store sees it. It
// never shortens one.
type Extension struct {
	TTL time.Duration
	// RaiseTo, if not 0, raises the fence too: strictly, else [ErrFence].
	RaiseTo uint64
}

// Extended is the answer to a confirmed Extension.
type Extended struct {
	Left    time.Duration // what was left of the lease before it was extended
	Waiting int           // candidates in line
}

// Info is what Inspect saw. A slot that nobody holds is not listed.
type Info struct {
	Lock    string
	Slots   int    // 0: plain
	Fence   uint64 // highest ever granted, as far as the store remembers
	Waiting int
	Holders []HolderInfo
	LastRun *Run // nil: none is known
}

// HolderInfo describes the lease of one slot.
type HolderInfo struct {
	Slot  int
	Fence uint64
	Holder
	Left    time.Duration // < 0: the key does not expire, which is wrong
	Resting bool          // released, and kept from all until Left has passed ([Finish.AtLeast])
}

// Holder is the public part of who holds a slot, and since when by the store's clock.
type Holder struct {
	Identity
	Since time.Time
}

// A Store keeps leases. Its methods block until the store has answered or ctx is
// done; they may notice a cancellation, unlike a deadline, as late as that. They are safe for concurrent use. An answer is one of
// three: nil (granted), a verdict (see [IsVerdict]), or any other error, which
// means that what was asked may or may not have happened. Every method may be
// repeated with the same token: the store then does nothing twice.
type Store interface {
	// Acquire asks for any free slot. Verdicts: *[HeldError]; [ErrBurned] when a
	// release was sent for this token; [ErrKind]; [ErrInvalid]. If the token already
	// holds a slot, the grant is that slot with its own fence.
	Acquire(ctx context.Context, r Request) (Grant, error)
	// Extend renews the lease. Verdicts: [ErrLost], [ErrFence], [ErrInvalid].
	Extend(ctx context.Context, g Grant, e Extension) (Extended, error)
	// Release gives up the slot, burns the token, takes the waiter out of line and
	// wakes the next. It reports whether the token held a slot; repeated, it reports the
	// same again, unless the token is forgotten by then, which makes it false.
	Release(ctx context.Context, c Claim) (bool, error)
	// Inspect reports on a lock without changing anything.
	Inspect(ctx context.Context, lock string) (Info, error)
}

// A Waker is a Store that tells its waiters when to look again.
type Waker interface {
	// Join gives a waiter an address in the store. It blocks until messages are
	// sure to arrive, or ctx is done.
	Join(ctx context.Context, lock string) (Inbox, error)
}

// An Inbox receives what a waiter is told. Only the newest notice is kept.
type Inbox struct {
	Waiter  string        // for [Claim.Waiter]
	Notices <-chan Notice // never closed
	Leave   func()        // frees the address; does not block
}

// A Notice tells a waiter when to look again.
type Notice struct {
	Held      // what the store knew when it told; may be the zero Held
	Now  bool // look again at once
}
