package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

// resignTimeout is how long an election may take to hear of a resignation.
const resignTimeout = 5 * time.Second

type resignBody struct {
	Done    bool    `json:"done"`
	HoldOff *string `json:"hold_off"`
	Fence   *uint64 `json:"fence"`
}

func (b *resignBody) resignation() (elector.Resignation, error) {
	r := elector.Resignation{Done: b.Done}
	if b.Fence != nil {
		if r.Fence = *b.Fence; r.Fence == 0 {
			return r, errors.New("fence must be that of a term; 0 never is")
		}
	}
	if b.HoldOff != nil {
		var err error
		if r.HoldOff, err = time.ParseDuration(*b.HoldOff); err != nil || r.HoldOff <= 0 {
			return r, errors.New(`hold_off must be a duration above 0, such as "30s"`)
		}
	}
	return r, nil
}

// resign ends the term. When it answers 202 this pod no longer says that it leads.
func (s *Server) resign(w http.ResponseWriter, r *http.Request) {
	e, _ := s.pick(w, r)
	if e == nil {
		return
	}
	body := decode[resignBody](w, r)
	if body == nil {
		return
	}
	resignation, err := body.resignation()
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid", err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), resignTimeout)
	defer cancel()
	switch err := e.Resign(ctx, resignation); {
	case err == nil:
		v := e.View()
		sendView(w, http.StatusAccepted, &v)
	case errors.Is(err, elector.ErrNotLeading):
		fail(w, http.StatusConflict, "not_leading", "this pod does not lead, or not in the term of that fence")
	default:
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusServiceUnavailable, "busy", "the election could not take that in now; nothing has changed")
	}
}

// drain says to every election that the pod is about to end: whoever leads goes on, and
// nobody here campaigns any more. There is no way back.
func (s *Server) drain(w http.ResponseWriter, _ *http.Request) {
	for _, e := range s.cfg.Elections {
		e.Drain()
	}
	w.Header()["Cache-Control"] = noStore
	w.WriteHeader(http.StatusAccepted)
}

// heartbeat takes in a sign of life of the app. What the body says is of no interest.
func (s *Server) heartbeat(w http.ResponseWriter, _ *http.Request) {
	if s.cfg.Heartbeat == nil {
		fail(w, http.StatusConflict, "not_required", "no heartbeat is asked for; start the sidecar with --require-heartbeat")
		return
	}
	s.cfg.Heartbeat()
	w.Header()["Cache-Control"] = noStore
	w.WriteHeader(http.StatusNoContent)
}
