// Command flash-sale sells what is scarce to buyers who all come at once, and never more of
// it than there is. See the README.
//
//	flash-sale [-sidecar http://127.0.0.1:4040]… [-lock=false] [-items 2000] [-buyers 64] [-slots 20]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/soloist-dev/soloist/examples/jobs/clients/go/soloist"
	"github.com/soloist-dev/soloist/examples/jobs/internal/example"
)

func main() { os.Exit(example.Main("flash-sale", run)) }

type options struct {
	sidecars             []*soloist.Client
	name                 string
	lock                 bool
	items, buyers, slots int
	pay                  time.Duration
}

func parse(args []string) (o options, err error) {
	var sidecars example.Sidecars
	flags := flag.NewFlagSet("flash-sale", flag.ContinueOnError)
	sidecars.Flag(flags)
	flags.StringVar(&o.name, "name", "flash-sale", "the `NAME` that the locks begin with")
	flags.BoolVar(&o.lock, "lock", true, "ask for the lock; without it too much is sold")
	flags.IntVar(&o.items, "items", 2000, "how many are sold where the speed is measured; 0: it is not")
	flags.IntVar(&o.buyers, "buyers", 64, "how many buyers come there")
	flags.IntVar(&o.slots, "slots", 20, "into how many segments the stock is split there")
	flags.DurationVar(&o.pay, "pay", 2*time.Millisecond, "how long a buyer pays, with the item in hand")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.buyers < 1 || o.slots < 2 || o.items < 0 {
		return o, errors.New("-buyers must be above 0, -slots above 1, -items not below 0")
	}
	o.sidecars = sidecars.Clients(o.buyers)
	return o, nil
}

// run fails if more was sold than there was, or less.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	few := &sale{lock: o.name + "/few", sidecars: o.sidecars, stock: newStock(2, 1, o.pay), buyers: 5, each: 1}
	if !o.lock {
		few.sidecars = nil
		_, err := few.run(ctx)
		fmt.Fprintf(out, "no lock: 5 buyers, 2 items, %d sold\n", few.stock.sold)
		return err
	}
	if _, err := few.run(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "one lock: 5 buyers, 2 items, %d sold (%d late)\n", few.stock.sold, few.stock.late)
	wrong := judge(2, few.stock.sold)
	if o.items == 0 {
		return wrong
	}

	one := &sale{lock: o.name + "/one", sidecars: o.sidecars, stock: newStock(o.items, 1, o.pay), buyers: o.buyers}
	split := &sale{lock: o.name + "/split", sidecars: o.sidecars, stock: newStock(o.items, o.slots, o.pay), buyers: o.buyers}
	for _, s := range []*sale{one, split} {
		took, err := s.run(ctx)
		if err != nil {
			return err
		}
		label := "one lock"
		if n := len(s.stock.left); n > 1 {
			label = fmt.Sprintf("%d segments", n)
		}
		fmt.Fprintf(out, "%s: %d buyers, %d items, %d sold in %.2f s: %.0f sales per second (%d empty, %d late)\n",
			label, s.buyers, o.items, s.stock.sold, took.Seconds(), float64(s.stock.sold)/took.Seconds(),
			s.misses.Load(), s.stock.late)
		wrong = errors.Join(wrong, judge(o.items, s.stock.sold))
	}
	return wrong
}

func judge(items, sold int) error {
	if sold != items {
		return fmt.Errorf("%d items, but %d sold", items, sold)
	}
	return nil
}
