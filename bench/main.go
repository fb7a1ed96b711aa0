// Command bench measures Soloist and other Redis locks in the same run, on servers
// and processes of its own, and prints what it found. It asserts nothing.
//
// See docs/performance.md for what the numbers mean.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs the benchmark, or the role that the parent gave to this process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		if role, ok := roles[args[0]]; ok {
			if err := role(ctx, args[1:], stdout); err != nil {
				fmt.Fprintf(stderr, "bench %s: %v\n", args[0], err)
				return 1
			}
			return 0
		}
	}
	b, code := newBench(args, stderr)
	if b == nil {
		return code
	}
	defer b.close()
	if err := b.all(ctx, stdout); err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 1
	}
	return 0
}

// roles are what a child process may be.
var roles = map[string]func(ctx context.Context, args []string, stdout io.Writer) error{
	"_hold":  roleHold,
	"_serve": roleServe,
	"_load":  roleLoad,
	"_ping":  rolePing,
}
