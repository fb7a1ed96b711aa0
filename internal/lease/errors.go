package lease

import (
	"errors"
	"fmt"
	"time"
)

// Verdicts: the store has answered, and the answer is no.
var (
	// ErrHeld is matched by every *[HeldError].
	ErrHeld = errors.New("lease: held by another")
	// ErrLost says that the token holds nothing any more.
	ErrLost = errors.New("lease: lost")
	// ErrBurned says that a release was sent for this token.
	ErrBurned = errors.New("lease: token already released")
	// ErrKind says that the name is in use as a lock of the other kind.
	ErrKind = errors.New("lease: plain and slotted use of one name")
	// ErrFence says that a fence was not higher than the stored one.
	ErrFence = errors.New("lease: fence not higher than the stored one")
	// ErrInvalid says that the request can't be right, whatever the store holds.
	ErrInvalid = errors.New("lease: invalid request")
)

// Ends of a term that are not verdicts.
var (
	// ErrExpired says that belief ran out without a confirmed renewal.
	ErrExpired = errors.New("lease: not renewed in time")
	// ErrLimit says that the term has lasted as long as it may ([Candidate.AtMost]).
	ErrLimit = errors.New("lease: held for as long as it may be")
	// ErrStopped says that the owner ended the term.
	ErrStopped = errors.New("lease: stopped by its owner")
)

// ErrUnknown says that nothing is held any more, but not whether it was until the release:
// a try that brought no answer may have ended it. It is no verdict.
var ErrUnknown = errors.New("lease: released; whether it was held until then is not known")

// WaitError says that the store can't be trusted with a new lease before For has
// passed. It is no verdict: nothing was asked of the store, or nothing was kept.
type WaitError struct {
	For    time.Duration
	Reason string // for people: what is waited for, and what to do about it
}

func (e *WaitError) Error() string {
	return fmt.Sprintf("lease: no new lease for another %v: %s", e.For.Round(time.Millisecond), e.Reason)
}

// IsVerdict reports whether err is the store's answer. Any other error means that
// what was asked may or may not have happened.
func IsVerdict(err error) bool {
	return isAny(err, ErrHeld, ErrLost, ErrBurned, ErrKind, ErrFence, ErrInvalid)
}

// Held says who holds a lock, and when it is worth looking again.
type Held struct {
	Holder  Holder        // of one of the slots; zero while one is kept for the next in line
	Term    uint64        // the fence of that holder's lease; 0: not known
	Fence   uint64        // highest known
	Left    time.Duration // until a slot may come free; < 0: a key that never expires
	Rank    int           // place in line, from 0; -1: not in line
	Waiting int           // candidates in line
	// LookAgain is how long to sleep if nothing is heard before. At Turn the waiter
	// tries with [Request.Skip] = Rank.
	LookAgain time.Duration
	Turn      bool // LookAgain ends when it is this waiter's turn
}

// HeldError is the refusal of an Acquire.
type HeldError struct{ Held }

func (e *HeldError) Error() string {
	return fmt.Sprintf("lease: held by %q for another %v, rank %d of %d",
		e.Holder.Name, e.Left.Round(time.Millisecond), e.Rank, e.Waiting)
}

// Is matches ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }
