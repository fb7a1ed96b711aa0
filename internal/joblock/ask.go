package joblock

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// What is asked for where an [Ask] is silent, and how far it may go.
const (
	DefaultLease  = 30 * time.Second
	DefaultAtMost = 10 * time.Minute
	DefaultKeep   = 7 * 24 * time.Hour

	MinLease = 500 * time.Millisecond
	MaxLease = 24 * time.Hour
	MaxTime  = 30 * 24 * time.Hour // of anything
	MaxSlots = 1000
	maxWord  = 128 // bytes of an owner, a request, a run
)

// An Ask asks for a lock. The zero value of each field but Lock is usable.
type Ask struct {
	Lock    string // required, and judged by who takes it in
	Owner   string
	Reenter bool   // share the lease with who holds it in this process as the same Owner, if both ask so
	Request string // one attempt, however often it is asked for: "" for none
	// Lease is for how long others are kept out if this process dies; 0: DefaultLease.
	Lease time.Duration
	Wait  time.Duration // in line; 0: answer at once
	Slots int           // 0: a plain lock
	After *int          // begin the search for a slot behind this one; nil: spread by Owner
	// Once names a run: it is refused with *[DoneError] from when a release says that it is done.
	Once    string
	Keep    time.Duration // for how long that is remembered; 0: DefaultKeep
	AtLeast time.Duration // from the grant, even if it is released before
	// AtMost is for how long it is renewed after it was last asked for or renewed by the
	// client; 0: DefaultAtMost; < 0: for ever.
	AtMost time.Duration
}

// withDefaults returns the ask in full, or what is wrong with it, all at once.
func (a Ask) withDefaults() (Ask, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, w := range []struct{ name, word string }{{"owner", a.Owner}, {"request", a.Request}, {"once", a.Once}} {
		if len(w.word) > maxWord || strings.ContainsFunc(w.word, func(r rune) bool { return r <= ' ' || r > '~' }) {
			bad("%s must be at most %d printable ASCII characters without spaces", w.name, maxWord)
		}
	}
	if a.Lease == 0 {
		a.Lease = DefaultLease
		if a.AtMost > 0 { // a short limit needs no thought about leases
			a.Lease = min(a.Lease, max(a.AtMost, MinLease))
		}
	}
	if a.AtMost == 0 {
		a.AtMost = max(DefaultAtMost, a.Lease)
	}
	if a.Once != "" && a.Keep == 0 {
		a.Keep = DefaultKeep
	}
	switch {
	case a.Lease < MinLease || a.Lease > MaxLease:
		bad("lease must be from %v to %v, is %v", MinLease, MaxLease, a.Lease)
	case a.AtMost > 0 && a.AtMost < a.Lease:
		bad("at_most_for must be at least the lease: %v < %v", a.AtMost, a.Lease)
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"wait", a.Wait}, {"keep", a.Keep}, {"at_least_for", a.AtLeast}} {
		if d.d < 0 || d.d > MaxTime {
			bad("%s must be from 0 to %v, is %v", d.name, MaxTime, d.d)
		}
	}
	if a.AtMost > MaxTime {
		bad("at_most_for must be at most %v, is %v", MaxTime, a.AtMost)
	}
	if a.Slots < 0 || a.Slots > MaxSlots {
		bad("slots must be from 0 to %d, is %d", MaxSlots, a.Slots)
	}
	if a.After != nil && (*a.After < 0 || *a.After >= a.Slots) {
		bad("after must be one of the slots, 0 to %d, is %d", a.Slots-1, *a.After)
	}
	if a.Once != "" && a.Slots > 1 {
		bad("once is for a lock that one holds: without slots")
	}
	if a.Once == "" && a.Keep != 0 {
		bad("keep goes with once")
	}
	if a.Reenter && a.Owner == "" {
		bad("reenter goes with owner")
	}
	if len(errs) > 0 {
		return a, fmt.Errorf("%w: %w", lease.ErrInvalid, errors.Join(errs...))
	}
	return a, nil
}

// request returns what is asked of the store.
func (a Ask) request(id lease.Identity) lease.Request {
	r := lease.Request{
		Claim:  lease.Claim{Lock: a.Lock, Slots: a.Slots, Token: lease.NewToken()},
		Holder: id,
	}
	if a.Owner != "" {
		r.Holder.Name += "/" + a.Owner
	}
	switch {
	case a.Slots == 0:
	case a.After != nil:
		r.FirstSlot = (*a.After + 1) % a.Slots
	default: // spread: by owner, so that each begins where it was before, or at random
		h := fnv.New32a()
		key := a.Owner
		if key == "" {
			key = string(r.Token)
		}
		_, _ = h.Write([]byte(key)) // never fails
		r.FirstSlot = int(h.Sum32() % uint32(a.Slots))
	}
	return r
}

// finish is what the holder of a token may ask for at the end.
func (a Ask) finish() lease.Finish {
	return lease.Finish{AtLeast: a.AtLeast, Done: a.Once, Keep: a.Keep}
}
