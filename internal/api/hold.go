package api

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/internal/joblock"
	"github.com/soloist-dev/soloist/internal/lease"
)

// hold acquires a lock and streams what becomes of it. The connection is the lock: when
// the client closes it, it is released. So unless the client says otherwise nothing else
// limits it.
func (s *Server) hold(w http.ResponseWriter, r *http.Request) {
	ask := asked(w, r)
	if ask == nil {
		return
	}
	if ask.AtMost == 0 {
		ask.AtMost = -1
	}
	got, err := s.cfg.Locks.Acquire(r.Context(), *ask)
	if err != nil {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
		refuse(w, err, notAcquired)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header()["Cache-Control"] = noStore
	defer func() { // says what it finds to nobody: the client has gone
		_, _ = s.cfg.Locks.Release(context.WithoutCancel(r.Context()), got.Lock, got.Token, false)
	}()
	line := append(append([]byte(`{"event":"acquired",`), appendLease(nil, &got, true)[1:]...), '\n')
	told := got.Valid
	for {
		if err := push(w, line, minPatience); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) { // it is there, and believes what it was told
				s.log.Warn("dropped a hold stream: its client does not read", "lock", got.Lock)
				select {
				case <-time.After(told):
				case <-got.Ended():
				}
			}
			return
		}
		changed := got.Changed()
		select {
		case <-changed:
		case <-got.Ended():
		case <-r.Context().Done():
			return
		}
		if err := got.Err(); err != nil {
			line = append(append(append(line[:0], `{"event":"lost","reason":`...), lossReason(err)...), "}\n"...)
			_ = push(w, line, minPatience) // the last word, if anybody listens
			return
		}
		told = got.Left()
		line = append(line[:0], `{"event":"ping","valid_for_ms":`...)
		line = strconv.AppendInt(line, told.Milliseconds(), 10)
		line = append(line, "}\n"...)
	}
}

func lossReason(err error) string {
	switch {
	case errors.Is(err, lease.ErrLost):
		return `"lost"`
	case errors.Is(err, lease.ErrLimit):
		return `"at_most_for"`
	case errors.Is(err, lease.ErrExpired):
		return `"expired"`
	}
	return `"closing"`
}

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
