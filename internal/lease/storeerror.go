package lease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// Kinds of a [StoreError] that every store has. A store adds its own: together a closed
// set of single words, fit for a metric's label.
const (
	KindTimeout  = "timeout"
	KindRefused  = "refused"  // nobody listens
	KindClosed   = "closed"   // the connection broke: the request may have been executed
	KindProtocol = "protocol" // a reply that makes no sense
	KindOther    = "other"
)

// StoreError is a store's answer that is no verdict, or the lack of one.
type StoreError struct {
	Store  string // what kind of store: redis, kubernetes
	Op     string // acquire, extend, release, inspect, and what a store does besides
	Kind   string
	Advice string // what to do about it; "": it may go away by itself
	Err    error  // not nil
	// Permanent says that it does not go away unless somebody does something about it.
	Permanent bool
}

func (e *StoreError) Error() string {
	if e.Advice != "" {
		return fmt.Sprintf("%s %s: %v (%s)", e.Store, e.Op, e.Err, e.Advice)
	}
	return fmt.Sprintf("%s %s: %v", e.Store, e.Op, e.Err)
}

// Unwrap returns what the store's client said.
func (e *StoreError) Unwrap() error { return e.Err }

// ErrorKind returns the kind, for metrics.
func (e *StoreError) ErrorKind() string { return e.Kind }

// NetworkKind returns the kind of an error of a connection, or of a call on it:
// KindTimeout, KindRefused, KindClosed, or KindOther if it says nothing of the kind.
func NetworkKind(err error) string {
	var timeout net.Error
	switch {
	case isAny(err, context.DeadlineExceeded, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return KindTimeout
	case isAny(err, syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, os.ErrNotExist):
		return KindRefused
	case isAny(err, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED):
		return KindClosed
	}
	return KindOther
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
