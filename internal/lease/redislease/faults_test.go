package redislease

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/redistest"
)

// A server that answers with an error has not answered the question (B37).
func TestB37_ErrorsAreNoVerdicts(t *testing.T) {
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv)
	s := open(t, p.URL())
	g := acquire(t, s, request("L"))
	if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: long}); err != nil {
		t.Fatal(err)
	}
	for text, kind := range map[string]string{
		"LOADING Redis is loading the dataset in memory":                                       KindLoading,
		"READONLY You can't write against a read only replica. script: f00, on @user_script:1": KindReadOnly,
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":     KindReadOnly,
		"OOM command not allowed when used memory > 'maxmemory'. script: f00":                  KindMemory,
		"MISCONF Redis is configured to save RDB snapshots, but":                               KindMisconf,
		"NOREPLICAS Not enough good replicas to write.":                                        KindMisconf,
		"NOAUTH Authentication required.":                                                      KindAuth,
		"WRONGPASS invalid username-password pair or user is disabled.":                        KindAuth,
		"NOPERM this user has no permissions to run the 'evalsha' command":                     KindNoPerm,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                    KindWrongType,
		"MOVED 3999 127.0.0.1:6381":                                                            KindCluster,
		"CLUSTERDOWN The cluster is down":                                                      KindFailover,
		"CROSSSLOT Keys in request don't hash to the same slot":                                KindCluster,
		"TRYAGAIN Multiple keys request during rehashing of slot":                              KindFailover,
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL":                   KindBusy,
		"ERR max number of clients reached":                                                    lease.KindOther,
		"ERR something new":                                                                    lease.KindOther,
		// As before 7.0 said it, from within a script.
		"ERR Error running script (call to f_1f): @user_script:9: -OOM command not allowed when used memory":         KindMemory,
		"ERR Error running script (call to f_1f): @user_script:9: -READONLY You can't write against a read only":     KindReadOnly,
		"ERR Error running script (call to f_1f): @user_script:9: @user_script: 9: -MISCONF Redis is configured":     KindMisconf,
		"ERR Error running script (call to f_1f): @user_script:9: -NOPERM this user has no permissions to run 'get'": KindNoPerm,
	} {
		rule := p.On(redistest.Name("EVALSHA", "EVAL", "HMGET"), redistest.ReplyError(text), redistest.Always)
		for op, err := range everyOp(t.Context(), s, g) {
			wantKind(t, op+": "+text, err, kind)
		}
		rule.Remove()
	}
	if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: long}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// The same from real servers, as far as one can be brought to it.
func TestB37_RealErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		opts []redistest.Option
		do   func(*redistest.Server)
		kind string
		fine map[string]bool // operations that work all the same
	}{
		{
			name: "out of memory", kind: KindMemory, fine: map[string]bool{"extend": true, "inspect": true, "release": true},
			do: func(s *redistest.Server) { s.Must("CONFIG", "SET", "maxmemory", "1") },
		},
		{
			name: "replica", kind: KindReadOnly, fine: map[string]bool{"inspect": true},
			do: func(s *redistest.Server) { s.Must("REPLICAOF", "127.0.0.1", "1") },
		},
		{
			name: "no replicas", kind: KindMisconf, fine: map[string]bool{"inspect": true},
			do: func(s *redistest.Server) { s.Must("CONFIG", "SET", "min-replicas-to-write", "1") },
		},
		{
			name: "stale replica", kind: KindReadOnly,
			do: func(s *redistest.Server) {
				s.Must("CONFIG", "SET", "replica-serve-stale-data", "no")
				s.Must("REPLICAOF", "127.0.0.1", "1")
			},
		},
		{
			name: "no permission", kind: KindNoPerm,
			do: func(s *redistest.Server) {
				s.Must("ACL", "SETUSER", "default", "-zadd", "-hget", "-hmget", "-hset", "-get")
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := redistest.Start(t, c.opts...)
			s := open(t, srv.URL())
			g := acquire(t, s, request("L"))
			c.do(srv)
			for op, err := range everyOp(t.Context(), s, g) {
				if c.fine[op] && (err == nil || errors.Is(err, lease.ErrHeld)) {
					continue
				}
				wantKind(t, op, err, c.kind)
			}
		})
	}
}

