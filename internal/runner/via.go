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
	"time"

	"github.com/soloist-dev/soloist/internal/joblock"
	"github.com/soloist-dev/soloist/internal/lease"
)

// answer is what a sidecar says about a lock.
type answer struct {
	Error   string
	Message string
	Token   string
	Fence   uint64
	Held    bool
	Holder  string
	Run     struct {
		By    string
		At    time.Time
		Fence uint64
	}
}

// remote is a lock that a sidecar holds for us. To the term that renews it there it is the
// store: what a PUT confirms lasts for a lease from before the question.
type remote struct {
	client http.Client
	url    string
	token  string
	fence  uint64
}

// AcquireVia gets a lock from the sidecar at base, a URL, and renews it there. Its errors are
// those of [joblock.Locks.Acquire], as far as the sidecar tells; any other means that there
// was no answer that makes sense.
func AcquireVia(ctx context.Context, base string, a joblock.Ask) (*Held, error) {
	if a.Lease == 0 {
		a.Lease = joblock.DefaultLease
	}
	r := &remote{url: base + "/locks/" + url.PathEscape(a.Lock)}
	got, err := r.do(ctx, http.MethodPost, map[string]any{
		"request": rand.Text(), "lease": a.Lease.String(), "wait": a.Wait.String(), "slots": a.Slots,
		"once": a.Once, "keep": a.Keep.String(), "at_least_for": a.AtLeast.String(),
		"at_most_for": (2 * a.Lease).String(), // from the last time that we were heard of
		"owner":       a.Owner,
	})
	if err != nil {
		return nil, err
	}
	r.token, r.fence = got.Token, got.Fence
	c := &lease.Candidate{Store: r, Timing: lease.JobTiming(a.Lease), AtMost: a.AtMost}
	term, err := c.Try(ctx, lease.Request{Claim: lease.Claim{Lock: a.Lock, Token: lease.Token(got.Token)}})
	if err != nil {
		return nil, err
	}
	return &Held{
		Lock: a.Lock, Fence: r.fence, Token: r.token, Lease: a.Lease, Lost: term.Ended(), Why: term.Err,
		Release: func(ctx context.Context, done bool) (bool, error) {
			term.Stop(nil)
			// The sidecar may need two retry periods to find out.
			ctx, cancel := context.WithTimeout(ctx, 3*c.Timing.RetryPeriod)
			defer cancel()
			return r.release(ctx, done && a.Once != "")
		},
	}, nil
}

// Acquire implements [lease.Store]. It renews what the sidecar has acquired: how long ago
// that was only the sidecar knows.
func (r *remote) Acquire(ctx context.Context, q lease.Request) (lease.Grant, error) {
	return lease.Grant{Claim: q.Claim, Fence: r.fence}, r.renew(ctx)
}

// Extend implements [lease.Store].
func (r *remote) Extend(ctx context.Context, _ lease.Grant, e lease.Extension) (lease.Extended, error) {
	return lease.Extended{Left: e.TTL}, r.renew(ctx)
}

// Release implements [lease.Store].
func (r *remote) Release(ctx context.Context, _ lease.Claim) (bool, error) {
	return r.release(ctx, false)
}

// Inspect implements [lease.Store]: no term asks for it.
func (r *remote) Inspect(context.Context, string) (lease.Info, error) {
	return lease.Info{}, errors.ErrUnsupported
}

func (r *remote) renew(ctx context.Context) error {
	_, err := r.do(ctx, http.MethodPut, map[string]any{"token": r.token})
	return err
}

func (r *remote) release(ctx context.Context, done bool) (held bool, err error) {
	out, err := r.do(ctx, http.MethodDelete, map[string]any{"token": r.token, "done": done})
	return out.Held, notLost(err)
}

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
