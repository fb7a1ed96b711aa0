// Command poll lets several pollers see the same events, of which each is fired once. See
// the README.
//
//	poll [-sidecar http://127.0.0.1:4040]… [-pollers 3] [-events 5]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/examples/jobs/clients/go/soloist"
	"github.com/soloist-dev/soloist/examples/jobs/internal/example"
)

func main() { os.Exit(example.Main("poll", run)) }

// A feed shows the same events to everybody who polls it.
type feed struct {
	lock   string // one for all events: each is a run of it
	events []string

	mu    sync.Mutex
	out   io.Writer
	fired map[string]int
	tries map[string]int
}

// fire does what an event is for. The first try of the second event fails, to show that
// another poller takes it up.
func (f *feed) fire(event, poller string, fence uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries[event]++
	if event == f.events[min(1, len(f.events)-1)] && f.tries[event] == 1 {
		fmt.Fprintf(f.out, "%s: %s fails before it has fired\n", event, poller)
		return errors.New("failed")
	}
	f.fired[event]++
	fmt.Fprintf(f.out, "%s: %s fires it, with fence %d\n", event, poller, fence)
	return nil
}

// A poller fires the events that nobody has fired.
type poller struct {
	name    string
	feed    *feed
	sidecar *soloist.Client
}

// run polls until it knows of all events that they are done.
func (p *poller) run(ctx context.Context) error {
	for open := p.feed.events; len(open) > 0; {
		var next []string
		for _, event := range open {
			done, err := p.take(ctx, event)
			if err != nil {
				return err
			}
			if !done {
				next = append(next, event)
			}
		}
		open = next
		select {
		case <-time.After(20 * time.Millisecond): // until the next poll
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// take fires an event, unless another does or has; it tells whether the event is done.
func (p *poller) take(ctx context.Context, event string) (done bool, err error) {
	l, err := p.sidecar.Acquire(ctx, p.feed.lock, soloist.Ask{"owner": p.name, "once": event})
	switch {
	case soloist.Refused(err, "done"):
		return true, nil
	case soloist.Refused(err, "held"): // another fires one of them: look again
		return false, nil
	case err != nil:
		return false, err
	}
	failed := p.feed.fire(event, p.name, l.Fence)
	// Done at release: where it failed, or this process dies before, the next poller takes
	// it. One that dies between the firing and this line leaves it to be fired again: what
	// is fired should know the event by its id.
	if err := p.sidecar.Release(ctx, l, failed == nil); err != nil {
		return false, fmt.Errorf("%s was fired without the lock, or is not recorded: %w", event, err)
	}
	return failed == nil, nil
}

// run fails if any event was fired more than once, or not at all.
func run(ctx context.Context, args []string, out io.Writer) error {
	var sidecars example.Sidecars
	flags := flag.NewFlagSet("poll", flag.ContinueOnError)
	sidecars.Flag(flags)
	name := flags.String("name", "poll", "the `NAME` of the lock")
	pollers := flags.Int("pollers", 3, "how many poll")
	events := flags.Int("events", 5, "how many events there are, from event-1 on")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *pollers < 1 || *events < 1 {
		return errors.New("-pollers and -events must be above 0")
	}
	clients := sidecars.Clients(*pollers)

	f := &feed{lock: *name, out: out, fired: map[string]int{}, tries: map[string]int{}}
	for i := range *events {
		f.events = append(f.events, fmt.Sprintf("event-%d", i+1))
	}
	failed := make([]error, *pollers)
	var wg sync.WaitGroup
	for i := range *pollers {
		wg.Go(func() {
			p := &poller{name: fmt.Sprintf("poller-%d", i+1), feed: f, sidecar: clients[i%len(clients)]}
			failed[i] = p.run(ctx)
		})
	}
	wg.Wait()
	err := errors.Join(failed...)
	for _, event := range f.events {
		if n := f.fired[event]; n > 1 {
			err = errors.Join(err, fmt.Errorf("%s was fired %d times", event, n))
		}
	}
	fmt.Fprintf(out, "%d pollers, %d events, %d fired\n", *pollers, *events, len(f.fired))
	return err
}
