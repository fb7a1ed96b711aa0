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

func main() {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() { // lives as long as the process
		<-signals
		stop()
		second := <-signals
		os.Exit(config.ExitSignal + int(second.(syscall.Signal)))
	}()
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
