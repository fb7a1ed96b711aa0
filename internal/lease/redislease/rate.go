package redislease

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// Take takes cost from what a rate allows under a name: at once, or not at all. It is the
// generic cell rate algorithm (ITU-T I.371) on the server's clock. Verdict:
// [lease.ErrInvalid] for what can never be taken, such as a cost above the burst. Asked
// again after no answer it may take twice. It blocks and fails as the methods of a
// [lease.Store] do.
func (s *Store) Take(ctx context.Context, name string, r lease.Rate, cost int) (lease.Taken, error) {
	switch {
	case name == "" || strings.ContainsAny(name, "{} \t\r\n"):
		return lease.Taken{}, fmt.Errorf("%w: name %q", lease.ErrInvalid, name)
	case r.Burst < 1 || r.Per < time.Microsecond:
		return lease.Taken{}, fmt.Errorf("%w: a rate of %d in %v", lease.ErrInvalid, r.Burst, r.Per)
	case cost < 1 || cost > r.Burst:
		return lease.Taken{}, fmt.Errorf("%w: a cost of %d under a burst of %d", lease.ErrInvalid, cost, r.Burst)
	}
	if err := s.place(ctx); err != nil {
		return lease.Taken{}, failed("rate", err)
	}
	defer s.leave()
	// Rounded up: what is asked for is never exceeded.
	each := (r.Per.Microseconds() + int64(r.Burst) - 1) / int64(r.Burst)
	v, err := rateScript.Run(ctx, s.client, []string{s.key(name, "rate")}, each, r.Burst, cost).Slice()
	if err != nil {
		return lease.Taken{}, failed("rate", err)
	}
	n, err := reply(v).nums(0, 3)
	if err != nil {
		return lease.Taken{}, failed("rate", err)
	}
	return lease.Taken{OK: n[0] == 1, Remaining: int(n[1]), RetryAfter: time.Duration(n[2]) * time.Microsecond}, nil
}
