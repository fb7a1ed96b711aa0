package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

// maxWait bounds a long poll, whatever was asked.
const maxWait = 5 * time.Minute

// leader answers 200 if this pod leads now and 503 if not, with the same body.
func (s *Server) leader(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery == "" && len(s.cfg.Elections) == 1 {
		answer(w, s.cfg.Elections[0].View())
		return
	}
	e, query := s.pick(w, r)
	if e == nil {
		return
	}
	poll, err := parsePoll(query)
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid", err.Error())
		return
	}
	v := e.View()
	if poll.wait > 0 && poll.version == v.Version {
		if !s.enter(w) {
			return
		}
		v = s.await(w, r, e, poll)
		s.leave()
		if r.Context().Err() != nil {
			return // nobody is left to answer
		}
	}
	answer(w, v)
}

// answer sends v, judged a moment ago.
func answer(w http.ResponseWriter, v elector.View) {
	status := http.StatusServiceUnavailable
	if v.Leading {
		status = http.StatusOK
	}
	sendView(w, status, &v)
}

func sendView(w http.ResponseWriter, status int, v *elector.View) {
	buf := buffers.Get().(*buffer)
	buf.b = append(appendView(buf.b, v), '\n')
	respond(w, status, buf.b)
	buf.b = buf.b[:0]
	buffers.Put(buf)
}

// pick returns the election that r means, and r's query. If there is none it answers, and
// returns nil.
func (s *Server) pick(w http.ResponseWriter, r *http.Request) (Election, url.Values) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid", "the query can't be read: "+err.Error())
		return nil, nil
	}
	all := s.cfg.Elections
	if !query.Has("lock") {
		switch len(all) {
		case 0:
			fail(w, http.StatusNotFound, "unknown_lock", "this sidecar runs no election")
			return nil, nil
		case 1:
			return all[0], query
		default:
			fail(w, http.StatusBadRequest, "ambiguous", "this sidecar runs several elections: add ?lock=NAME")
			return nil, nil
		}
	}
	lock := query.Get("lock")
	for _, e := range all {
		if e.View().Lock == lock {
			return e, query
		}
	}
	fail(w, http.StatusNotFound, "unknown_lock", fmt.Sprintf("this sidecar runs no election for %q", lock))
	return nil, nil
}

// A poll asks to be answered when the version is another, or wait is over.
type poll struct {
	wait    time.Duration
	version int64 // -1: none is known, so any is another
}

func parsePoll(query url.Values) (poll, error) {
	p := poll{version: -1}
	if text := query.Get("version"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return p, errors.New("version must be that of an earlier answer")
		}
		p.version = n
	}
	if text := query.Get("wait"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return p, errors.New("wait must be a duration, such as 30s")
		}
		p.wait = min(d, maxWait)
	}
	return p, nil
}

// await waits as p asks, and returns what e says then.
//
// While leading it takes a third of the validity at most. A client counts from before
// its question, so what it knows has to last for two waits: with half of the validity,
// the second answer would come as the first runs out.
func (s *Server) await(w http.ResponseWriter, r *http.Request, e Election, p poll) elector.View {
	sub := e.Subscribe()
	defer sub.Close()
	v := e.View()
	wait := p.wait
	if v.Leading {
		wait = min(wait, max(v.ValidFor/3, time.Millisecond)) // not ever faster towards the end
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + writeTimeout))
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	for v.Version == p.version {
		select {
		case <-sub.C:
			v = e.View()
			continue
		case <-ctx.Done():
		case <-s.closing:
		}
		return e.View()
	}
	return v
}
