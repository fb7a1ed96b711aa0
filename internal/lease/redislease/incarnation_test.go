package redislease

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/redistest"
)

// fresh opens a store as a sidecar does, with a wait after a restart.
func fresh(t *testing.T, url string, mode DelayedRestart, longest time.Duration) *Store {
	return open(t, url, func(o *Options) { o.DelayedRestart, o.Lease = mode, longest })
}

// waitError returns the time that an Acquire is told to wait, 0 if it is granted.
func waitError(t *testing.T, s *Store, r lease.Request) time.Duration {
	t.Helper()
	_, err := s.Acquire(t.Context(), r)
	var wait *lease.WaitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &wait) || wait.For <= 0 || wait.Reason == "":
		t.Fatalf("Acquire: %v, want a *WaitError", err)
	}
	return wait.For
}

// A server that has just started is waited for, by mode and by what it keeps.
func TestDelayedRestart(t *testing.T) {
	for name, c := range map[string]struct {
		mode  DelayedRestart
		opts  []redistest.Option
		waits bool
	}{
		"auto, nothing kept":     {DelayAuto, nil, true},
		"no mode is auto":        {"", nil, true},
		"auto, snapshots":        {DelayAuto, []redistest.Option{redistest.ConfigLines("save 1 1")}, true},
		"auto, append-only file": {DelayAuto, []redistest.Option{redistest.AppendOnly()}, false},
		"on, append-only file":   {DelayOn, []redistest.Option{redistest.AppendOnly()}, true},
		"off, nothing kept":      {DelayOff, nil, false},
		"auto, INFO not allowed": {DelayAuto, []redistest.Option{redistest.User("default", "on nopass ~* &* +@all -info")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t, c.opts...)
			s := fresh(t, srv.URL(), c.mode, long)
			wait := waitError(t, s, request("L"))
			if (wait > 0) != c.waits || wait > long+long/50 {
				t.Errorf("told to wait %v", wait)
			}
			if !c.waits {
				return
			}
			if wait < long/2 {
				t.Errorf("told to wait %v, for leases of up to %v", wait, long)
			}
			// Nothing stays behind of the try that opened the connection.
			if v := srv.Must("EXISTS", "soloist:{L}:lk"); v != int64(0) {
				t.Error("the lock is held")
			}
			// Only new leases wait.
			if _, err := s.Inspect(t.Context(), "L"); err != nil {
				t.Errorf("Inspect: %v", err)
			}
			if _, err := s.Extend(t.Context(), lease.Grant{Claim: request("L").Claim}, lease.Extension{TTL: long}); !errors.Is(err, lease.ErrLost) {
				t.Errorf("Extend: %v", err)
			}
		})
	}
}

// The wait ends, and a new connection to the same run does not begin another.
func TestDelayedRestartEnds(t *testing.T) {
	srv := redistest.Start(t)
	s := fresh(t, srv.URL(), DelayAuto, 1500*time.Millisecond)
	r := request("L")
	r.TTL = 1500 * time.Millisecond
	for wait := waitError(t, s, r); wait > 0; wait = waitError(t, s, r) {
		if wait > 1600*time.Millisecond {
			t.Fatalf("told to wait %v", wait)
		}
		<-time.After(wait)
		r.Token = lease.NewToken()
	}
	srv.Must("CLIENT", "KILL", "TYPE", "normal")
	until(t, "a new connection works", func() bool {
		_, err := s.Acquire(t.Context(), r)
		var wait *lease.WaitError
		if errors.As(err, &wait) {
			t.Fatalf("told to wait again: %v", err)
		}
		return err == nil
	})
}

// What was forgotten may have been as long as what is asked for.
func TestDelayedRestartOfALongerLease(t *testing.T) {
	srv := redistest.Start(t)
	s := fresh(t, srv.URL(), DelayAuto, time.Second)
	short, longer := request("short"), request("longer")
	short.TTL, longer.TTL = time.Second, long
	wait := func(r lease.Request) time.Duration {
		r.Token = lease.NewToken()
		return waitError(t, s, r)
	}
	if got := wait(short); got > 2*time.Second {
		t.Errorf("told to wait %v for a lease of a second", got)
	}
	if got := wait(longer); got < long/2 || got > long+long/50 {
		t.Errorf("told to wait %v for one of %v", got, long)
	}
	until(t, "a short one is granted", func() bool { return wait(short) == 0 })
	if got := wait(longer); got < long/2 {
		t.Errorf("told to wait %v for one of %v", got, long)
	}
}

