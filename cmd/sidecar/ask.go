package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/soloist-dev/soloist/internal/config"
)

// askAgain is how long wait pauses between two tries.
const askAgain = 10 * time.Millisecond

// leader asks the sidecar of this pod whether it leads now.
func leader(ctx context.Context, p program) int {
	code, body, err := p.ask(ctx, http.MethodGet, "/leader", nil)
	switch {
	case err != nil:
		return p.fail(err)
	case code != http.StatusOK && code != http.StatusServiceUnavailable:
		return p.fail(refusal(code, body))
	}
	fmt.Fprintln(p.stdout, string(bytes.TrimSpace(body)))
	if code != http.StatusOK {
		return config.ExitFailed
	}
	return config.ExitOK
}

// resign ends the term of the sidecar of this pod.
func resign(ctx context.Context, p program) int {
	body := map[string]any{}
	if p.Request.Done {
		body["done"] = true
	}
	if p.Request.HoldOff != nil {
		body["hold_off"] = p.Request.HoldOff.String()
	}
	if p.Request.Fence != 0 {
		body["fence"] = p.Request.Fence
	}
	code, answer, err := p.ask(ctx, http.MethodPost, "/resign", body)
	switch {
	case err != nil:
		return p.fail(err)
	case code != http.StatusAccepted:
		return p.fail(refusal(code, answer))
	}
	return config.ExitOK
}

// wait asks the sidecar of this pod until it answers.
func wait(ctx context.Context, p program) int {
	ctx, cancel := context.WithTimeout(ctx, p.Request.Timeout)
	defer cancel()
	for {
		code, _, err := p.ask(ctx, http.MethodGet, "/status", nil)
		if err == nil && code == http.StatusOK {
			return config.ExitOK
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			if err == nil {
				err = fmt.Errorf("the sidecar at %s answered %d", p.HTTP.Address, code)
			}
			return p.fail(err)
		}
	}
}

// drain tells the sidecar of this pod that the pod is about to end.
func drain(ctx context.Context, p program) int {
	code, answer, err := p.ask(ctx, http.MethodPost, "/drain", nil)
	switch {
	case err != nil:
		return p.fail(err)
	case code != http.StatusAccepted:
		return p.fail(refusal(code, answer))
	}
	return config.ExitOK
}

// ask sends one request to the sidecar of this pod.
func (p program) ask(ctx context.Context, method, path string, body any) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Request.Timeout)
	defer cancel()
	u := url.URL{Scheme: "http", Host: p.HTTP.Address, Path: path}
	if len(p.Elections) > 0 {
		u.RawQuery = url.Values{"lock": {p.Elections[0].Lock}}.Encode()
	}
	var content io.Reader = http.NoBody
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), content)
	if err != nil {
		return 0, nil, err
	}
	// No proxy: the sidecar is on loopback, whatever the environment says.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return 0, nil, fmt.Errorf("no answer from the sidecar at %s: %w", p.HTTP.Address, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return resp.StatusCode, answer, err
}

// refusal reads the body of an error.
func refusal(code int, body []byte) error {
	var e struct{ Error, Message string }
	if json.Unmarshal(body, &e) != nil || e.Error == "" {
		return fmt.Errorf("the sidecar answered %d", code)
	}
	return fmt.Errorf("%s: %s", e.Error, e.Message)
}
