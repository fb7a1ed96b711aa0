// Command sidecar elects a leader among the replicas of a workload, on the Redis that it
// already runs, and tells the app beside it who leads. Its verbs are in --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/soloist-dev/soloist/internal/config"
)

// version is set by the build.
var version = "unknown"

// stoppedBy is why the context of a verb is done.
type stoppedBy syscall.Signal

func (s stoppedBy) Error() string { return "stopped by " + syscall.Signal(s).String() }

func main() {
	ctx, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() { // lives as long as the process
		first := <-signals
		stop(stoppedBy(first.(syscall.Signal)))
		if len(os.Args) > 1 && os.Args[1] == config.Run {
			return // its command gets them all
		}
		second := <-signals
		os.Exit(config.ExitSignal + int(second.(syscall.Signal)))
	}()
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