// A restart under a store that is in use: without a file the leases are lost, and new
// ones wait; with one they live on.
func TestRestartUnderUse(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []redistest.Option
		mode  DelayedRestart
		keeps bool
		waits bool
	}{
		"forgets":                       {nil, DelayAuto, false, true},
		"forgets, and nobody waits":     {nil, DelayOff, false, false},
		"keeps":                         {[]redistest.Option{redistest.AppendOnly()}, DelayAuto, true, false},
		"keeps, and waits all the same": {[]redistest.Option{redistest.AppendOnly()}, DelayOn, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t, c.opts...)
			s := fresh(t, srv.URL(), DelayOff, long)
			r := request("L")
			g := acquire(t, s, r)
			s.node("").delay = c.mode
			srv.Restart()
			var lost error
			until(t, "an answer", func() bool {
				_, lost = s.Extend(t.Context(), g, lease.Extension{TTL: long})
				return lost == nil || lease.IsVerdict(lost)
			})
			if c.keeps != (lost == nil) || !c.keeps && !errors.Is(lost, lease.ErrLost) {
				t.Errorf("Extend: %v", lost)
			}
			next := request("other")
			if wait := waitError(t, s, next); c.waits != (wait > 0) {
				t.Errorf("told to wait %v", wait)
			}
			if c.waits {
				return
			}
			again := request("L")
			if c.keeps {
				refused(t, s, again)
			} else if n := acquire(t, s, again); n.Fence <= g.Fence {
				t.Errorf("fence %d after %d, on a server that forgot it", n.Fence, g.Fence)
			}
		})
	}
}

// A grant that turns out to come from a server that is too young is given back, and
// its token is burned: a release was sent for it (B1).
func TestB1_TokenOfAGrantGivenBack(t *testing.T) {
	srv := redistest.Start(t)
	s := fresh(t, srv.URL(), DelayOn, long)
	r := request("L")
	_, err := s.Acquire(t.Context(), r) // opens the connection, and so learns
	var wait *lease.WaitError
	if !errors.As(err, &wait) || !errors.Is(err, lease.ErrBurned) {
		t.Fatalf("Acquire: %v, want a *WaitError and ErrBurned", err)
	}
	if n := srv.Must("EXISTS", "soloist:{L}:lk"); n != int64(0) {
		t.Error("the lock is held")
	}
	_, err = s.Acquire(t.Context(), request("L"))
	if !errors.As(err, &wait) || errors.Is(err, lease.ErrBurned) {
		t.Errorf("Acquire: %v, want a *WaitError and a token that is as good as new", err)
	}
}

func TestB17_ServerThatEvicts(t *testing.T) {
	srv := redistest.Start(t, redistest.MaxMemory("100mb", "allkeys-lru"))
	s := open(t, srv.URL())
	if _, err := s.Inspect(t.Context(), "L"); err != nil { // opens the connection, and so learns
		t.Fatalf("Inspect: %v", err)
	}
	_, err := s.Acquire(t.Context(), request("L"))
	wantKind(t, "Acquire", err, KindEviction)
	if err != nil && !strings.Contains(err.Error(), "allkeys-lru") {
		t.Errorf("Acquire: %v does not name the policy", err)
	}
	lax := open(t, srv.URL(), func(o *Options) { o.AllowEviction = true })
	g := acquire(t, lax, request("L"))
	if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: long}); err != nil {
		t.Errorf("a lease that is held: %v", err)
	}
	srv.Must("CONFIG", "SET", "maxmemory-policy", "noeviction")
	until(t, "the change is seen", func() bool {
		_, err := s.Acquire(t.Context(), request("other"))
		return err == nil
	})
	// A limit without a policy, or a policy without a limit, evicts nothing.
	srv.Must("CONFIG", "SET", "maxmemory-policy", "volatile-ttl", "maxmemory", "0")
	acquire(t, open(t, srv.URL()), request("third"))
}
