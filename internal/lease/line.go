package lease

import (
	"math/rand/v2"
	"time"
)

// Heads is how many waiters at the head of a line are told when their turn comes.
const Heads = 4

// perWaiter is the share of a second that each waiter behind the heads adds to the
// time between two looks of any of them: N waiters then look 2 times a second in all.
const perWaiter = 500 * time.Millisecond

// LookAgain says for how long a waiter sleeps if it hears nothing, and whether its
// turn has come when it wakes. A store fills in [Held] with it.
//
// One of the heads wakes when the lease it waits for has run out (a Redis key with p
// milliseconds left can be taken after p+1) and those ahead of it had claim each to
// take it. The others only see to it that no lost message is lost for ever: at random
// within a quarter of max(ttl, waiting/2 s); first, when they come in together,
// anywhere within that, since without the random phase they stay together.
func LookAgain(h Held, ttl, claim time.Duration, first bool) (d time.Duration, turn bool) {
	long := max(ttl, time.Duration(h.Waiting)*perWaiter)
	if h.Rank >= 0 && h.Rank < Heads && h.Left >= 0 {
		d = h.Left + time.Millisecond + time.Duration(h.Rank)*claim
		if d <= long+time.Duration(Heads)*claim+time.Second {
			return d, true
		}
	}
	if first {
		return max(time.Millisecond, rand.N(long)), false
	}
	return long - long/4 + rand.N(long/2+1), false
}
