package metrics

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// Two candidates hand the lock to each other, clocks jump and the store forgets while they
// are scraped. Each scrape is of one mind: one state, and leader only where the state says so.
func TestScrapesDuringTransitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := leasetest.NewMemory(leasetest.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		var leading [2]int
		for i, name := range []string{"pod-a", "pod-b"} {
			clock := leasetest.NewClock(1)
			r := bare()
			e, err := elector.New(elector.Config{
				Lock: "jobs", Identity: lease.Identity{Name: name}, Timing: lease.DefaultTiming, Clock: clock.Now,
				Store: r.Store(memory.NewProcess(name)),
			})
			if err != nil {
				t.Fatal(err)
			}
			r.Elections(clock.Now, e)
			all.Go(func() { e.Run(ctx) })
			all.Go(func() { // trouble
				for n := 0; ctx.Err() == nil; n++ {
					time.Sleep(1700 * time.Millisecond)
					switch n % 4 {
					case 0:
						_ = e.Resign(ctx, elector.Resignation{Done: true}) // if it leads
					case 1:
						clock.StepWall(time.Second)
					case 2:
						if i == 0 {
							memory.FlushAll()
						}
					}
				}
			})
			for range 2 {
				all.Go(func() {
					for ctx.Err() == nil {
						time.Sleep(397 * time.Millisecond)
						got := scrape(t, r)
						leader := strings.Contains(got, `soloist_leader{lock="jobs"} 1`)
						if leader != strings.Contains(got, `soloist_state{lock="jobs",state="leader"} 1`) ||
							leader != strings.Contains(got, "soloist_valid_seconds{") {
							t.Errorf("%s is of two minds:\n%s", name, got)
						}
						if n := strings.Count(got, `state="`) - strings.Count(got, `state="leader"} 0`) -
							strings.Count(got, `state="standby"} 0`) - strings.Count(got, `state="unknown"} 0`); n != 1 {
							t.Errorf("%s is in %d states:\n%s", name, n, got)
						}
					}
				})
			}
			all.Go(func() {
				for ctx.Err() == nil {
					time.Sleep(500 * time.Millisecond)
					if e.View().Leading {
						leading[i]++
					}
				}
			})
		}
		time.Sleep(30 * time.Second)
		cancel()
		all.Wait()
		if leading[0] == 0 || leading[1] == 0 {
			t.Errorf("led %v times: not much of a test", leading)
		}
	})
}
