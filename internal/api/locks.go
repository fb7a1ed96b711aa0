package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/internal/joblock"
	"github.com/soloist-dev/soloist/internal/lease"
)

// JobLocks are locks that the app asks for. They are *[joblock.Locks].
type JobLocks interface {
	Acquire(ctx context.Context, a joblock.Ask) (joblock.Lease, error)
	Renew(ctx context.Context, lock string, token joblock.Token) (joblock.Lease, error)
	Release(ctx context.Context, lock string, token joblock.Token, done bool) (joblock.Released, error)
	List() []joblock.Lease
}

var _ JobLocks = (*joblock.Locks)(nil)

// tokenHeader may carry the token in place of the body.
const tokenHeader = "Soloist-Token"

// What may follow the name of a lock in a path.
const (
	holdAction    = "/hold"
	releaseAction = "/release"
)

// postLock is POST /locks/{name}, and with what may follow.
func (s *Server) postLock(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	switch {
	case strings.HasSuffix(path, holdAction):
		s.hold(w, r)
	case strings.HasSuffix(path, releaseAction):
		s.release(w, r)
	default:
		s.acquire(w, r)
	}
}

// lockName returns the name in a path: what follows the first segment, without what may
// follow the name. If it is none, lockName answers, and returns "".
func lockName(w http.ResponseWriter, r *http.Request) string {
	_, name, _ := strings.Cut(r.URL.EscapedPath()[1:], "/")
	if r.Method == http.MethodPost {
		name = strings.TrimSuffix(strings.TrimSuffix(name, holdAction), releaseAction)
	}
	name, err := url.PathUnescape(name)
	if err == nil {
		err = lease.CheckName(name)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid", "the name of a lock "+err.Error())
		return ""
	}
	return name
}

type acquireBody struct {
	Owner   string   `json:"owner"`
	Reenter bool     `json:"reenter"`
	Request string   `json:"request"`
	Lease   duration `json:"lease"`
	Wait    duration `json:"wait"`
	Slots   int      `json:"slots"`
	After   *int     `json:"after"`
	Once    string   `json:"once"`
	Keep    duration `json:"keep"`
	AtLeast duration `json:"at_least_for"`
	AtMost  duration `json:"at_most_for"`
}

func (b *acquireBody) ask(lock string) joblock.Ask {
	return joblock.Ask{
		Lock: lock, Owner: b.Owner, Reenter: b.Reenter, Request: b.Request,
		Lease: time.Duration(b.Lease), Wait: time.Duration(b.Wait), Slots: b.Slots, After: b.After,
		Once: b.Once, Keep: time.Duration(b.Keep), AtLeast: time.Duration(b.AtLeast), AtMost: time.Duration(b.AtMost),
	}
}

// asked reads what a request asks for. If that can't be right it answers, and returns nil.
func asked(w http.ResponseWriter, r *http.Request) *joblock.Ask {
	name := lockName(w, r)
	if name == "" {
		return nil
	}
	body := decode[acquireBody](w, r)
	if body == nil {
		return nil
	}
	ask := body.ask(name)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // the wait is over when it is over
	return &ask
}

func (s *Server) acquire(w http.ResponseWriter, r *http.Request) {
	ask := asked(w, r)
	if ask == nil {
		return
	}
	got, err := s.cfg.Locks.Acquire(r.Context(), *ask)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	if err != nil {
		refuse(w, err, notAcquired)
		return
	}
	respond(w, http.StatusOK, append(appendLease(nil, &got, true), '\n'))
}

type tokenBody struct {
	Token string `json:"token"`
	Done  bool   `json:"done"`
}

// named reads a lock's name and token. If they can't be right it answers, and returns "".
func named(w http.ResponseWriter, r *http.Request) (name string, token joblock.Token, done bool) {
	if name = lockName(w, r); name == "" {
		return "", token, false
	}
	body := decode[tokenBody](w, r)
	if body == nil {
		return "", token, false
	}
	text := body.Token
	if text == "" {
		text = r.Header.Get(tokenHeader)
	}
	token, err := joblock.ParseToken(text)
	if err != nil {
		fail(w, http.StatusBadRequest, "invalid", "token, or the header "+tokenHeader+", must be what the lock was acquired with")
		return "", token, false
	}
	return name, token, body.Done
}

func (s *Server) renew(w http.ResponseWriter, r *http.Request) {
	name, token, done := named(w, r)
	if name == "" {
		return
	}
	if done {
		fail(w, http.StatusBadRequest, "invalid", "done goes with a release")
		return
	}
	patience(w)
	got, err := s.cfg.Locks.Renew(r.Context(), name, token)
	if err != nil {
		refuse(w, err, notRenewed)
		return
	}
	respond(w, http.StatusOK, append(appendLease(nil, &got, true), '\n'))
}

func (s *Server) release(w http.ResponseWriter, r *http.Request) {
	name, token, done := named(w, r)
	if name == "" {
		return
	}
	patience(w)
	got, err := s.cfg.Locks.Release(r.Context(), name, token, done)
	if err != nil {
		refuse(w, err, notReleased)
		return
	}
	b := append([]byte(nil), `{"held":`...)
	b = strconv.AppendBool(b, got.Held)
	if got.Unknown {
		b = append(b, `,"released":"unknown"`...)
	} else {
		b = append(b, `,"released":true`...)
	}
	b = append(b, `,"count":`...)
	b = strconv.AppendInt(b, int64(got.Count), 10)
	respond(w, http.StatusOK, append(b, "}\n"...))
}

// patience leaves time for a store that is slow: joblock bounds it by the lease.
func patience(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(joblock.MaxLease))
}
