package lease

import (
	"errors"
	"fmt"
	"time"
)

const (
	// driftShare is the part of a renew deadline given up for clocks that run at
	// different rates: 1 %.
	driftShare = 100
	// slack covers the store's own granularity: a Redis key with a PTTL of p
	// milliseconds may live for p+1, and is read in whole milliseconds.
	slack = 2 * time.Millisecond
	// minClearance is what must lie between the end of belief and the lease's.
	minClearance = 10 * time.Millisecond
	// longest is how long a store remembers what it knows of a lock: its fence above all.
	longest = 30 * 24 * time.Hour
)

// Timing holds the three durations of a lease, with client-go's names and
// meanings. The zero Timing is not valid; see [DefaultTiming].
type Timing struct {
	// LeaseDuration is how long others wait, after the last renewal that the
	// store saw, before they may take over.
	LeaseDuration time.Duration
	// RenewDeadline is how long a holder that can't renew goes on believing. What
	// lies between it and LeaseDuration is the time that guarded work has to stop.
	RenewDeadline time.Duration
	// RetryPeriod is how often a holder renews, and how long it waits for one answer.
	RetryPeriod time.Duration
}

// DefaultTiming is client-go's: 15 s, 10 s, 2 s.
var DefaultTiming = Timing{15 * time.Second, 10 * time.Second, 2 * time.Second}

// JobTiming returns the Timing of a job lock whose lease is d.
func JobTiming(d time.Duration) Timing {
	return Timing{LeaseDuration: d, RenewDeadline: 2 * d / 3, RetryPeriod: d / 7}
}

// Validate judges the durations together. Its error joins one sentence for each
// rule that is broken; each names the fields and the inequality.
func (t Timing) Validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		d    time.Duration
	}{
		{"lease-duration", t.LeaseDuration},
		{"renew-deadline", t.RenewDeadline},
		{"retry-period", t.RetryPeriod},
	} {
		if f.d < time.Millisecond {
			errs = append(errs, fmt.Errorf("%s must be at least 1ms, is %v", f.name, f.d))
		}
		if f.d > longest {
			return errors.Join(append(errs, fmt.Errorf("%s must be at most %v, is %v", f.name, longest, f.d))...)
		}
	}
	if floor := t.RenewDeadline + t.RenewDeadline/50 + minClearance; floor > t.LeaseDuration {
		errs = append(errs, fmt.Errorf("renew-deadline × 1.02 + 10ms must be ≤ lease-duration: %v × 1.02 + 10ms = %v > %v",
			t.RenewDeadline, floor, t.LeaseDuration))
	}
	if t.RetryPeriod*2 > t.RenewDeadline {
		errs = append(errs, fmt.Errorf("retry-period × 2 must be ≤ renew-deadline: %v × 2 > %v",
			t.RetryPeriod, t.RenewDeadline))
	}
	return errors.Join(errs...)
}

// Belief returns for how long a confirmed request entitles its sender to believe,
// counted from before it was sent.
func (t Timing) Belief() time.Duration {
	return t.RenewDeadline - t.RenewDeadline/driftShare - slack
}

// A Belief is what a Validity is worth at an instant.
type Belief int

const (
	Over       Belief = iota // not held, as far as the holder may say
	Unverified               // the wall clock jumped: held only if a fresh renewal confirms it
	Valid                    // held
)

// Validity is what one confirmed request entitles its sender to believe. It is
// immutable; the zero Validity has ended.
type Validity struct {
	Stamp Instant       // read before the request was sent
	For   time.Duration // [Timing.Belief]
}

// At judges v at now, and returns how much of it is left. It is the only judge of
// belief in the program.
func (v Validity) At(now Instant) (Belief, time.Duration) {
	left := v.For - now.Since(v.Stamp)
	switch {
	case left <= 0:
		return Over, 0
	case now.WallAhead(v.Stamp) > maxWallAhead:
		return Unverified, left
	default:
		return Valid, left
	}
}
