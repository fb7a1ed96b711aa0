package redislease

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
	"github.com/soloist-dev/soloist/internal/redistest"
)

const (
	long    = leasetest.Lease // does not run out in a test
	patient = time.Minute     // for what must happen, on a busy machine
)

func request(lock string) lease.Request {
	return lease.Request{
		Claim:  lease.Claim{Lock: lock, Token: lease.NewToken()},
		Holder: lease.Identity{Name: "pod", PodUID: "uid", Address: "10.0.0.1:4040"},
		TTL:    long,
	}
}

func acquire(t testing.TB, s *Store, r lease.Request) lease.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return g
}

func refused(t testing.TB, s *Store, r lease.Request) lease.Held {
	t.Helper()
	g, err := s.Acquire(t.Context(), r)
	var held *lease.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("Acquire: %+v, %v; want a *HeldError", g, err)
	}
	return held.Held
}

func release(t testing.TB, s *Store, c lease.Claim, want bool) {
	t.Helper()
	if got, err := s.Release(t.Context(), c); err != nil || got != want {
		t.Fatalf("Release: %v, %v; want %v", got, err, want)
	}
}

// waiting returns a request that stands in line for a held lock, and its inbox.
func waiting(t testing.TB, s *Store, lock string) (lease.Request, lease.Inbox) {
	t.Helper()
	in, err := s.Join(t.Context(), lock)
	if err != nil {
		t.Fatalf("Join: %v", err)
	}
	t.Cleanup(in.Leave)
	r := request(lock)
	r.Waiter = in.Waiter
	refused(t, s, r)
	return r, in
}

// called waits until a waiter is told to look again at once.
func called(t testing.TB, in lease.Inbox) {
	t.Helper()
	limit := time.NewTimer(patient)
	defer limit.Stop()
	for {
		select {
		case n := <-in.Notices:
			if n.Now {
				return
			}
		case <-limit.C:
			t.Fatalf("waiter %s was not called within %v", in.Waiter, patient)
		}
	}
}

// until polls until what is awaited has happened.
func until(t testing.TB, what string, happened func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	for !happened() {
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s: not within %v", what, patient)
		}
	}
}

// wantKind wants an error of a kind, which is no verdict.
func wantKind(t testing.TB, what string, err error, kind string) {
	t.Helper()
	var e *lease.StoreError
	if !errors.As(err, &e) || e.Kind != kind || e.ErrorKind() != kind {
		t.Errorf("%s: error %v, want one of kind %s", what, err, kind)
	}
	if lease.IsVerdict(err) {
		t.Errorf("%s: %v is a verdict", what, err)
	}
}

// everyOp calls all four methods, Extend with a lease that is held and Acquire for a lock
// that is free, and returns their errors.
func everyOp(ctx context.Context, s *Store, g lease.Grant) map[string]error {
	_, acquire := s.Acquire(ctx, request(g.Lock+"-free"))
	_, extend := s.Extend(ctx, g, lease.Extension{TTL: long})
	_, inspect := s.Inspect(ctx, g.Lock)
	_, release := s.Release(ctx, request(g.Lock).Claim)
	return map[string]error{"acquire": acquire, "extend": extend, "inspect": inspect, "release": release}
}

// expires wants every key to expire, and returns how many there are (B34, B39).
func expires(t testing.TB, srv *redistest.Server) int {
	t.Helper()
	keys, _ := srv.Must("KEYS", "*").([]any)
	for _, key := range keys {
		if pttl := srv.Must("PTTL", key); pttl == int64(-1) {
			t.Errorf("key %v never expires", key)
		}
	}
	return len(keys)
}
