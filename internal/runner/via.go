package runner

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/internal/joblock"
	"github.com/soloist-dev/soloist/internal/lease"
)

// answer is what a sidecar says about a lock.
type answer struct {
	Error      string
	Message    string
	Token      string
	Fence      uint64
	ValidForMS int64 `json:"valid_for_ms"`
	Held       bool
	Holder     string
	Run        struct {
		By    string
		At    time.Time
		Fence uint64
	}
}

// remote is a lock that a sidecar holds for us.
type remote struct {
	client *http.Client
	url    string
	token  string
	timing lease.Timing

	mu  sync.Mutex
	why error
}

// AcquireVia gets a lock from the sidecar at base, a URL, and renews it there. Its errors are
// those of [joblock.Locks.Acquire], as far as the sidecar tells; any other means that there
// was no answer that makes sense.
func AcquireVia(ctx context.Context, base string, a joblock.Ask) (*Held, error) {
	if a.Lease == 0 {
		a.Lease = joblock.DefaultLease
	}
	timing := lease.JobTiming(a.Lease)
	r := &remote{
		client: &http.Client{}, timing: timing,
		url: base + "/locks/" + url.PathEscape(a.Lock),
	}
	stamp := lease.SystemClock() // before the question: nothing later may count
	got, err := r.do(ctx, http.MethodPost, map[string]any{
		"request": rand.Text(), "lease": a.Lease.String(), "wait": a.Wait.String(), "slots": a.Slots,
		"once": a.Once, "keep": a.Keep.String(), "at_least_for": a.AtLeast.String(),
		"at_most_for": (2 * a.Lease).String(), // from the last time that we were heard of
		"owner":       a.Owner,
	})
	if err != nil {
		return nil, err
	}
	r.token = got.Token
	if a.Wait > 0 {
		// It was granted at the end of the wait: what it says is from then, or later.
		stamp = lease.SystemClock()
		if got, err = r.do(ctx, http.MethodPut, map[string]any{"token": r.token}); err != nil {
			_, _ = r.do(context.WithoutCancel(ctx), http.MethodDelete, map[string]any{"token": r.token})
			return nil, err
		}
	}
	lost := make(chan struct{})
	life, stop := context.WithCancel(context.Background())
	kept := make(chan struct{})
	go func() { // Release waits for it
		defer close(kept)
		defer close(lost)
		r.keep(life, lease.Validity{Stamp: stamp, For: millis(got.ValidForMS)}, a.AtMost)
	}()
	return &Held{
		Lock: a.Lock, Fence: got.Fence, Token: r.token, Lease: a.Lease, Lost: lost,
		Why: func() error { r.mu.Lock(); defer r.mu.Unlock(); return r.why },
		Release: func(ctx context.Context, done bool) (bool, error) {
			stop()
			<-kept
			ctx, cancel := context.WithTimeout(ctx, 3*timing.RetryPeriod)
			defer cancel()
			out, err := r.do(ctx, http.MethodDelete, map[string]any{"token": r.token, "done": done && a.Once != ""})
			return out.Held, notLost(err)
		},
	}, nil
}

// pause is the least time between two tries.
const pause = 20 * time.Millisecond

// keep renews until the lock is lost, or ctx is done.
func (r *remote) keep(ctx context.Context, v lease.Validity, atMost time.Duration) {
	began := v.Stamp
	for {
		now := lease.SystemClock()
		belief, left := v.At(now)
		if atMost > 0 { // as a term does it
			left = min(left, atMost-(r.timing.LeaseDuration-r.timing.Belief())-now.Since(began))
		}
		switch {
		case left <= 0 && belief != lease.Over:
			r.lose(lease.ErrLimit)
			return
		case left <= 0:
			r.lose(lease.ErrExpired)
			return
		}
		due := r.timing.RetryPeriod - now.Since(v.Stamp)
		if belief == lease.Unverified {
			due = 0
		}
		nap := min(left, max(due, pause), time.Second)
		select {
		case <-ctx.Done():
			r.lose(lease.ErrStopped)
			return
		case <-time.After(nap):
		}
		if nap < due {
			continue
		}
		now = lease.SystemClock() // before the question
		call, cancel := context.WithTimeout(ctx, min(left, r.timing.RetryPeriod))
		got, err := r.do(call, http.MethodPut, map[string]any{"token": r.token})
		cancel()
		switch {
		case errors.Is(err, lease.ErrLost):
			r.lose(err)
			return
		case err == nil:
			v = lease.Validity{Stamp: now, For: millis(got.ValidForMS)}
		}
	}
}

func (r *remote) lose(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why = why
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// do asks the sidecar.
func (r *remote) do(ctx context.Context, method string, body map[string]any) (answer, error) {
	for name, v := range body { // what is not asked for is not said
		if v == "" || v == "0s" || v == 0 || v == false {
			delete(body, name)
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, method, r.url, bytes.NewReader(text))
	if err != nil {
		return answer{}, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var a answer
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return answer{}, fmt.Errorf("the sidecar's answer makes no sense: %d %.100q: %w", resp.StatusCode, text, err)
	}
	return a, a.err(resp.StatusCode)
}

// err returns the refusal as the error that it was.
func (a *answer) err(status int) error {
	switch {
	case status == http.StatusOK:
		return nil
	case a.Error == "held":
		return &lease.HeldError{Held: lease.Held{Holder: lease.Holder{Identity: lease.Identity{Name: a.Holder}}, Rank: -1}}
	case a.Error == "lost":
		return lease.ErrLost
	case a.Error == "done":
		return &joblock.DoneError{Run: lease.Run{By: a.Run.By, At: a.Run.At, Fence: a.Run.Fence}}
	}
	return fmt.Errorf("the sidecar refuses: %s: %s", a.Error, a.Message)
}

// notLost drops the verdict that a lock was lost: that it was not held says the same.
func notLost(err error) error {
	if errors.Is(err, lease.ErrLost) {
		return nil
	}
	return err
}
