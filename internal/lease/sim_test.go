package lease_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

var (
	seeds = flag.Int("sim.seeds", 25, "how many simulations to run")
	seed  = flag.Uint64("sim.seed", 0, "run this simulation alone")
)

// TestSimulation runs candidates through minutes of faults, and judges what they
// believed by the bubble's time: no two at once, fences rising, and a leader soon after
// the faults end.
func TestSimulation(t *testing.T) {
	if *seed != 0 {
		simulate(t, *seed)
		return
	}
	var terms int
	for n := range uint64(*seeds) {
		t.Run(fmt.Sprint("seed=", n+1), func(t *testing.T) { terms += simulate(t, n+1) })
	}
	if terms < 10**seeds {
		t.Errorf("%d terms in %d simulations: nothing happened", terms, *seeds)
	}
}

func simulate(t *testing.T, seed uint64) (terms int) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		// Within the promise: every rate within 1 % of every other.
		rate := func() float64 { return 0.995 + rnd.Float64()/100 }
		wall := leasetest.NewClock(rate())
		server := leasetest.NewMemory(leasetest.Config{Clock: wall.Time, Lease: timing.LeaseDuration})
		keeps := rnd.IntN(4) > 0
		h := leasetest.NewHistory(t, keeps)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		rigs := make([]*rig, 3+rnd.IntN(3))
		for i := range rigs {
			r := newRig(t, server, rate())
			rigs[i] = r
			wg.Go(func() { h.Campaign(ctx, &r.Candidate, lock, rand.New(rand.NewPCG(seed, uint64(i)+2))) })
		}
		for range 40 {
			trouble(rnd, rigs, server, keeps)
			for range 10 {
				time.Sleep(time.Duration(rnd.Int64N(int64(500 * time.Millisecond))))
				h.Check()
			}
		}
		heal(rigs)
		// Whoever was cut off finds its way back within a call, a pause and a lease.
		time.Sleep(2*timing.LeaseDuration + 4*timing.RetryPeriod)
		synctest.Wait()
		before, _ := h.Terms()
		h.AwaitLeader(before, timing.LeaseDuration+time.Second)
		cancel()
		wg.Wait()
		terms, _ = h.Terms()
		for _, r := range rigs {
			r.link.Close()
		}
	})
	return terms
}

// trouble changes what is wrong.
func trouble(rnd *rand.Rand, rigs []*rig, server *leasetest.Memory, data bool) {
	r := rigs[rnd.IntN(len(rigs))]
	switch rnd.IntN(10) {
	case 0, 1:
		r.link.SetDown(true)
	case 2, 3:
		r.link.SetDown(false)
	case 4, 5, 6:
		c := leasetest.Chaos{
			Seed: rnd.Uint64(), Lost: .1, Refused: .1, Cut: .1, Mute: .1,
			Slow: .4, MaxDelay: time.Duration(rnd.Int64N(int64(4 * time.Second))),
			Twice: .1, MaxAgain: 8 * time.Second, NoticeLost: .2, NoticeSlow: .2,
		}
		r.link.SetFates(c.Fate)
		r.link.SetNotices(c.Notice)
	case 7:
		r.clock.StepWall(time.Duration(rnd.Int64N(int64(time.Minute))) - 30*time.Second)
	case 8:
		r.link.Resubscribe()
	case 9:
		switch {
		case data:
		case rnd.IntN(2) == 0:
			server.FlushAll()
		default:
			restore := server.Snapshot()
			time.Sleep(time.Second)
			restore()
		}
	}
}

func heal(rigs []*rig) {
	for _, r := range rigs {
		r.link.SetFates(func(leasetest.Call) leasetest.Fate { return leasetest.Fate{} })
		r.link.SetNotices(func(int) leasetest.NoticeFate { return leasetest.NoticeFate{} })
		r.link.SetDown(false)
		r.link.Resubscribe()
	}
}
