package api

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

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
			_ = push(w, append(line[:0], lastWord(err)...), minPatience) // if anybody listens
			return
		}
		told = got.Left()
		line = append(line[:0], `{"event":"ping","valid_for_ms":`...)
		line = strconv.AppendInt(line, told.Milliseconds(), 10)
		line = append(line, "}\n"...)
	}
}

// lastWord says how a lease has ended.
func lastWord(err error) string {
	reason := "closing"
	switch {
	case errors.Is(err, lease.ErrStopped): // who has the token did it
		return `{"event":"released"}` + "\n"
	case errors.Is(err, lease.ErrLost):
		reason = "lost"
	case errors.Is(err, lease.ErrLimit):
		reason = "at_most_for"
	case errors.Is(err, lease.ErrExpired):
		reason = "expired"
	}
	return `{"event":"lost","reason":"` + reason + `"}` + "\n"
}
