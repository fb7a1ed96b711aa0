package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// decode reads a body, which may be missing or is one JSON object without unknown fields.
// If it is not, decode answers, and returns nil.
func decode[T any](w http.ResponseWriter, r *http.Request) *T {
	body := new(T)
	in := json.NewDecoder(r.Body)
	in.DisallowUnknownFields()
	err := in.Decode(&body)
	switch {
	case errors.Is(err, io.EOF):
		err = nil // no body
	case err == nil && body == nil:
		err = errors.New("null is no object")
	case err == nil:
		if _, more := in.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is something after the object")
			if more != nil {
				err = more // which may be that the body is too long
			}
		}
	}
	// A handler that goes on for longer must not be taken for a body that does.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if err == nil {
		return body
	}
	var long *http.MaxBytesError
	var kind *json.UnmarshalTypeError
	field, unknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	switch {
	case errors.As(err, &long):
		fail(w, http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body may have %d bytes", long.Limit))
	case errors.Is(err, os.ErrDeadlineExceeded):
		fail(w, http.StatusRequestTimeout, "timeout", "the body did not come in time")
	case errors.As(err, &kind) && kind.Field != "":
		fail(w, http.StatusBadRequest, "invalid", fmt.Sprintf("%s must not be a %s", kind.Field, kind.Value))
	case errors.As(err, &kind):
		fail(w, http.StatusBadRequest, "invalid", fmt.Sprintf("the body must be one JSON object, not a %s", kind.Value))
	case errors.Is(err, errDuration):
		fail(w, http.StatusBadRequest, "invalid", err.Error())
	case unknown:
		fail(w, http.StatusBadRequest, "invalid", "the body has an unknown field "+field)
	default:
		fail(w, http.StatusBadRequest, "invalid", "the body must be one JSON object: "+strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

var errDuration = errors.New(`is no duration such as "30s"`)

// duration is text such as "30s".
type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%.40q %w", text, errDuration)
	}
	*d = duration(v)
	return nil
}
