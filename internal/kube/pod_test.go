package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/soloist-dev/soloist/internal/podmeta"
)

var pod = podmeta.Pod{Namespace: "shop", Name: "pod-a", UID: "uid-a"}

// serve returns a client of a server that answers each request with answer.
func serve(t *testing.T, answer http.HandlerFunc) *PodClient {
	t.Helper()
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	c, err := NewPodClient(&rest.Config{Host: srv.URL}, pod)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRequests(t *testing.T) {
	var got []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var o struct{ Kind string }
		_ = json.Unmarshal(body, &o)
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type")+" "+o.Kind)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-a"}}`)
	})
	for _, f := range []func(context.Context, []byte) error{c.PatchMarks, c.PatchStatus} {
		if err := f(t.Context(), []byte(`{"metadata":{"uid":"uid-a"}}`)); err != nil {
			t.Error(err)
		}
	}
	if err := c.CreateEvent(t.Context(), []byte(`{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e"}}`)); err != nil {
		t.Error(err)
	}
	want := []string{
		"PATCH /api/v1/namespaces/shop/pods/pod-a application/merge-patch+json ",
		"PATCH /api/v1/namespaces/shop/pods/pod-a/status application/strategic-merge-patch+json ",
		"POST /apis/events.k8s.io/v1/namespaces/shop/events application/json Event",
	}
	if !slices.Equal(got, want) {
		t.Errorf("sent\n%q, want\n%q", got, want)
	}
}

func TestErrorKinds(t *testing.T) {
	for reason, want := range map[string]string{
		"Forbidden": "forbidden", "Unauthorized": "unauthorized", "NotFound": "notfound", "Conflict": "conflict",
		"Invalid": "invalid", "ServiceUnavailable": "unavailable", "Timeout": "timeout", "Nonsense": "other", "": "other",
	} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":%q,"code":418}`, reason)
		})
		if got := kindOf(t, c.PatchMarks(t.Context(), []byte(`{}`))); got != want {
			t.Errorf("%s: kind %q, want %q", reason, got, want)
		}
	}
}

func TestNoServer(t *testing.T) {
	hang := make(chan struct{})
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	defer close(hang)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := kindOf(t, c.PatchMarks(ctx, []byte(`{}`))); got != "timeout" {
		t.Errorf("a server that hangs: kind %q", got)
	}
	dead, err := NewPodClient(&rest.Config{Host: "127.0.0.1:1"}, pod)
	if err != nil {
		t.Fatal(err)
	}
	if got := kindOf(t, dead.CreateEvent(t.Context(), []byte(`{"kind":"Event","apiVersion":"events.k8s.io/v1"}`))); got != "other" {
		t.Errorf("nobody there: kind %q", got)
	}
}

func TestUnknownPod(t *testing.T) {
	if _, err := NewPodClient(&rest.Config{}, podmeta.Pod{Namespace: "shop", Name: "pod-a"}); err == nil {
		t.Error("a pod without a UID was taken")
	}
}

func kindOf(t *testing.T, err error) string {
	t.Helper()
	var f *failure
	if !errors.As(err, &f) || !slices.Contains(Kinds(), f.ErrorKind()) {
		t.Fatalf("%v is of no known kind", err)
	}
	return f.ErrorKind()
}
