// Command probe asks a URL every 100 ms, on a new connection each time, and says when it gets no answer: a line
// "FROM TO FAILURES LAST-ERROR" for each time without one, in nanoseconds since 1970, once it is over.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	var from time.Time
	failures := 0
	var last error
	for tick := time.NewTicker(100 * time.Millisecond); ctx.Err() == nil; {
		began := time.Now()
		err := ask(ctx, client, os.Args[1])
		switch {
		case err != nil:
			if failures == 0 {
				from = began
			}
			failures, last = failures+1, err
		case failures > 0:
			fmt.Println(from.UnixNano(), time.Now().UnixNano(), failures, last)
			failures = 0
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// ask takes any answer for one.
func ask(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return err
}
