package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// options are the flags, with the paths filled in by build.
type options struct {
	sidecar, worker     string
	store, lock, logs   string
	lease, renew, retry time.Duration
	seconds             int
	pace, delay, slack  time.Duration
	withoutFence        bool
	plain               bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.sidecar, "sidecar", "", "the sidecar's binary: `PATH` (default: built from this repository)")
	flags.StringVar(&o.worker, "worker", "", "the worker's binary: `PATH` (default: beside this program, or built)")
	flags.StringVar(&o.store, "store", "", "the Redis to elect on: `URL` (default: a server inside this program)")
	flags.StringVar(&o.lock, "lock", "city-ids", "the `NAME` of the lock")
	flags.StringVar(&o.logs, "logs", "", "where to keep what the replicas log: `DIR` (default: kept only if anything was wrong)")
	flags.DurationVar(&o.lease, "lease-duration", 3*time.Second, "see sidecar elect --help")
	flags.DurationVar(&o.renew, "renew-deadline", 2*time.Second, "likewise")
	flags.DurationVar(&o.retry, "retry-period", 400*time.Millisecond, "likewise")
	flags.IntVar(&o.seconds, "seconds", 24, "about how long it takes; what happens takes its time in any case")
	flags.DurationVar(&o.pace, "pace", 100*time.Millisecond, "the workers' pause between two city IDs")
	flags.DurationVar(&o.delay, "write-delay", 100*time.Millisecond, "how long a worker's write is under way")
	flags.DurationVar(&o.slack, "slack", 2*time.Second, "how much later than promised a takeover may be, on a busy machine")
	flags.BoolVar(&o.withoutFence, "without-fence", false, "let the task store believe every writer: this goes wrong")
	flags.BoolVar(&o.plain, "plain", os.Getenv("NO_COLOR") != "", "no colours, and no live line, even on a terminal")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, o.validate()
}

// validate judges the durations as the sidecar does, so that a mistake is told once
// instead of by three processes that end.
func (o options) validate() error {
	var errs []error
	if o.renew+o.renew/50+10*time.Millisecond > o.lease {
		errs = append(errs, fmt.Errorf("--renew-deadline × 1.02 + 10ms must be ≤ --lease-duration: %v, %v", o.renew, o.lease))
	}
	if 2*o.retry > o.renew {
		errs = append(errs, fmt.Errorf("--retry-period × 2 must be ≤ --renew-deadline: %v, %v", o.retry, o.renew))
	}
	if min(o.retry, o.pace, o.delay) <= 0 || o.seconds <= 0 {
		errs = append(errs, errors.New("--retry-period, --pace, --write-delay and --seconds must be above 0"))
	}
	return errors.Join(errs...)
}

// afterBelief is how much of a lease is left when a leader that could not renew has
// stopped saying that it leads: the sidecar believes for 99 % of the renew deadline,
// less 2 ms.
func (o options) afterBelief() time.Duration {
	return o.lease - (o.renew*99/100 - 2*time.Millisecond)
}

// pause is the quiet time before and after each act: what the acts leave of --seconds.
// Two of them wait for the rest of a lease.
func (o options) pause() time.Duration {
	const pauses = 5
	rest := time.Duration(o.seconds)*time.Second - 2*o.lease - 2*time.Second
	return max(rest/pauses, time.Second)
}

// limit is when the demo is given up: something is very wrong, or very slow.
func (o options) limit() time.Duration {
	return max(55*time.Second, time.Duration(o.seconds)*time.Second+2*o.lease+25*time.Second)
}
