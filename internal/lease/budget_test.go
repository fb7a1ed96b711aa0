package lease_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/internal/lease/leasetest"
)

// B24: waiting is cheap, and the loss of all data or of all subscriptions makes no storm.
func TestB24WaitersAskSeldom(t *testing.T) {
	for _, waiters := range []int{10, 100, 1000} {
		bubble(t, func(t *testing.T, server *leasetest.Memory) {
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			defer wg.Wait()
			defer cancel()
			holder := newRig(t, server, 1)
			holder.acquire(time.Second)
			rigs := make([]*rig, waiters)
			for i := range rigs {
				rigs[i] = newRig(t, server, 1)
				wg.Go(func() {
					if term, err := rigs[i].Acquire(ctx, request("w")); err == nil {
						<-ctx.Done()
						term.Stop(nil)
					}
				})
			}
			asked := func(d time.Duration) float64 {
				before := server.Counts()["acquire"]
				time.Sleep(d)
				synctest.Wait()
				return float64(server.Counts()["acquire"]-before) / d.Seconds()
			}
			asked(time.Duration(waiters) * time.Second) // until their first looks are spread
			const perSecond = 4                         // 2 for the line and as much again for the heads
			if n := asked(10 * time.Minute); n > perSecond {
				t.Errorf("%d waiters ask %.1f times a second", waiters, n)
			}
			server.FlushAll()
			if n := asked(time.Minute); n > perSecond+float64(waiters)/60 {
				t.Errorf("%d waiters ask %.1f times a second after FLUSHALL", waiters, n)
			}
			for _, r := range rigs {
				r.link.Resubscribe()
			}
			// Each looks once, and perhaps once more when it has lost its place.
			if n := asked(time.Minute); n > perSecond+2*float64(waiters)/60 {
				t.Errorf("%d waiters ask %.1f times a second after all subscribed anew", waiters, n)
			}
		})
	}
}
