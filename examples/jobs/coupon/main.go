// Command coupon gives each user one coupon, however often and from how many devices at
// once a user asks. See the README.
//
//	coupon [-sidecar http://127.0.0.1:4040]… [-users 3] [-requests 40]
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/examples/jobs/clients/go/soloist"
	"github.com/soloist-dev/soloist/examples/jobs/internal/example"
)

func main() { os.Exit(example.Main("coupon", run)) }

// coupons is a tiny store. Each of its methods is safe; what lies between two of them is left
// to the lock.
type coupons struct {
	mu  sync.Mutex
	all map[string][]string // by user
}

func (c *coupons) of(user string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all[user])
}

func (c *coupons) add(user, coupon string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[user] = append(c.all[user], coupon)
}

func (c *coupons) remove(user, coupon string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[user] = slices.DeleteFunc(c.all[user], func(other string) bool { return other == coupon })
}

// An office gives coupons out.
type office struct {
	name     string
	sidecars []*soloist.Client
	coupons  coupons
}

// lock is the name of a user's lock. An address may have letters that a name may not.
func (o *office) lock(user string) string {
	sum := sha256.Sum256([]byte(user))
	return fmt.Sprintf("%s/%x", o.name, sum[:8])
}

// give gives the user a coupon, unless there is one; then given is false. An error means
// that the user is to ask again.
func (o *office) give(ctx context.Context, user string, request int) (given bool, err error) {
	c := o.sidecars[request%len(o.sidecars)]
	// The wait is bounded, because a user waits for the answer; so are the tries, which the
	// client makes where the sidecar says 503.
	l, err := c.Acquire(ctx, o.lock(user), soloist.Ask{"wait": "5s"})
	if err != nil {
		return false, err
	}
	coupon := fmt.Sprintf("coupon-%d", l.Fence)
	if len(o.coupons.of(user)) == 0 {
		<-time.After(5 * time.Millisecond) // the store is far away
		if time.Until(l.Until) > 0 {
			o.coupons.add(user, coupon)
			given = true
		}
	}
	if err := c.Release(ctx, l, false); err != nil {
		// Another may have looked before we added: take back what is ours, and only that.
		o.coupons.remove(user, coupon)
		return false, err
	}
	return given, nil
}

// run fails if any user has got more than one coupon, or none.
func run(ctx context.Context, args []string, out io.Writer) error {
	o := &office{coupons: coupons{all: map[string][]string{}}}
	flags := flag.NewFlagSet("coupon", flag.ContinueOnError)
	var sidecars example.Sidecars
	sidecars.Flag(flags)
	flags.StringVar(&o.name, "name", "coupon", "the `NAME` that the locks begin with")
	users := flags.Int("users", 3, "how many users ask")
	requests := flags.Int("requests", 40, "how often each does, all at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.sidecars = sidecars.Clients(*requests)

	var wrong []error
	for user := range *users {
		wrong = append(wrong, o.rush(ctx, fmt.Sprintf("user-%d@example.org", user+1), *requests, out))
	}
	return errors.Join(wrong...)
}

// rush is one user who asks many times at once.
func (o *office) rush(ctx context.Context, user string, requests int, out io.Writer) error {
	var (
		wg                   sync.WaitGroup
		mu                   sync.Mutex
		given, had, askAgain int
		last                 error
	)
	for request := range requests {
		wg.Go(func() {
			ok, err := o.give(ctx, user, request)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				askAgain++
				last = err
			case ok:
				given++
			default:
				had++
			}
		})
	}
	wg.Wait()
	has := o.coupons.of(user)
	fmt.Fprintf(out, "%s: %d requests: %d given, %d had one, %d to ask again: has %v\n", user, requests, given, had, askAgain, has)
	if given != 1 || len(has) != 1 {
		return fmt.Errorf("%s has %d coupons, of which %d were given: %w", user, len(has), given, last)
	}
	return nil
}
