// Command injector is the webhook that puts the sidecar into pods that ask for it, for
// clusters without MutatingAdmissionPolicy (before Kubernetes 1.36).
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Getenv, os.Stderr)
	stop()
	os.Exit(code)
}
