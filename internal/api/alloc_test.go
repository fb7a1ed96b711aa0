//go:build !race

package api

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// The race detector makes a sync.Pool forget, so this is not for it.
func TestLeaderAllocates(t *testing.T) {
	for path, limit := range map[string]float64{"/leader": 0, "/": 2, "/isLeader": 2} {
		h := New(Config{Elections: []Election{says(t, leading())}}).Handler()
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
		w := &sink{http.Header{}}
		if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); n > limit {
			t.Errorf("%s: %v allocations, want at most %v", path, n, limit)
		}
	}
}
