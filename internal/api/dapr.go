package api

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/internal/joblock"
	"github.com/soloist-dev/soloist/internal/lease"
)

// daprLocks answers Dapr's distributed lock API (v1.0-alpha1), for apps that were written
// for it. As there, a lock is taken at once or not at all, is never renewed, and is given
// back by the name of its owner, which is told to this sidecar.
type daprLocks struct {
	mu     sync.Mutex
	tokens map[daprKey]joblock.Lease
}

type daprKey struct{ resource, owner string }

type daprBody struct {
	ResourceID string `json:"resourceId"`
	LockOwner  string `json:"lockOwner"`
	Expiry     int64  `json:"expiryInSeconds"`
}

// Answers to an unlock.
const (
	daprUnlocked = "0"
	daprNoLock   = "1"
	daprOthers   = "2"
)

// daprRoutes are all routes of a server for Dapr's clients. The last part of a path names
// a component of Dapr's, of which there is one here, whatever it is called.
func (s *Server) daprRoutes() {
	s.mux.HandleFunc("POST /v1.0-alpha1/lock/{component}", s.daprLock)
	s.mux.HandleFunc("POST /v1.0-alpha1/unlock/{component}", s.daprUnlock)
	s.mux.HandleFunc("/", s.fallback)
}

// daprName returns the name of a lock for a resource, whose id may be any text.
func daprName(resource string) string {
	if name := "dapr/" + resource; lease.CheckName(name) == nil {
		return name
	}
	return fmt.Sprintf("dapr-sha256/%x", sha256.Sum256([]byte(resource)))
}

func (s *Server) daprRequest(w http.ResponseWriter, r *http.Request, expires bool) *daprBody {
	body := decode[daprBody](w, r)
	if body == nil {
		return nil
	}
	var wrong string
	switch {
	case body.ResourceID == "":
		wrong = "ResourceId is empty"
	case body.LockOwner == "" || len(body.LockOwner) > 128:
		wrong = "LockOwner is empty, or longer than 128 bytes"
	case expires && (body.Expiry <= 0 || body.Expiry > int64(joblock.MaxLease/time.Second)):
		wrong = "ExpiryInSeconds is not positive, or more than a day"
	default:
		return body
	}
	daprFail(w, http.StatusBadRequest, "ERR_MALFORMED_REQUEST", wrong)
	return nil
}

func (s *Server) daprLock(w http.ResponseWriter, r *http.Request) {
	body := s.daprRequest(w, r, true)
	if body == nil {
		return
	}
	expiry := time.Duration(body.Expiry) * time.Second
	patience(w)
	got, err := s.cfg.Locks.Acquire(r.Context(), joblock.Ask{
		Lock: daprName(body.ResourceID), Owner: daprOwner(body.LockOwner), Lease: expiry, AtMost: expiry,
	})
	switch {
	case err == nil:
		s.dapr.keep(daprKey{body.ResourceID, body.LockOwner}, got)
		respond(w, http.StatusOK, []byte(`{"success":true}`))
	case errors.Is(err, lease.ErrHeld):
		respond(w, http.StatusOK, []byte(`{"success":false}`))
	default:
		daprFail(w, http.StatusInternalServerError, "ERR_TRY_LOCK", err.Error())
	}
}

func (s *Server) daprUnlock(w http.ResponseWriter, r *http.Request) {
	body := s.daprRequest(w, r, false)
	if body == nil {
		return
	}
	patience(w)
	status := daprOthers
	key := daprKey{body.ResourceID, body.LockOwner}
	got, ok := s.dapr.take(key)
	if ok {
		out, err := s.cfg.Locks.Release(r.Context(), got.Lock, got.Token, false)
		switch {
		case err == nil && !out.Unknown:
			status = daprUnlocked
		case err == nil || !lease.IsVerdict(err):
			s.dapr.keep(key, got) // it may be asked again
			daprFail(w, http.StatusInternalServerError, "ERR_UNLOCK", "the store did not answer")
			return
		}
	}
	if status != daprUnlocked {
		info, err := s.cfg.Store.Inspect(r.Context(), daprName(body.ResourceID))
		if err != nil {
			daprFail(w, http.StatusInternalServerError, "ERR_UNLOCK", err.Error())
			return
		}
		if len(info.Holders) == 0 {
			status = daprNoLock
		}
	}
	respond(w, http.StatusOK, []byte(`{"status":`+status+`}`))
}

// keep remembers a lock until it is given back, or has run out.
func (d *daprLocks) keep(k daprKey, l joblock.Lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tokens == nil {
		d.tokens = map[daprKey]joblock.Lease{}
	}
	for other, old := range d.tokens { // as many as there are locks at most, and few of those
		if old.Err() != nil {
			delete(d.tokens, other)
		}
	}
	d.tokens[k] = l
}

func (d *daprLocks) take(k daprKey) (joblock.Lease, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.tokens[k]
	delete(d.tokens, k)
	return l, ok
}

// daprOwner makes any text an owner that can be shown.
func daprOwner(owner string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, owner)
}

func daprFail(w http.ResponseWriter, status int, code, message string) {
	b := appendString([]byte(`{"errorCode":`), code)
	b = appendString(append(b, `,"message":`...), message)
	respond(w, status, append(b, '}'))
}
