package kube

import (
	"context"
	"errors"

	"github.com/soloist-dev/soloist/internal/kube/reason"
)

// Kinds lists what ErrorKind of an error of this package may be.
func Kinds() []string { return append(reason.All(), "other") }

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
	kind := reason.Of(err)
	switch {
	case kind != "":
	case errors.Is(err, context.DeadlineExceeded):
		kind = reason.Timeout
	default:
		kind = "other"
	}
	return &failure{kind, err}
}
