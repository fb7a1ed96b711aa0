// Command demo shows three replicas of the city-ids workload through a crash, a planned
// stop and a freeze, and judges what came of it. It exits with 1 if anything was wrong.
//
//	demo [--sidecar PATH] [--store URL] [--seconds 24] [--without-fence] …
//
// Each replica is two processes: the worker, and a real sidecar. The sidecars elect on a
// Redis-compatible server inside this process, or on the Redis given by --store.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code: 0 if all went well, 1 if not, 2 for wrong flags.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "demo:", err)
		return 2
	}
	v, err := demonstrate(ctx, o, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "demo:", err)
		return 1
	}
	if len(v.Wrong) > 0 {
		return 1
	}
	return 0
}

// demonstrate runs the demo and prints its verdict. The error is that of a demo which
// couldn't be given at all.
func demonstrate(ctx context.Context, o options, out io.Writer) (v verdict, err error) {
	dir, err := os.MkdirTemp("", "city-ids-")
	if err != nil {
		return v, err
	}
	keep := false
	defer func() {
		if !keep {
			_ = os.RemoveAll(dir) // what the system's own cleaning would do
		}
	}()
	if err := build(ctx, dir, &o); err != nil {
		return v, err
	}
	logs := o.logs
	if logs == "" {
		logs = filepath.Join(dir, "logs")
	}
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return v, err
	}

	d, err := newDemo(o, logs, out)
	if err != nil {
		return v, err
	}
	defer d.close()
	limited, cancel := context.WithTimeout(ctx, o.limit())
	defer cancel()
	d.play(limited)
	if err := ctx.Err(); err != nil {
		return v, errors.New("interrupted")
	}

	v = judge(d.evidence())
	d.timeline.verdict(v)
	if keep = len(v.Wrong) > 0 && o.logs == ""; keep {
		fmt.Fprintf(out, "\nThe replicas' logs are kept in %s\n", logs)
	}
	return v, nil
}
