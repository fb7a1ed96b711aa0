package kubelease

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

var (
	seeds = flag.Int("sim.seeds", 5, "how many simulations to run")
	seed  = flag.Uint64("sim.seed", 0, "run this simulation alone")
)

var short = lease.Timing{LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 400 * time.Millisecond}

// trouble changes what is wrong.
func trouble(rnd *rand.Rand, s *server, clients []*client, keep bool) {
	c := clients[rnd.IntN(len(clients))]
	switch rnd.IntN(10) {
	case 0, 1:
		c.w.setDown(true)
	case 2, 3:
		c.w.setDown(false)
	case 4, 5, 6:
		c.w.set(leasetest.Chaos{
			Seed: rnd.Uint64(), Lost: .1, Refused: .1, Cut: .1, Mute: .1,
			Slow: .4, MaxDelay: time.Duration(rnd.Int64N(int64(4 * time.Second))),
			Twice: .1, MaxAgain: 8 * time.Second,
		}.Fate)
	case 7:
		s.endWatches()
	case 8:
		s.touch(func(obj *unstructured.Unstructured) { obj.SetLabels(map[string]string{"touched": time.Now().String()}) })
	case 9:
		if !keep {
			s.touch(nil)
		}
	}
}

// touch changes the object, if there is one.
func (s *server) touch(change func(*unstructured.Unstructured)) {
	s.mu.Lock()
	exists := s.objects[name] != nil
	s.mu.Unlock()
	if exists { // it is deleted by nobody else
		s.change(name, change)
	}
}

// TestSimulation runs candidates through minutes of faults, and judges what they believed:
// no two at once, fences rising, and a leader soon after the faults end.
func TestSimulation(t *testing.T) {
	if *seed != 0 {
		simulate(t, *seed)
		return
	}
	var terms int
	for n := range uint64(*seeds) {
		t.Run(fmt.Sprint("seed=", n+1), func(t *testing.T) { terms += simulate(t, n+1) })
	}
	if terms < 5**seeds {
		t.Errorf("%d terms in %d simulations: nothing happened", terms, *seeds)
	}
}

func simulate(t *testing.T, seed uint64) (terms int) {
	bubble(t, func(t *testing.T, s *server) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		keep := rnd.IntN(4) > 0 // no object is deleted
		h := leasetest.NewHistory(t, keep)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		clients := make([]*client, 2+rnd.IntN(2))
		for i := range clients {
			c := newClient(t, s)
			c.opt.Lease = short.LeaseDuration
			c.w.trip = time.Duration(1+rnd.IntN(10)) * time.Millisecond
			clients[i] = c
			// Within the promise: every rate within 1 % of every other, and of the Store's.
			clock := leasetest.NewClock(0.995 + rnd.Float64()/100)
			candidate := &lease.Candidate{Store: c.Store, Timing: short, Clock: clock.Now}
			wg.Go(func() { h.Campaign(ctx, candidate, name, rand.New(rand.NewPCG(seed, uint64(i)+2))) })
		}
		for range 30 {
			trouble(rnd, s, clients, keep)
			for range 8 {
				time.Sleep(time.Duration(rnd.Int64N(int64(500 * time.Millisecond))))
				h.Check()
			}
		}
		for _, c := range clients {
			c.w.set(func(leasetest.Call) leasetest.Fate { return leasetest.Fate{} })
			c.w.setDown(false)
		}
		// Whoever was cut off finds its way back; what is late arrives; a lease runs out.
		time.Sleep(3*short.LeaseDuration + 8*time.Second)
		before, _ := h.Terms()
		h.AwaitLeader(before, 2*short.LeaseDuration)
		cancel()
		wg.Wait()
		terms, _ = h.Terms()
	})
	return terms
}

// A storm: all write to one object, and lose most of the races. Nobody gets it twice at once.
func TestAStormOfConflicts(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		const crowd, rounds = 50, 1
		var (
			mu      sync.Mutex
			holding int
			fences  []uint64
			wg      sync.WaitGroup
			clients []*client
		)
		rnd := rand.New(rand.NewPCG(1, 1))
		for i := range crowd {
			c := newClient(t, s)
			c.w.trip = time.Duration(500+rnd.IntN(1000)) * time.Microsecond
			clients = append(clients, c)
			again := rand.New(rand.NewPCG(1, uint64(i)))
			wg.Go(func() {
				for range rounds {
					r := ask("c")
					g, err := c.Acquire(t.Context(), r)
					for ; errors.Is(err, lease.ErrHeld); g, err = c.Acquire(t.Context(), r) {
						time.Sleep(time.Duration(again.IntN(10)) * time.Millisecond)
					}
					if err != nil {
						t.Errorf("Acquire: %v", err)
						return
					}
					mu.Lock()
					if holding++; holding != 1 {
						t.Errorf("%d hold it", holding)
					}
					fences = append(fences, g.Fence)
					mu.Unlock()
					if _, err := c.Extend(t.Context(), g, lease.Extension{TTL: time.Minute}); err != nil {
						t.Errorf("Extend: %v", err)
					}
					mu.Lock()
					holding--
					mu.Unlock()
					c.release(r, true)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if len(fences) != crowd*rounds || !slices.IsSorted(fences) || len(slices.Compact(fences)) != crowd*rounds {
			t.Errorf("%d grants with fences %v", len(fences), fences)
		}
		var puts, gets int
		for _, c := range clients {
			puts, gets = puts+c.w.counts()["PUT"], gets+c.w.counts()["GET"]
		}
		t.Logf("%d terms with %d PUTs and %d GETs", len(fences), puts, gets)
		if puts < 4*crowd*rounds {
			t.Error("that was no storm")
		}
	})
}
