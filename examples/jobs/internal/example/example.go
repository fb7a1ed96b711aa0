// Package example holds what the programs beside it have in common: how they are started and
// stopped, and whom they ask.
package example

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/soloist-dev/soloist/examples/jobs/clients/go/soloist"
)

// Main runs a program until it ends, or is interrupted, and returns its exit code.
func Main(name string, run func(ctx context.Context, args []string, out io.Writer) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

// Sidecars are the URLs of those to ask.
type Sidecars []string

// Flag lets flags say which they are.
func (s *Sidecars) Flag(flags *flag.FlagSet) {
	flags.Func("sidecar", "a sidecar's `URL`; repeat it for several (default http://127.0.0.1:4040)", func(url string) error {
		*s = append(*s, strings.TrimSuffix(url, "/"))
		return nil
	})
}

// Clients returns a client for each, with as many connections kept as given: with the two of
// an http.DefaultTransport most of a crowd would make a new one for each question.
func (s *Sidecars) Clients(connections int) []*soloist.Client {
	urls := *s
	if len(urls) == 0 {
		urls = []string{"http://127.0.0.1:4040"}
	}
	pool := &http.Transport{MaxIdleConnsPerHost: connections}
	var clients []*soloist.Client
	for _, url := range urls {
		clients = append(clients, &soloist.Client{URL: url, HTTP: http.Client{Transport: pool}})
	}
	return clients
}
