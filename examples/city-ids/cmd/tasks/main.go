// Command tasks is the task store of the city-ids example, over HTTP. It keeps its
// record in memory.
//
//	tasks [--address :8080] [--unguarded]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/soloist-dev/soloist/examples/city-ids/tasks"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "tasks:", err)
		os.Exit(1)
	}
}

// run serves until ctx is done, and then finishes the requests in hand.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("tasks", flag.ContinueOnError)
	flags.SetOutput(stderr)
	address := flags.String("address", ":8080", "the `address` to listen on")
	unguarded := flags.Bool("unguarded", false, "believe every writer, to show what the fence is for")
	if err := flags.Parse(args); err != nil {
		return err
	}

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *address)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(stdout, nil))
	log.Info("listening", "address", listener.Addr().String(), "unguarded", *unguarded)

	server := &http.Server{
		Handler:           tasks.NewHandler(&tasks.Store{Unguarded: *unguarded}),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       2 * time.Minute,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		return err
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
