package kubelease

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/soloist-dev/soloist/internal/lease"
)

// Kinds of an Error: a closed set, fit for a metric's label.
const (
	KindForbidden    = "forbidden"
	KindUnauthorized = "unauthorized"
	KindNotFound     = "notfound" // the namespace
	KindInvalid      = "invalid"  // the server will not have the object
	KindThrottled    = "throttled"
	KindUnavailable  = "unavailable"
	KindTimeout      = "timeout"
	KindRefused      = "refused"  // nobody listens
	KindClosed       = "closed"   // the connection broke: the request may have been executed
	KindProtocol     = "protocol" // a reply that makes no sense
	KindOther        = "other"
)

// Error is an answer that is no verdict, or the lack of one.
type Error struct {
	Op   string // acquire, extend, release, inspect, watch
	Kind string
	Err  error
}

func (e *Error) Error() string {
	if advice := advice[e.Kind]; advice != "" {
		return fmt.Sprintf("kubernetes %s: %v (%s)", e.Op, e.Err, advice)
	}
	return fmt.Sprintf("kubernetes %s: %v", e.Op, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// ErrorKind returns the kind, for metrics.
func (e *Error) ErrorKind() string { return e.Kind }

// advice says what to do about errors that do not go away by themselves.
var advice = map[string]string{
	KindForbidden:    "the service account needs get, create, update and watch on leases.coordination.k8s.io in that namespace",
	KindUnauthorized: "the server does not know this service account's token: is it mounted, and of this cluster?",
	KindNotFound:     "the namespace does not exist",
	KindInvalid:      "a policy or webhook of the cluster refuses the Lease",
}

// reasons maps what the API server says to kinds.
var reasons = map[metav1.StatusReason]string{
	metav1.StatusReasonForbidden:          KindForbidden,
	metav1.StatusReasonUnauthorized:       KindUnauthorized,
	metav1.StatusReasonNotFound:           KindNotFound,
	metav1.StatusReasonInvalid:            KindInvalid,
	metav1.StatusReasonBadRequest:         KindInvalid,
	metav1.StatusReasonTooManyRequests:    KindThrottled,
	metav1.StatusReasonTimeout:            KindTimeout,
	metav1.StatusReasonServerTimeout:      KindTimeout,
	metav1.StatusReasonServiceUnavailable: KindUnavailable,
}

// Not for callers.
var (
	errStale = errors.New("changed since it was read")
	errReply = errors.New("reply makes no sense")
)

// failed wraps what client-go returned for op; verdicts stay as they are.
func failed(op string, err error) error {
	if err == nil || lease.IsVerdict(err) {
		return err
	}
	return &Error{Op: op, Kind: kindOf(err), Err: err}
}

func kindOf(err error) string {
	if kind, ok := reasons[apierrors.ReasonForError(err)]; ok {
		return kind
	}
	var timeout net.Error
	switch {
	case errors.Is(err, errReply):
		return KindProtocol
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return KindTimeout
	case isAny(err, syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH):
		return KindRefused
	case isAny(err, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED):
		return KindClosed
	}
	return KindOther
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
}
