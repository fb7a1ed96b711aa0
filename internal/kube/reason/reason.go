// Package reason puts what a Kubernetes API server refuses into single words: a closed
// set, fit for a metric's label.
package reason

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What [Of] returns.
const (
	Forbidden    = "forbidden"
	Unauthorized = "unauthorized"
	NotFound     = "notfound"
	Conflict     = "conflict"
	Invalid      = "invalid" // the server will not have the object
	Throttled    = "throttled"
	Timeout      = "timeout"
	Unavailable  = "unavailable"
)

// All returns every word that [Of] may return.
func All() []string {
	return []string{Forbidden, Unauthorized, NotFound, Conflict, Invalid, Throttled, Timeout, Unavailable}
}

var words = map[metav1.StatusReason]string{
	metav1.StatusReasonForbidden:          Forbidden,
	metav1.StatusReasonUnauthorized:       Unauthorized,
	metav1.StatusReasonNotFound:           NotFound,
	metav1.StatusReasonConflict:           Conflict,
	metav1.StatusReasonInvalid:            Invalid,
	metav1.StatusReasonBadRequest:         Invalid,
	metav1.StatusReasonTooManyRequests:    Throttled,
	metav1.StatusReasonTimeout:            Timeout,
	metav1.StatusReasonServerTimeout:      Timeout,
	metav1.StatusReasonServiceUnavailable: Unavailable,
}

// Of returns the word for err; "" if no API server said it, or nothing that has a word.
func Of(err error) string { return words[apierrors.ReasonForError(err)] }
