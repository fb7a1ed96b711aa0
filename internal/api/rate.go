package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/internal/joblock"
	"github.com/soloist-dev/soloist/internal/lease"
)

// A Limiter takes from what a rate allows.
type Limiter interface {
	Take(ctx context.Context, name string, r lease.Rate, cost int) (lease.Taken, error)
}

// rateTimeout is how long the store may take over a rate.
const rateTimeout = 2 * time.Second

type rateBody struct {
	Rate string `json:"rate"`
	Cost *int   `json:"cost"`
}

// rate takes from what a rate allows, at once or not at all.
func (s *Server) rate(w http.ResponseWriter, r *http.Request) {
	name := lockName(w, r)
	if name == "" {
		return
	}
	body := decode[rateBody](w, r)
	if body == nil {
		return
	}
	rate, err := parseRate(body.Rate)
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid", err.Error())
		return
	}
	cost := 1
	if body.Cost != nil {
		cost = *body.Cost
	}
	if s.cfg.Limiter == nil {
		fail(w, http.StatusBadRequest, "invalid", "this store keeps no rates")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), rateTimeout)
	defer cancel()
	taken, err := s.cfg.Limiter.Take(ctx, name, rate, cost)
	if err != nil {
		refuse(w, err, notTaken)
		return
	}
	b := strconv.AppendInt([]byte(`,"remaining":`), int64(taken.Remaining), 10)
	if taken.OK {
		respond(w, http.StatusOK, append(append([]byte(`{"allowed":true`), b...), "}\n"...))
		return
	}
	b = append(b, `,"retry_after_ms":`...)
	b = strconv.AppendInt(b, roundUp(taken.RetryAfter), 10)
	w.Header().Set("Retry-After", strconv.FormatInt(seconds(taken.RetryAfter), 10))
	failWith(w, http.StatusTooManyRequests, "rate", "the rate allows no more now", b)
}

var errRate = errors.New(`rate must be how many in what time, such as "5/1m": from 1 in 30 days to a million in a second`)

// parseRate reads "5/1m".
func parseRate(s string) (lease.Rate, error) {
	burst, per, _ := strings.Cut(s, "/")
	n, err := strconv.Atoi(burst)
	d, err2 := time.ParseDuration(per)
	if err != nil || err2 != nil || n < 1 || n > 1_000_000 || d <= 0 || d > joblock.MaxTime || d/time.Duration(n) < time.Microsecond {
		return lease.Rate{}, errRate
	}
	return lease.Rate{Burst: n, Per: d}, nil
}
