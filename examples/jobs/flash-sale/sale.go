package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-dev/soloist/examples/jobs/clients/go/soloist"
)

// A sale sells a stock to buyers who all come at once.
type sale struct {
	lock     string            // its name
	sidecars []*soloist.Client // buyers are spread over them; none: nobody asks for the lock
	stock    *stock
	buyers   int
	each     int // how many a buyer wants; 0: as many as there are

	misses atomic.Int64 // how often a lock was held and nothing sold, mostly because nothing was left
}

// run returns when all buyers have left, and how long that took. It fails with the first
// that could not be served.
func (s *sale) run(ctx context.Context) (time.Duration, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range s.buyers {
		wg.Go(func() {
			if err := s.buyer(ctx, i); err != nil {
				stop(fmt.Errorf("buyer %d: %w", i, err))
			}
		})
	}
	wg.Wait()
	return time.Since(begin), context.Cause(ctx)
}

// buyer buys until it has what it wants, or all is sold.
func (s *sale) buyer(ctx context.Context, i int) error {
	var after *int // the segment that was found empty last
	for bought := 0; (s.each == 0 || bought < s.each) && !s.stock.empty(); {
		ok, err := s.buy(ctx, i, &after)
		if err != nil {
			return err
		}
		if ok {
			bought++
		}
	}
	return nil
}

// buy tries to buy one item, of a segment behind that in after, and puts it there if it
// is empty, too.
func (s *sale) buy(ctx context.Context, i int, after **int) (ok bool, err error) {
	if len(s.sidecars) == 0 {
		return s.stock.sell(ctx, 0, 0), ctx.Err()
	}
	c := s.sidecars[i%len(s.sidecars)]
	ask := soloist.Ask{"wait": "10s"}
	if n := len(s.stock.left); n > 1 {
		ask["slots"] = n
		if *after != nil {
			ask["after"] = **after
		}
	}
	l, err := c.Acquire(ctx, s.lock, ask)
	switch {
	case soloist.Refused(err, "held"): // the wait was too short: stand in line again
		return false, ctx.Err()
	case err != nil:
		return false, err
	}
	held, cancel := context.WithDeadline(ctx, l.Until)
	defer cancel()
	ok = s.stock.sell(held, l.Slot, l.Fence)
	if !ok {
		s.misses.Add(1)
		*after = &l.Slot
	}
	// What was written stands, even if the lock has run out since: had another read before
	// the write, the fence would have refused it. A store without fences undoes it here.
	if err := c.Release(ctx, l, false); err != nil && !soloist.Refused(err, "lost") {
		return false, err
	}
	return ok, nil
}
