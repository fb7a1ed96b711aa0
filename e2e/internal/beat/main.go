// Command beat is the smallest workload: it says which process it is, then "beat" each second, until SIGTERM.
package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("start", time.Now().UnixNano())
	tick := time.NewTicker(time.Second)
	for {
		select {
		case <-tick.C:
			fmt.Println("beat")
		case <-ctx.Done():
			fmt.Println("stop")
			return
		}
	}
}
