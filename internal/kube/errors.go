package kube

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kinds of errors by what the API server says.
var kinds = map[metav1.StatusReason]string{
	metav1.StatusReasonForbidden:          "forbidden",
	metav1.StatusReasonUnauthorized:       "unauthorized",
	metav1.StatusReasonNotFound:           "notfound",
	metav1.StatusReasonConflict:           "conflict",
	metav1.StatusReasonInvalid:            "invalid",
	metav1.StatusReasonTooManyRequests:    "throttled",
	metav1.StatusReasonTimeout:            "timeout",
	metav1.StatusReasonServerTimeout:      "timeout",
	metav1.StatusReasonServiceUnavailable: "unavailable",
}

// Kinds lists what ErrorKind of an error of this package may be.
func Kinds() []string {
	return []string{"forbidden", "unauthorized", "notfound", "conflict", "invalid", "throttled", "timeout", "unavailable", "other"}
}

// failure is an error of the API server, with its kind.
type failure struct {
	kind string
	err  error
}

func (f *failure) Error() string     { return f.err.Error() }
func (f *failure) Unwrap() error     { return f.err }
func (f *failure) ErrorKind() string { return f.kind }

func failed(err error) error {
	if err == nil {
		return nil
	}
	kind, ok := kinds[apierrors.ReasonForError(err)]
	switch {
	case ok:
	case errors.Is(err, context.DeadlineExceeded):
		kind = "timeout"
	default:
		kind = "other"
	}
	return &failure{kind, err}
}
