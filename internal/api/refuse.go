package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/internal/joblock"
	"github.com/soloist-dev/soloist/internal/lease"
)

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
		var b []byte
		if run, err := json.Marshal(newRunStatus(&done.Run)); err == nil { // else it is from no year that JSON knows
			b = append([]byte(`,"run":`), run...)
		}
		message := fmt.Sprintf("it was done by %s at %s", done.Run.By, done.Run.At.UTC().Format(time.RFC3339))
		failWith(w, http.StatusGone, "done", message, b)
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

// seconds rounds up, for headers.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
