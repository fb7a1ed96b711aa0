package runner

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// A Held lock is one that has been acquired. Its owner must Release it.
type Held struct {
	Lock  string
	Fence uint64
	Token string        // a secret
	Lease time.Duration // its length
	// Lost is closed when the lock may not be believed in any more.
	Lost <-chan struct{}
	// Why returns why it was lost.
	Why func() error
	// Release gives it up, and reports whether it was held to the end; an error means
	// that this is not known. It takes a few seconds at most.
	Release func(ctx context.Context, done bool) (held bool, err error)
}

// Result is what became of a command.
type Result struct {
	Code int   // its exit code, or 128 and the number of the signal that ended it
	Lost error // not nil: the lock was not held to the end, or that is not known
}

// How long a command has to end after SIGTERM, when its lock has been lost.
const (
	// killAt is the part of a lease after which it is killed. What is left then is for
	// clocks and for the kill.
	killAt = 0.9
	// killSoon is the longest time where another may hold the lock already.
	killSoon = 2 * time.Second
)

// passedOn are the signals that go to the command.
var passedOn = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// Run runs a command under h, and releases h. It blocks until the command has ended. With
// success the run of h is recorded as done. path is the command's file, args begin with
// its name. An error means that it was not started; h is released then, too.
func Run(h *Held, path string, args []string, log *slog.Logger) (Result, error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedOn...)
	defer signal.Stop(signals)
	c, err := start(path, args, append(os.Environ(),
		"SOLOIST_HELD="+h.Lock, "SOLOIST_FENCE="+strconv.FormatUint(h.Fence, 10), "SOLOIST_TOKEN="+h.Token))
	if err != nil {
		_, _ = h.Release(context.Background(), false) // it runs out by itself
		return Result{}, err
	}
	r := Result{}
	lost, kill := h.Lost, (<-chan time.Time)(nil)
	for running := true; running; {
		select {
		case r.Code = <-c.ended:
			running = false
		case s := <-signals:
			c.signal(s.(syscall.Signal))
		case <-lost:
			lost, r.Lost = nil, h.Why()
			grace := grace(h.Lease, r.Lost)
			log.Error("the lock was lost: ending the command", "lock", h.Lock, "reason", r.Lost, "grace", grace)
			c.signal(syscall.SIGTERM)
			kill = time.After(grace)
		case <-kill:
			c.signal(syscall.SIGKILL)
		}
	}
	c.signal(syscall.SIGKILL) // what it has left behind would be without the lock
	held, err := h.Release(context.Background(), r.Code == 0 && r.Lost == nil)
	switch {
	case r.Lost != nil:
	case err != nil:
		r.Lost = err
	case !held:
		r.Lost = lease.ErrLost
	}
	return r, nil
}

// grace returns how long a command has to end whose lock of that lease was lost. Belief
// ends well before the lease does, unless the store has said that it is over.
func grace(length time.Duration, why error) time.Duration {
	d := time.Duration(float64(length)*killAt) - lease.JobTiming(length).Belief()
	if errors.Is(why, lease.ErrLost) {
		d = min(d, killSoon)
	}
	return d
}
