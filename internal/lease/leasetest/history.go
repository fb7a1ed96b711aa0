package leasetest

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// A History is what the candidates of a simulation believed, judged as it happens: no two
// at once, and fences that rise. It is safe for concurrent use.
type History struct {
	t    testing.TB
	once bool // at most one believes at a time: the server keeps its data

	mu      sync.Mutex
	highest uint64
	terms   int
	running map[*lease.Term]lease.Clock
}

// NewHistory returns an empty History that reports to t. once says that at most one may
// believe at a time, which no lock can promise on a server that loses data.
func NewHistory(t testing.TB, once bool) *History {
	return &History{t: t, once: once, running: map[*lease.Term]lease.Clock{}}
}

// Check judges this moment.
func (h *History) Check() {
	h.mu.Lock()
	defer h.mu.Unlock()
	var believing []*lease.Term
	for term, clock := range h.running {
		if belief, _ := term.Validity().At(clock()); belief == lease.Valid {
			believing = append(believing, term)
		}
	}
	if h.once && len(believing) > 1 {
		h.t.Errorf("%v: %d leaders: %v", time.Now(), len(believing), believing)
	}
}

// Terms returns how many terms have begun, and whether one has not ended.
func (h *History) Terms() (n int, leads bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.terms, len(h.running) > 0
}

// AwaitLeader returns once somebody leads, or has led since n terms had begun; it reports
// an error if that takes longer than d.
func (h *History) AwaitLeader(n int, d time.Duration) {
	h.t.Helper()
	for deadline := time.Now().Add(d); ; time.Sleep(10 * time.Millisecond) {
		if terms, leads := h.Terms(); leads || terms > n {
			return
		}
		if time.Now().After(deadline) {
			h.t.Error("nobody leads though all is well")
			return
		}
	}
}

// Campaign has c hold lock again and again until ctx ends, for up to 20 s each time, and
// give it back, or crash, as rnd says.
func (h *History) Campaign(ctx context.Context, c *lease.Candidate, lock string, rnd *rand.Rand) {
	r := lease.Request{Claim: lease.Claim{Lock: lock}, Holder: lease.Identity{Name: "c"}}
	for ctx.Err() == nil {
		term, err := c.Acquire(ctx, r)
		if err != nil {
			continue
		}
		r.FenceHint = term.Grant().Fence
		h.begin(term, c.Clock)
		h.serve(ctx, term, time.Duration(rnd.Int64N(int64(20*time.Second))))
		if rnd.IntN(3) > 0 {
			h.end(term) // belief ends before the release is sent
			_, _ = term.Release(ctx)
		} else {
			term.Stop(nil) // as a crash does: the lease runs out
			h.end(term)
		}
	}
}

// serve returns when term has ended, or d has passed.
func (h *History) serve(ctx context.Context, term *lease.Term, d time.Duration) {
	work := time.NewTimer(d)
	defer work.Stop()
	for {
		select {
		case <-term.Renewed():
			h.Check()
		case <-term.Ended():
			return
		case <-work.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (h *History) begin(term *lease.Term, clock lease.Clock) {
	h.mu.Lock()
	fence := term.Grant().Fence
	if fence <= h.highest {
		h.t.Errorf("fence %d after %d", fence, h.highest)
	}
	h.highest = max(h.highest, fence)
	h.terms++
	h.running[term] = clock
	h.mu.Unlock()
	h.Check()
}

func (h *History) end(term *lease.Term) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.running, term)
}
