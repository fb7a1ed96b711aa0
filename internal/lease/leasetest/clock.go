package leasetest

import (
	"sync"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// A Clock is the three clocks of one machine, made of time.Now, which in a synctest
// bubble is the bubble's. It is safe for concurrent use.
//
// Timers follow time.Now, whatever a Clock says: a process on a machine whose clock
// runs fast wakes a little late by it, as it may on any machine.
type Clock struct {
	mu     sync.Mutex
	rate   float64
	noBoot bool
	// The clocks at the time of the latest change.
	at               time.Time
	wall, mono, boot time.Duration
	sleeps           time.Time // until then mono stands still
	stalls           time.Time // until then mono and boot stand still
}

// NewClock returns a Clock that runs at rate: 1.01 gains 1 %. Its wall clock begins
// at time.Now.
func NewClock(rate float64) *Clock {
	now := time.Now()
	up := time.Hour // a zero Instant lies in the past
	return &Clock{rate: rate, at: now, wall: time.Duration(now.UnixNano()), mono: up, boot: up}
}

// Now is a [lease.Clock].
func (c *Clock) Now() lease.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, mono, boot := c.read(time.Now()) // from the latest change, so that no rounding adds up
	i := lease.Instant{Wall: wall, Mono: mono, Boot: boot}
	if c.noBoot {
		i.Boot = 0
	}
	return i
}

// Time returns the wall clock's time, for [Config.Clock].
func (c *Clock) Time() time.Time { return time.Unix(0, int64(c.Now().Wall)) }

// read returns the clocks at now.
func (c *Clock) read(now time.Time) (wall, mono, boot time.Duration) {
	return c.wall + c.scale(now.Sub(c.at)),
		c.mono + c.scale(now.Sub(later(c.at, later(c.stalls, c.sleeps)))),
		c.boot + c.scale(now.Sub(later(c.at, c.stalls)))
}

// advance brings the clocks up to now, before a change.
func (c *Clock) advance() {
	now := time.Now()
	c.wall, c.mono, c.boot = c.read(now)
	c.at = now
}

// scale returns how much a clock gains in d of true time; nothing if d is negative.
func (c *Clock) scale(d time.Duration) time.Duration {
	return time.Duration(float64(max(d, 0)) * c.rate)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// SetRate changes the rate of all three clocks, from now on.
func (c *Clock) SetRate(rate float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	c.rate = rate
}

// StepWall sets the wall clock forward, or back if d is negative.
func (c *Clock) StepWall(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	c.wall += d
}

// Suspend begins a suspend of the machine that will have lasted for d: until then the
// monotonic clock stands still. It does not stop the process: let the test sleep, and
// cut its [Link].
func (c *Clock) Suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	c.sleeps = later(c.sleeps, c.at.Add(d))
}

// Stall begins a pause that no steady clock counts, as when a host stops a virtual
// machine and sets its wall clock right afterwards.
func (c *Clock) Stall(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	c.stalls = later(c.stalls, c.at.Add(d))
}

// NoBoottime takes the clock that counts in a suspend away.
func (c *Clock) NoBoottime() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noBoot = true
}
