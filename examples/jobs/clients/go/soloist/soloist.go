// Package soloist is the client side of a job lock: ask a sidecar for it, act while the
// answer counts, release it, and hear whether that was in time. It is there to be copied.
package soloist

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"
)

const (
	tries   = 3                      // of a question that got no answer, or 503
	pause   = 200 * time.Millisecond // between them
	longest = 30 * time.Second       // for one answer; a wait in line must be shorter
	atMost  = "30s"                  // the sidecar may outlive us, and shall not renew for the dead
)

// A Client asks one sidecar. It is safe for concurrent use.
type Client struct {
	URL  string // http://HOST:PORT
	HTTP http.Client
}

// An Ask is the body of POST /locks/{name}: Ask{"wait": "5s", "slots": 20}.
type Ask map[string]any

// A Refusal is any answer but 200.
type Refusal struct {
	Status  int    `json:"-"`
	Code    string `json:"error"` // "held", "done", "lost" …
	Message string
}

func (r *Refusal) Error() string { return fmt.Sprintf("%d %s: %s", r.Status, r.Code, r.Message) }

// Refused tells whether an error is the sidecar's refusal with that code.
func Refused(err error, code string) bool {
	r, ok := errors.AsType[*Refusal](err)
	return ok && r.Code == code
}

// A Lock has been acquired. What is written under it carries its Fence.
type Lock struct {
	Lock, Token string
	Slot        int
	Fence       uint64
	Valid       int64     `json:"valid_for_ms"`
	Until       time.Time `json:"-"` // do nothing under it after this
}

// Acquire asks for a lock. If it has to ask again it does so with the same id, which makes
// one attempt of all its questions, whichever of them arrived.
func (c *Client) Acquire(ctx context.Context, name string, a Ask) (*Lock, error) {
	body := Ask{"request": rand.Text(), "at_most_for": atMost}
	maps.Copy(body, a)
	l := &Lock{Lock: name}
	err := c.ask(ctx, http.MethodPost, l, body)
	if valid := time.Duration(l.Valid) * time.Millisecond; err == nil && time.Until(l.Until) < valid/2 {
		err = c.Renew(ctx, l) // it was long in line: ask what is valid now
	}
	return l, err
}

// Renew prolongs l.
func (c *Client) Renew(ctx context.Context, l *Lock) error {
	return c.ask(ctx, http.MethodPut, l, Ask{"token": l.Token})
}

// Release gives l up, and says with done that the run of "once" is. After an error it was
// not held to the end, or nobody knows: undo what was done under it.
func (c *Client) Release(ctx context.Context, l *Lock, done bool) error {
	end := &Lock{Lock: l.Lock}
	return c.ask(context.WithoutCancel(ctx), http.MethodDelete, end, Ask{"token": l.Token, "done": done})
}

// ask fills in l from the answer.
func (c *Client) ask(ctx context.Context, method string, l *Lock, a Ask) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		asked := time.Now() // the answer counts from before the question
		err := c.once(ctx, method, l, body)
		if err == nil {
			l.Until = asked.Add(time.Duration(l.Valid) * time.Millisecond)
			return nil
		}
		if r, ok := errors.AsType[*Refusal](err); try == tries || ok && r.Status != http.StatusServiceUnavailable {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

func (c *Client) once(ctx context.Context, method string, l *Lock, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.URL+"/locks/"+url.PathEscape(l.Lock), bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it has been read
	if resp.StatusCode == http.StatusOK {
		return json.NewDecoder(resp.Body).Decode(l)
	}
	r := &Refusal{Status: resp.StatusCode}
	if err := json.NewDecoder(resp.Body).Decode(r); err != nil {
		return fmt.Errorf("status %d: %w", resp.StatusCode, err)
	}
	return r
}
