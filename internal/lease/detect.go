package lease

import (
	"context"
	"sync"
)

// A FailureDetector learns of deaths that the store does not see. It must never err: who
// is called dead loses a lease that has not run out.
type FailureDetector interface {
	// Dead blocks until the holder of h is proven dead, with all that acted on its lease,
	// and returns true; or false when ctx is done, or no proof can come. It returns soon
	// after ctx is done.
	Dead(ctx context.Context, h Held) bool
}

// detection is a candidate's question about the holder that it waits for, of which there
// is at most one at a time.
type detection struct {
	detector FailureDetector // nil: nobody is asked
	about    uint64          // the fence asked about
	dead     uint64          // the fence of who is proven dead
	proven   chan uint64
	stop     context.CancelFunc
	asking   sync.WaitGroup
}

// ask asks about the holder of h, if it can be named and nobody is ahead in line.
func (d *detection) ask(ctx context.Context, h Held) {
	if d.detector == nil || h.Term == 0 || h.Term == d.about || h.Rank > 0 {
		return
	}
	d.end()
	ctx, d.stop = context.WithCancel(ctx)
	d.about, d.proven = h.Term, make(chan uint64, 1)
	proven := d.proven
	d.asking.Go(func() { // end waits for it
		if d.detector.Dead(ctx, h) {
			proven <- h.Term
		}
	})
}

// end waits for the detector to return.
func (d *detection) end() {
	if d.stop != nil {
		d.stop()
		d.asking.Wait()
	}
}
