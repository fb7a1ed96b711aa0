package elector_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// TestSimulation runs elections through minutes of trouble on clocks that drift and jump,
// with apps that act on what they were told for as long as it was valid: at most one acts
// at a time, the fences and each version rise, and at the end somebody leads.
func TestSimulation(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { simulate(t, seed) })
	}
}

// app is a client that polls: it acts until the validity that it was last told is over,
// by its own machine's clock, unless it is told otherwise before.
type app struct {
	*pod
	drain  time.Duration
	told   elector.View
	at     lease.Instant
	unwell bool
}

func (a *app) poll(t *testing.T) {
	v := a.View()
	if v.Version < a.told.Version {
		t.Errorf("%s: version %d after %d", v.Name, v.Version, a.told.Version)
	}
	if v.Leading && v.Fence < a.told.Fence {
		t.Errorf("%s: fence %d after %d", v.Name, v.Fence, a.told.Fence)
	}
	a.told, a.at = v, a.clock.Now()
}

func (a *app) acts() bool {
	return a.told.Leading && a.clock.Now().Since(a.at) < a.told.ValidFor
}

// finished ends the app's work.
func (a *app) finished() {
	a.told = elector.View{State: elector.State{Version: a.told.Version, Fence: a.told.Fence}}
}

// gone reports whether the sidecar has ended; the app polls no more, but acts on.
func (a *app) gone() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

func simulate(t *testing.T, seed uint64) {
	bubble(t, func(t *testing.T, server *leasetest.Memory) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var started int
		next := func() *app {
			drain := time.Duration(started%3) * time.Second
			a := &app{drain: drain, pod: start(t, server, fmt.Sprint("pod-", started), withDrain(drain))}
			a.clock.SetRate(0.995 + rnd.Float64()/100)
			started++
			return a
		}
		apps, before := []*app{next(), next(), next(), next()}, []*app{}
		var fence uint64
		for range 3000 {
			time.Sleep(time.Duration(rnd.Int64N(int64(100 * time.Millisecond))))
			synctest.Wait()
			var acting []string
			for i, a := range apps {
				if a.gone() {
					before, apps[i] = append(before, a), next()
				} else if rnd.IntN(3) > 0 { // some polls come late
					a.poll(t)
				}
			}
			for _, a := range slices.Concat(before, apps) {
				if a.acts() {
					acting = append(acting, fmt.Sprintf("%s for term %d", a.told.Name, a.told.Fence))
					if a.told.Fence < fence {
						t.Errorf("%s acts for term %d after term %d", a.told.Name, a.told.Fence, fence)
					}
					fence = a.told.Fence
				}
			}
			if len(acting) > 1 {
				t.Fatalf("at once %q", acting)
			}
			if rnd.IntN(20) == 0 {
				apps[rnd.IntN(len(apps))].trouble(t, rnd)
			}
		}
		for _, a := range apps {
			a.link.SetFates(func(leasetest.Call) leasetest.Fate { return leasetest.Fate{} })
			a.link.SetNotices(func(int) leasetest.NoticeFate { return leasetest.NoticeFate{} })
			a.link.SetDown(false)
			a.gate.set("")
		}
		apps = append(apps, next()) // the others may all be on their way out
		// One that resigned holds off for a lease; what it was told before lasts as long.
		for from := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			leads := func(a *app) bool { return a.View().Leading }
			if slices.ContainsFunc(apps, leads) {
				return
			}
			if time.Since(from) > 3*timing.LeaseDuration+4*timing.RetryPeriod {
				t.Fatal("nobody leads")
			}
		}
	})
}

func (a *app) trouble(t *testing.T, rnd *rand.Rand) {
	switch rnd.IntN(10) {
	case 0:
		a.link.SetDown(true)
	case 1, 2:
		a.link.SetDown(false)
	case 3, 4:
		c := leasetest.Chaos{
			Seed: rnd.Uint64(), Lost: .1, Refused: .1, Cut: .1, Mute: .1, Slow: .4, MaxDelay: 3 * time.Second,
			Twice: .1, MaxAgain: 5 * time.Second, NoticeLost: .2, NoticeSlow: .2,
		}
		a.link.SetFates(c.Fate)
		a.link.SetNotices(c.Notice)
	case 5:
		a.clock.StepWall(time.Duration(rnd.Int64N(int64(time.Minute))) - 30*time.Second)
	case 6:
		a.unwell = !a.unwell
		if a.unwell {
			a.gate.set(elector.Unhealthy)
		} else {
			a.gate.set("")
		}
	case 7: // the app has finished what it did, and says so
		a.finished()
		_ = a.Resign(t.Context(), elector.Resignation{Done: true})
	case 8:
		_ = a.Resign(t.Context(), elector.Resignation{})
	case 9:
		if a.drain == 0 { // a stop means that the app has ended
			a.finished()
		}
		a.stop()
	}
}