func TestWrongPassword(t *testing.T) {
	srv := redistest.Start(t, redistest.RequirePass("right"))
	for name, change := range map[string]func(*Options){
		"none":  func(*Options) {},
		"wrong": func(o *Options) { o.Password = "wrong-and-secret" },
	} {
		s := open(t, "redis://"+srv.Addr(), change)
		for op, err := range everyOp(t.Context(), s, lease.Grant{Claim: request("L").Claim}) {
			wantKind(t, name+" "+op, err, KindAuth)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := s.Join(ctx, "L")
		cancel()
		if lease.IsVerdict(err) || err == nil {
			t.Errorf("Join: %v", err)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv)
	s := open(t, p.URL())
	g := acquire(t, s, request("L"))
	accept := p.Refuse()
	p.CloseAll()
	until(t, "connection refused", func() bool {
		_, err := s.Extend(t.Context(), g, lease.Extension{TTL: long})
		if lease.IsVerdict(err) {
			t.Fatalf("Extend: %v", err)
		}
		var e *lease.StoreError
		return errors.As(err, &e) && e.Kind == lease.KindRefused
	})
	accept()
	until(t, "connects again", func() bool {
		_, err := s.Extend(t.Context(), g, lease.Extension{TTL: long})
		return err == nil
	})
	gone := open(t, "unix://"+t.TempDir()+"/none")
	for op, err := range everyOp(t.Context(), gone, g) {
		wantKind(t, op, err, lease.KindRefused)
	}
}

// A deadline is obeyed while the server is silent, and no longer.
func TestSilentServer(t *testing.T) {
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv)
	s := open(t, p.URL())
	g := acquire(t, s, request("L"))
	if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: long}); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []redistest.Direction{redistest.ToServer, redistest.ToClient, redistest.Both} {
		heal := p.BlackHole(dir)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		started := time.Now()
		for op, err := range everyOp(ctx, s, g) {
			wantKind(t, op, err, lease.KindTimeout)
		}
		if took := time.Since(started); took > patient/2 {
			t.Errorf("four calls with 50 ms in all took %v", took)
		}
		cancel()
		p.CloseAll()
		heal()
		until(t, "works again", func() bool {
			_, err := s.Extend(t.Context(), g, lease.Extension{TTL: long})
			return err == nil
		})
	}
}

// A slow server holds up one renewal, not the next: that has another connection.
func TestRenewalsAreNotQueuedBehindTheHungOne(t *testing.T) {
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv)
	s := open(t, p.URL())
	g := acquire(t, s, request("L"))
	if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: long}); err != nil {
		t.Fatal(err)
	}
	hung := p.On(redistest.Name("EVALSHA"), redistest.LoseReply(), 1)
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	first := make(chan error, 1)
	go func() { // waited for below
		_, err := s.Extend(ctx, g, lease.Extension{TTL: long})
		first <- err
	}()
	hung.Wait(1)
	if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: long}); err != nil {
		t.Errorf("the next renewal: %v", err)
	}
	p.CloseAll()
	if err := <-first; err == nil || lease.IsVerdict(err) {
		t.Errorf("the one without an answer: %v", err)
	}
}

// A leader keeps its term while no new connection can be made: the one that brought its
// grant is alive, and renewals use it.
func TestRenewsOnTheConnectionOfItsGrant(t *testing.T) {
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv)
	s := open(t, p.URL())
	g := acquire(t, s, request("L"))
	p.Refuse()
	for range 3 {
		if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: long}); err != nil {
			t.Fatalf("Extend: %v", err)
		}
	}
}

// Calls that hang take every place there is for calls, and none of a renewal's.
func TestRenewalsDoNotWaitForCalls(t *testing.T) {
	srv := redistest.Start(t)
	p := redistest.NewProxy(t, srv)
	s := open(t, p.URL(), func(o *Options) { o.PoolSize = 3 })
	g := acquire(t, s, request("L"))
	hung := p.On(redistest.Name("EVALSHA"), redistest.LoseReply(), 3)
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	calls := make(chan error, 3)
	for i := range 3 {
		go func() { // waited for below
			_, err := s.Acquire(ctx, request(fmt.Sprint("hung", i)))
			calls <- err
		}()
	}
	hung.Wait(3)
	short, cancelShort := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancelShort()
	for op, err := range everyOp(short, s, g) {
		if op != "extend" {
			wantKind(t, op, err, lease.KindTimeout)
		}
	}
	for range 2 {
		if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: long}); err != nil {
			t.Errorf("Extend: %v", err)
		}
	}
	cancel()
	p.CloseAll()
	for range 3 {
		if err := <-calls; err == nil || lease.IsVerdict(err) {
			t.Errorf("a call without an answer: %v", err)
		}
	}
}
