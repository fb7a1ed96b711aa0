// Command go holds a job lock for a second: go run ./clients/go URL NAME
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/soloist-dev/soloist/examples/jobs/clients/go/soloist"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "lock:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: go run ./clients/go http://127.0.0.1:4040 NAME")
	}
	c := &soloist.Client{URL: args[0], HTTP: http.Client{}}
	l, err := c.Acquire(ctx, args[1], soloist.Ask{"wait": "5s"})
	if err != nil {
		return fmt.Errorf("nothing may be done: %w", err)
	}
	fmt.Println("fence", l.Fence)
	for range 10 { // the work, in steps that are short beside what the answer is valid for
		if time.Until(l.Until) <= 0 {
			err = errors.New("the lock was valid for too short a time")
			break
		}
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // stands for work
	}
	if err := errors.Join(err, c.Release(ctx, l, false)); err != nil {
		return fmt.Errorf("undo what was done: %w", err)
	}
	fmt.Println("released")
	return nil
}
