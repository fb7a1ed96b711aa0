package joblock

import (
	"errors"
	"fmt"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

var (
	// ErrTooMany says that this process keeps as many locks as it may.
	ErrTooMany = errors.New("joblock: too many locks in this process")
	// ErrClosing says that this process is about to end and takes no new locks.
	ErrClosing = errors.New("joblock: about to end")
	// ErrReleased says that a request was repeated whose lock has been released since.
	ErrReleased = errors.New("joblock: the lock of this request has been released")
	// ErrElsewhere says that a handle of a re-entrant lock is not known here.
	ErrElsewhere = errors.New("joblock: a re-entrant lock is released and renewed where it was acquired")
)

// DoneError says that a run was done before.
type DoneError struct{ Run lease.Run }

func (e *DoneError) Error() string {
	return fmt.Sprintf("joblock: done by %q at %s", e.Run.By, e.Run.At.UTC().Format(time.RFC3339))
}

// permanent returns the store's error if it does not go away by itself.
func permanent(err error) error {
	var e *lease.StoreError
	if errors.As(err, &e) && e.Permanent {
		return e
	}
	return nil
}
