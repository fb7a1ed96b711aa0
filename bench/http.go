package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/soloist-dev/soloist/bench/internal/systems"
)

// overHTTP is the system that an app in any language has: a sidecar of its own, asked over
// loopback. With slots > 0 its locks have as many.
func (b *bench) overHTTP(slots int) systems.System {
	return systems.System{
		Name:         "soloist, over HTTP",
		PairCommands: []string{"evalsha"},
		Waits:        true,
		Dial: func(ctx context.Context, addr string, d time.Duration) (systems.Client, error) {
			s, err := b.launch(ctx, addr, "--jobs-only")
			if err != nil {
				return nil, err
			}
			c := &httpClient{
				sidecar: s, lease: d, slots: slots,
				http: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}},
			}
			return c, c.untilReady(ctx)
		},
	}
}

type httpClient struct {
	sidecar *sidecar
	lease   time.Duration
	slots   int
	http    http.Client
}

func (c *httpClient) untilReady(ctx context.Context) error {
	for deadline := time.Now().Add(sidecarLimit); ; time.Sleep(time.Millisecond) {
		_, err := c.ask(ctx, http.MethodGet, "", nil)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			c.sidecar.kill()
			return fmt.Errorf("sidecar does not answer: %w; it wrote:\n%s", err, c.sidecar.log)
		}
	}
}

// ask sends a request about a lock, and returns its token if it was granted.
func (c *httpClient) ask(ctx context.Context, method, lock string, body map[string]any) (token string, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return "", err
	}
	path := "/locks"
	if lock != "" {
		path += "/" + lock
	}
	req, err := http.NewRequestWithContext(ctx, method, c.sidecar.url(path), bytes.NewReader(text))
	if err != nil {
		return "", err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var answer struct{ Token, Message string }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, answer.Message)
	}
	return answer.Token, nil
}

func (c *httpClient) acquire(ctx context.Context, lock string, wait time.Duration) (string, error) {
	body := map[string]any{"lease": c.lease.String()}
	if wait > 0 {
		body["wait"] = wait.String()
	}
	if c.slots > 0 {
		body["slots"] = c.slots
	}
	return c.ask(ctx, http.MethodPost, lock, body)
}

func (c *httpClient) release(ctx context.Context, lock, token string) error {
	_, err := c.ask(ctx, http.MethodDelete, lock, map[string]any{"token": token})
	return err
}

// Hold implements [systems.Client].
func (c *httpClient) Hold(ctx context.Context, lock string) (systems.Held, error) {
	token, err := c.acquire(ctx, lock, time.Hour)
	return heldOverHTTP{c, lock, token}, err
}

type heldOverHTTP struct {
	client      *httpClient
	lock, token string
}

// Release implements [systems.Held].
func (h heldOverHTTP) Release(ctx context.Context) error {
	return h.client.release(ctx, h.lock, h.token)
}

// Pair implements [systems.Client].
func (c *httpClient) Pair(ctx context.Context, lock string) error {
	token, err := c.acquire(ctx, lock, 0)
	if err != nil {
		return err
	}
	return c.release(ctx, lock, token)
}

// Close implements [systems.Client].
func (c *httpClient) Close() {
	c.http.CloseIdleConnections()
	c.sidecar.kill()
}
