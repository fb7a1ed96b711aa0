package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// listen leaves a note in news for each event of /events, until ctx is done. It opens
// the stream again, after the given pause, when it has ended.
func (l *leadership) listen(ctx context.Context, news chan<- struct{}, pause time.Duration) {
	for {
		err := l.stream(ctx, news)
		l.log.Debug("the stream of events has ended", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// stream reads one stream of events to its end.
func (l *leadership) stream(ctx context.Context, news chan<- struct{}) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+"/events", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := l.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // a stream has no end to read to
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "data:") {
			continue // a comment, or another field of an event
		}
		select {
		case news <- struct{}{}:
		default: // a note is there already
		}
	}
	return lines.Err()
}
