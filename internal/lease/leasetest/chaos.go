package leasetest

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Chaos is a random plan of faults. Each field but Seed and the times is a probability.
// The fate of the n-th acquire depends on the seed and n alone, so a run with the same
// seed is nearly the same run, whatever the goroutines' order.
type Chaos struct {
	Seed                     uint64
	Lost, Refused, Cut, Mute float64
	Slow                     float64 // requests and answers that take up to MaxDelay
	MaxDelay                 time.Duration
	Twice                    float64       // requests that arrive again
	MaxAgain                 time.Duration // after at most this long; 0: MaxDelay
	NoticeLost, NoticeSlow   float64
}

func (c Chaos) rand(what string, n int) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(what)) // never fails
	return rand.New(rand.NewPCG(c.Seed, h.Sum64()+uint64(n)))
}

// Fate is for [Link.SetFates].
func (c Chaos) Fate(call Call) Fate {
	r := c.rand(call.Op, call.N)
	// Always in the same order, so that no fault moves another.
	fate := Fate{
		Lost:       r.Float64() < c.Lost,
		Refused:    r.Float64() < c.Refused,
		Cut:        r.Float64() < c.Cut,
		Mute:       r.Float64() < c.Mute,
		Delay:      upTo(r, c.Slow, c.MaxDelay),
		ReplyDelay: upTo(r, c.Slow, c.MaxDelay),
	}
	again := c.MaxAgain
	if again == 0 {
		again = c.MaxDelay
	}
	fate.Again = upTo(r, c.Twice, again)
	return fate
}

// Notice is for [Link.SetNotices].
func (c Chaos) Notice(n int) NoticeFate {
	r := c.rand("notice", n)
	return NoticeFate{Lost: r.Float64() < c.NoticeLost, Delay: upTo(r, c.NoticeSlow, c.MaxDelay)}
}

// upTo returns with a probability a time up to limit, else 0.
func upTo(r *rand.Rand, probability float64, limit time.Duration) time.Duration {
	hit, share := r.Float64() < probability, r.Float64()
	if !hit {
		return 0
	}
	return time.Duration(share * float64(limit))
}
