package lease

import "time"

// maxWallAhead is how far the wall clock may run ahead of elapsed time before a
// belief needs a fresh confirmation. It is far above what slewing does within a
// lease, and far below the spare time of a lease worth having.
const maxWallAhead = 250 * time.Millisecond

// An Instant is one reading of three clocks. The zero Instant lies in the past.
type Instant struct {
	Wall time.Duration // since the Unix epoch; may be set, so it measures nothing
	Mono time.Duration // CLOCK_MONOTONIC since the program began; stops in a suspend
	Boot time.Duration // CLOCK_BOOTTIME; goes on in a suspend. 0 where there is none
}

// Since returns the time from earlier to i: the greater of what the two steady
// clocks say, since a platform may alias one to the other (gVisor does).
func (i Instant) Since(earlier Instant) time.Duration {
	return max(i.Mono-earlier.Mono, i.Boot-earlier.Boot)
}

// WallAhead returns how far the wall clock has run ahead of elapsed time between
// earlier and i. More than a trifle means that the wall clock was set, or that the
// machine slept where no steady clock counted it.
func (i Instant) WallAhead(earlier Instant) time.Duration {
	return i.Wall - earlier.Wall - i.Since(earlier)
}

// A Clock reads an Instant. It does not block and is safe for concurrent use.
type Clock func() Instant

var began = time.Now()

// SystemClock is the Clock of this machine.
func SystemClock() Instant {
	now := time.Now()
	return Instant{
		Wall: time.Duration(now.UnixNano()),
		Mono: now.Sub(began),
		Boot: boottime(),
	}
}
