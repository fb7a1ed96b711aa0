// Command worker is the app of the city-ids example: of all its replicas only the one
// that leads hands out city IDs. It knows nothing of Redis or Kubernetes; it asks the
// sidecar beside it over HTTP whether it leads.
//
//	worker [--follow poll|events] [--interval 250ms] [--pace 1s] [--write-delay 0s] [--verbose]
//
// Environment:
//
//	SOLOIST_URL  the sidecar, by default http://localhost:4040
//	TASKS_URL    the task store, by default http://localhost:8080
//	POD_NAME     this replica's name, by default the hostname
//
// SIGTERM finishes the write in hand and then tells the sidecar that the work is done,
// so that the next replica can lead at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/soloist-dev/soloist/examples/city-ids/tasks"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(2)
	}
}

// run works until ctx is done, and then as long as the write in hand takes.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	flags.SetOutput(stderr)
	follow := flags.String("follow", "poll", "how to notice a change: `poll` /leader, or listen to /events")
	interval := flags.Duration("interval", 250*time.Millisecond, "how often to ask /leader; a quarter as often with events")
	pace := flags.Duration("pace", time.Second, "the pause between two city IDs")
	delay := flags.Duration("write-delay", 0, "make each write slow, between the check and the request")
	verbose := flags.Bool("verbose", false, "log also what is about to be written")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *follow != "poll" && *follow != "events" {
		return fmt.Errorf("--follow must be poll or events, is %q", *follow)
	}
	if *interval <= 0 {
		return fmt.Errorf("--interval must be above 0, is %v", *interval)
	}
	name := getenv("POD_NAME")
	if name == "" {
		var err error
		if name, err = os.Hostname(); err != nil {
			return fmt.Errorf("POD_NAME is not set: %w", err)
		}
	}
	env := func(key, otherwise string) string {
		if v := getenv(key); v != "" {
			return v
		}
		return otherwise
	}

	level := slog.LevelInfo
	if *verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewJSONHandler(stdout, &slog.HandlerOptions{Level: level})).With("worker", name)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	leads := newLeadership(env("SOLOIST_URL", "http://localhost:4040"), transport, log)
	w := &worker{
		name:  name,
		leads: leads,
		tasks: &tasks.Client{
			URL:  env("TASKS_URL", "http://localhost:8080"),
			HTTP: &http.Client{Transport: transport},
		},
		pace:  *pace,
		delay: *delay,
		log:   log,
	}

	var wg sync.WaitGroup
	wg.Go(func() { leads.follow(ctx, *follow == "events", *interval) })
	w.run(ctx)
	wg.Wait()
	leads.resign(context.WithoutCancel(ctx))
	log.Info("stopped")
	return nil
}
