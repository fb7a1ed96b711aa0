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

	"github.com/soloist-dev/soloist/internal/lease"
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

// history is what the candidates of one simulation did, by the bubble's time.
type history struct {
	t    *testing.T
	data bool // the server keeps its data: promise 1 holds

	mu      sync.Mutex
	highest uint64
	terms   int
	running map[*lease.Term]*rig
}

// check demands that at most one term is believed in right now.
func (h *history) check() {
	h.mu.Lock()
	defer h.mu.Unlock()
	var believing []*lease.Term
	for term, r := range h.running {
		if r.belief(term) == lease.Valid {
			believing = append(believing, term)
		}
	}
	if h.data && len(believing) > 1 {
		h.t.Errorf("%v: %d leaders: %v", time.Now(), len(believing), believing)
	}
}

func (h *history) begin(r *rig, term *lease.Term) {
	h.mu.Lock()
	fence := term.Grant().Fence
	if fence <= h.highest {
		h.t.Errorf("fence %d after %d", fence, h.highest)
	}
	h.highest = max(h.highest, fence)
	h.terms++
	h.running[term] = r
	h.mu.Unlock()
	h.check()
}

func (h *history) end(term *lease.Term) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.running, term)
}

func simulate(t *testing.T, seed uint64) (terms int) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		// Within the promise: every rate within 1 % of every other.
		rate := func() float64 { return 0.995 + rnd.Float64()/100 }
		wall := leasetest.NewClock(rate())
		server := leasetest.NewMemory(leasetest.Config{Clock: wall.Time, Lease: timing.LeaseDuration})
		h := &history{t: t, data: rnd.IntN(4) > 0, running: map[*lease.Term]*rig{}}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		rigs := make([]*rig, 3+rnd.IntN(3))
		for i := range rigs {
			r := newRig(t, server, rate())
			rigs[i] = r
			wg.Go(func() { r.campaign(ctx, h, rand.New(rand.NewPCG(seed, uint64(i)+2))) })
		}
		for range 40 {
			trouble(rnd, rigs, server, h.data)
			for range 10 {
				time.Sleep(time.Duration(rnd.Int64N(int64(500 * time.Millisecond))))
				h.check()
			}
		}
		heal(rigs)
		// Whoever was cut off finds its way back within a call, a pause and a lease.
		time.Sleep(2*timing.LeaseDuration + 4*timing.RetryPeriod)
		synctest.Wait()
		before := h.terms
		for deadline := time.Now().Add(timing.LeaseDuration + time.Second); ; {
			h.mu.Lock()
			leads := len(h.running) > 0 || h.terms > before
			h.mu.Unlock()
			if leads {
				break
			}
			if time.Now().After(deadline) {
				t.Error("nobody leads though all is well")
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
		wg.Wait()
		terms = h.terms
		for _, r := range rigs {
			r.link.Close()
		}
	})
	return terms
}

// campaign holds the lock again and again, for a while each time.
func (r *rig) campaign(ctx context.Context, h *history, rnd *rand.Rand) {
	var hint uint64
	for ctx.Err() == nil {
		req := request("c")
		req.FenceHint = hint
		term, err := r.Acquire(ctx, req)
		if err != nil {
			continue
		}
		hint = term.Grant().Fence
		h.begin(r, term)
		work := time.NewTimer(time.Duration(rnd.Int64N(int64(20 * time.Second))))
		for done := false; !done; {
			select {
			case <-term.Renewed():
				h.check()
			case <-term.Ended():
				done = true
			case <-work.C:
				done = true
			case <-ctx.Done():
				done = true
			}
		}
		if rnd.IntN(3) > 0 {
			h.end(term) // belief ends before the release is sent
			_, _ = term.Release(ctx)
		} else {
			term.Stop(nil) // as a crash does: the lease runs out
			h.end(term)
		}
	}
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
