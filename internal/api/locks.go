package api

import (
	"context"
	"errors"
	"fmt"
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

// duration is text such as "30s".
type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%.40q is no duration such as \"30s\"", text)
	}
	*d = duration(v)
	return nil
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

// appendLease appends what a client is told of its lease.
func appendLease(b []byte, l *joblock.Lease, secret bool) []byte {
	b = append(b, `{"lock":`...)
	b = appendString(b, l.Lock)
	b = append(b, `,"slot":`...)
	b = strconv.AppendInt(b, int64(l.Slot), 10)
	if secret {
		b = append(b, `,"token":`...)
		b = appendString(b, l.Token.Reveal())
	}
	if l.Fence > 0 { // else it is known where the lock was acquired
		b = append(b, `,"fence":`...)
		b = strconv.AppendUint(b, l.Fence, 10)
	}
	b = append(b, `,"owner":`...)
	b = appendString(b, l.Owner)
	b = append(b, `,"count":`...)
	b = strconv.AppendInt(b, int64(l.Count), 10)
	if !secret {
		b = append(b, `,"since":"`...)
		b = l.Since.UTC().AppendFormat(b, time.RFC3339)
		b = append(b, '"')
	}
	b = append(b, `,"valid_for_ms":`...)
	b = strconv.AppendInt(b, l.Valid.Milliseconds(), 10)
	return append(b, '}')
}

// What it means that the store did not answer.
const (
	notAcquired = "nothing is held, but others may be kept out for up to a lease"
	notRenewed  = "it is held for as long as an earlier answer says"
	notReleased = "whether it was held to the end is not known, nor whether it is free"
	notTaken    = "nothing may be done; something may have been taken"
)

// refuse answers for what was not granted, released or renewed.
func refuse(w http.ResponseWriter, err error, unknown string) {
	var (
		done *joblock.DoneError
		held *lease.HeldError
		wait *lease.WaitError
	)
	switch {
	case errors.As(err, &done):
		failWith(w, http.StatusGone, "done", fmt.Sprintf("it was done by %s at %s", done.Run.By, done.Run.At.UTC().Format(time.RFC3339)),
			appendRun([]byte(`,"run":`), &done.Run))
	case errors.As(err, &held):
		b := append([]byte(nil), `,"holder":`...)
		b = appendString(b, held.Holder.Name)
		b = append(b, `,"rank":`...)
		b = strconv.AppendInt(b, int64(held.Rank), 10)
		b = append(b, `,"waiting":`...)
		b = strconv.AppendInt(b, int64(held.Waiting), 10)
		b = append(b, `,"retry_after_ms":`...)
		b = strconv.AppendInt(b, max(1, roundUp(held.LookAgain)), 10)
		failWith(w, http.StatusConflict, "held", "another holds it", b)
	case errors.Is(err, lease.ErrInvalid):
		fail(w, http.StatusBadRequest, "invalid", strings.TrimPrefix(err.Error(), lease.ErrInvalid.Error()+": "))
	case errors.Is(err, joblock.ErrElsewhere):
		fail(w, http.StatusBadRequest, "invalid", joblock.ErrElsewhere.Error())
	case errors.Is(err, lease.ErrKind):
		fail(w, http.StatusConflict, "kind", "this name is in use with slots, or without, the other way round")
	case errors.Is(err, lease.ErrLost):
		fail(w, http.StatusConflict, "lost", "it ended before: others may hold it, or have held it, so undo what was done under it")
	case errors.Is(err, joblock.ErrReleased):
		fail(w, http.StatusConflict, "released", "the lock of this request was released: a new request needs a new id")
	case errors.Is(err, joblock.ErrTooMany):
		fail(w, http.StatusTooManyRequests, "limit", "this sidecar keeps as many locks as it may (--max-locks)")
	case errors.Is(err, joblock.ErrClosing):
		fail(w, http.StatusServiceUnavailable, "closing", "this sidecar is about to end")
	case errors.As(err, &wait):
		w.Header().Set("Retry-After", strconv.FormatInt(seconds(wait.For), 10))
		fail(w, http.StatusServiceUnavailable, "unknown", err.Error())
	default:
		fail(w, http.StatusServiceUnavailable, "unknown", "the store did not answer: "+unknown+" ("+err.Error()+")")
	}
}

func isHeld(err error) bool { return errors.Is(err, lease.ErrHeld) }

func appendRun(b []byte, r *lease.Run) []byte {
	b = append(b, `{"once":`...)
	b = appendString(b, r.Name)
	b = append(b, `,"by":`...)
	b = appendString(b, r.By)
	b = append(b, `,"at":"`...)
	b = r.At.UTC().AppendFormat(b, time.RFC3339)
	b = append(b, `","fence":`...)
	b = strconv.AppendUint(b, r.Fence, 10)
	b = append(b, `,"took_ms":`...)
	b = strconv.AppendInt(b, r.Took.Milliseconds(), 10)
	return append(b, '}')
}

// seconds rounds up, for headers.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

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
	s.patience(w)
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
	s.patience(w)
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
func (s *Server) patience(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(joblock.MaxLease))
}
