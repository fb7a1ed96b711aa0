package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/examples/city-ids/tasks"
)

// fake is a sidecar and a task store without a network, so that it lives in a bubble.
// The sidecar's answer is computed when the question arrives, and then takes some time.
type fake struct {
	store tasks.Store

	mu       sync.Mutex
	fence    int64 // 0: another leads
	validFor time.Duration
	latency  time.Duration // of an answer of /leader
	failing  bool
	asked    int
	resigned []string            // bodies of /resign, with the number of tasks recorded by then
	streams  []*io.PipeWriter    // of /events
	onAdd    func() (lost error) // runs in the task store once a task is judged
}

func (f *fake) set(fence int64, validFor time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fence, f.validFor = fence, validFor
}

func (f *fake) RoundTrip(req *http.Request) (*http.Response, error) {
	switch {
	case req.Context().Err() != nil:
		return nil, req.Context().Err()
	case strings.HasPrefix(req.URL.Path, "/tasks"):
		w := &recorder{header: http.Header{}, status: http.StatusOK}
		tasks.NewHandler(&f.store).ServeHTTP(w, req)
		if f.onAdd != nil && req.Method == http.MethodPost {
			if err := f.onAdd(); err != nil {
				return nil, err
			}
		}
		return w.response(), nil
	case req.URL.Path == "/leader":
		return f.leader(req)
	case req.URL.Path == "/events":
		r, w := io.Pipe()
		f.mu.Lock()
		f.streams = append(f.streams, w)
		f.mu.Unlock()
		context.AfterFunc(req.Context(), func() { w.CloseWithError(req.Context().Err()) })
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: r}, nil
	case req.URL.Path == "/resign":
		body, _ := io.ReadAll(req.Body)
		f.mu.Lock()
		f.resigned = append(f.resigned, fmt.Sprintf("%s after %d", body, len(f.store.Record().Tasks)))
		f.fence = 0
		f.mu.Unlock()
		return answered(http.StatusAccepted, "{}"), nil
	}
	return answered(http.StatusNotFound, "{}"), nil
}

func (f *fake) leader(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.asked++
	fence, validFor, latency, failing := f.fence, f.validFor, f.latency, f.failing
	f.mu.Unlock()
	select {
	case <-time.After(latency):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	switch {
	case failing:
		return nil, errors.New("connection refused")
	case fence == 0:
		return answered(http.StatusServiceUnavailable, `{"leader":false,"fence":3}`), nil
	default:
		return answered(http.StatusOK, fmt.Sprintf(`{"leader":true,"fence":%d,"valid_for_ms":%d}`,
			fence, validFor.Milliseconds())), nil
	}
}

func answered(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// recorder is an http.ResponseWriter.
type recorder struct {
	header http.Header
	status int
	body   strings.Builder
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
func (r *recorder) response() *http.Response    { return answered(r.status, r.body.String()) }
