package redistest

import (
	"testing"
	"time"
)

func TestCheckLeaks(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	defer close(stop)
	stuck := func() { <-stop }

	// Of this test here, and so none of the other's business.
	go stuck()
	r := record(t, func(t testing.TB) {
		CheckLeaks(t)
		ended := make(chan struct{})
		go func() { <-ended }()
		close(ended)
	})
	if r.Failed() {
		t.Error(r.failures)
	}
	r = record(t, func(t testing.TB) {
		checkLeaks(t, 100*time.Millisecond)
		go func() { go stuck() }()
	})
	r.wantFailure("TestCheckLeaks.func")
	// One failure is enough.
	r = record(t, func(t testing.TB) {
		CheckLeaks(t)
		go stuck()
		t.Errorf("on purpose")
	})
	r.wantFailure("on purpose")
}
