package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// askTimeout bounds one question to the sidecar, which is on this machine.
const askTimeout = 2 * time.Second

// maxAnswer is far above the size of an answer of /leader.
const maxAnswer = 64 << 10

// answer is what a worker needs of the body of /leader.
type answer struct {
	Leader     bool  `json:"leader"`
	Fence      int64 `json:"fence"`
	ValidForMS int64 `json:"valid_for_ms"`
}

// A belief is what one answer is worth. The zero belief never holds.
type belief struct {
	fence int64
	until time.Time // by the steady clock
	wall  time.Time // the same by the wall clock, which goes on while the machine is suspended
}

func newBelief(fence int64, sent time.Time, validFor time.Duration) belief {
	return belief{fence, sent.Add(validFor), sent.Round(0).Add(validFor)}
}

// holds tells whether b is still worth something at now, by both clocks.
func (b belief) holds(now time.Time) bool {
	return b.fence > 0 && now.Before(b.until) && now.Round(0).Before(b.wall)
}

// leadership knows what the sidecar said last. Its methods are safe for concurrent use.
type leadership struct {
	url     string
	http    *http.Client
	log     *slog.Logger
	changed chan struct{} // holds at most one note that current is a new one

	mu      sync.Mutex
	current belief
}

func newLeadership(url string, transport http.RoundTripper, log *slog.Logger) *leadership {
	return &leadership{
		url:     url,
		http:    &http.Client{Transport: transport},
		log:     log,
		changed: make(chan struct{}, 1),
	}
}

// leads tells whether the term with this fence goes on, as far as is known now.
func (l *leadership) leads(fence int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current.fence == fence && l.current.holds(time.Now())
}

// await blocks until this replica leads with a fence above the given one, and returns
// that fence. The error is that of ctx, even if this replica leads. Only one goroutine
// may wait at a time.
func (l *leadership) await(ctx context.Context, above int64) (fence int64, err error) {
	for {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		l.mu.Lock()
		b := l.current
		l.mu.Unlock()
		if b.fence > above && b.holds(time.Now()) {
			return b.fence, nil
		}
		select {
		case <-ctx.Done():
		case <-l.changed:
		}
	}
}

// follow asks the sidecar, again and again, until ctx is done.
//
// An event of /events only prompts it to ask: the time at which an event was sent isn't
// known here, it may have lain in a buffer while this process was paused. The time
// before a question is known, and valid_for_ms counts from there.
func (l *leadership) follow(ctx context.Context, events bool, interval time.Duration) {
	var news chan struct{}
	if events {
		news = make(chan struct{}, 1)
		interval *= 4 // in case the stream is silent
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { l.listen(ctx, news, interval) })
	}
	silent := false
	for {
		err := l.ask(ctx)
		if err != nil && !silent && ctx.Err() == nil {
			l.log.Warn("no answer from the sidecar", "error", err)
		}
		silent = err != nil
		select {
		case <-ctx.Done():
			return
		case <-news:
		case <-time.After(interval):
		}
	}
}

// ask asks the sidecar once. An error is no verdict: what is believed stays until its
// time has run out.
func (l *leadership) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	sent := time.Now() // before the request: see follow
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+"/leader", nil)
	if err != nil {
		return err
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or of no use
	var a answer
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&a); err != nil {
		return fmt.Errorf("status %d: %w", resp.StatusCode, err)
	}
	switch {
	case resp.StatusCode == http.StatusOK && a.Leader:
		l.set(newBelief(a.Fence, sent, time.Duration(a.ValidForMS)*time.Millisecond))
	case resp.StatusCode == http.StatusServiceUnavailable && !a.Leader:
		l.set(belief{})
	default:
		return fmt.Errorf("status %d with leader %v", resp.StatusCode, a.Leader)
	}
	return nil
}

func (l *leadership) set(b belief) {
	l.mu.Lock()
	l.current = b
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default: // a note is there already
	}
}

// resign tells the sidecar that the work of the current term is done, if there is one.
func (l *leadership) resign(ctx context.Context) {
	l.mu.Lock()
	fence := l.current.fence
	l.current = belief{}
	l.mu.Unlock()
	if fence == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	body := fmt.Appendf(nil, `{"done":true,"fence":%d}`, fence)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/resign", bytes.NewReader(body))
	if err != nil {
		l.log.Warn("not resigned", "error", err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	l.log.Info("resigning", "fence", fence)
	resp, err := l.http.Do(req)
	if err != nil {
		l.log.Warn("not resigned: the next term begins when this lease has run out", "error", err)
		return
	}
	_ = resp.Body.Close() // the status says it all: 202, or 409 if it leads no more
	l.log.Info("resigned", "fence", fence, "status", resp.StatusCode)
}
