package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// maxReply is far above what one task's answer needs.
const maxReply = 64 << 10

// A Client writes to a [Store] over HTTP. Its methods block until the store has
// answered or ctx is done, and are safe for concurrent use.
type Client struct {
	URL  string       // of the store: http://HOST:PORT
	HTTP *http.Client // nil means http.DefaultClient
}

// Next returns the ID whose turn it is.
func (c *Client) Next(ctx context.Context) (int64, error) {
	var body next
	status, err := c.do(ctx, http.MethodGet, "/tasks/next", nil, &body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	if err != nil {
		return 0, fmt.Errorf("ask for the next city ID: %w", err)
	}
	return body.Next, nil
}

// Add hands t out. The error is a [*Refusal] if the store refused; after any other
// error t may have been recorded or not, and may be sent again.
func (c *Client) Add(ctx context.Context, t Task) error {
	var body Refusal
	status, err := c.do(ctx, http.MethodPost, "/tasks", t, &body)
	switch {
	case err == nil && status == http.StatusCreated:
		return nil
	case err == nil && status == http.StatusConflict:
		return &body
	case err == nil:
		err = fmt.Errorf("status %d", status)
	}
	return fmt.Errorf("hand out city ID %d: %w", t.CityID, err)
}

func (c *Client) do(ctx context.Context, method, path string, in, out any) (status int, err error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or of no use
	return resp.StatusCode, json.NewDecoder(io.LimitReader(resp.Body, maxReply)).Decode(out)
}
