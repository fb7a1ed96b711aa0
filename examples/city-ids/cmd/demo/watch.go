package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// watchWait is how long one question may wait for a change: also how old the
	// picture of a sidecar at most is.
	watchWait = 250 * time.Millisecond
	// askTimeout is when a sidecar is given up, until the next question: a frozen one.
	askTimeout = time.Second
)

// leaderAnswer is what the demo reads of the body of /leader.
type leaderAnswer struct {
	Leader     bool  `json:"leader"`
	Fence      int64 `json:"fence"`
	ValidForMS int64 `json:"valid_for_ms"`
	Version    int64 `json:"version"`
}

// watch asks the sidecar of r who leads, until ctx is done. A question waits for news,
// so that a change is seen when it happens.
func (d *demo) watch(ctx context.Context, r *replica, url string) {
	var version int64
	for ctx.Err() == nil {
		a, err := d.ask(ctx, r, fmt.Sprintf("%s/leader?wait=%v&version=%d", url, watchWait, version))
		if err != nil {
			sleep(ctx, 20*time.Millisecond)
			continue
		}
		version = a.Version
	}
}

// ask asks one question, and records the answer "leader".
func (d *demo) ask(ctx context.Context, r *replica, url string) (a leaderAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	sent := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return a, err
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or of no use
	err = json.NewDecoder(resp.Body).Decode(&a)
	heard := time.Now()
	switch {
	case err != nil:
		return a, err
	case a.Leader != (resp.StatusCode == http.StatusOK):
		d.history.trouble("%s answered leader %v with status %d", r.name, a.Leader, resp.StatusCode)
	case a.Leader:
		s := sighting{r.name, a.Fence, sent, heard, time.Duration(a.ValidForMS) * time.Millisecond}
		if d.history.see(s) {
			d.timeline.say(r.name, "leads, with fence %d%s", s.Fence, d.sinceAct(s))
		}
	default:
		d.history.standsBy(r.name)
	}
	return a, nil
}

// sinceAct words how long after an act a term began, if it is the first after that act.
func (d *demo) sinceAct(s sighting) string {
	e := d.history.evidence()
	for _, a := range e.Acts {
		first, ok := firstAfter(a, e)
		if ok && first == s {
			return fmt.Sprintf(", %s after %s", seconds(s.Heard.Sub(a.At)), a.Kind)
		}
	}
	return ""
}

// sleep pauses, not longer than ctx lasts.
func sleep(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}
