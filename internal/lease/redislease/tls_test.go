package redislease

import (
	"crypto/tls"
	"errors"
	"testing"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/redistest"
)

// What a connection trusts, and shows, is read when it is made: a store that was opened too
// early comes right by itself, and a term outlives what it was opened with.
func TestCertificatesChange(t *testing.T) {
	srv, other := redistest.Start(t, redistest.TLS()), redistest.Start(t, redistest.TLS())
	configs := make(chan *tls.Config, 1)
	s := open(t, srv.URL(), func(o *Options) {
		o.TLS = func() (*tls.Config, error) {
			c := <-configs
			configs <- c
			if c == nil {
				return nil, errors.New("no such file")
			}
			return c, nil
		}
	})
	change := func(c *tls.Config) { configs <- c }

	change(other.TLSConfig())
	if _, err := s.Acquire(t.Context(), request("L")); err == nil || lease.IsVerdict(err) {
		t.Errorf("with a stranger's authority: %v", err)
	}
	<-configs
	change(srv.TLSConfig())
	g := acquire(t, s, request("L"))
	<-configs
	change(nil)
	if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: long}); err != nil {
		t.Errorf("on a connection that was there: %v", err)
	}
	srv.Must("CLIENT", "KILL", "TYPE", "normal")
	if _, err := s.Extend(t.Context(), g, lease.Extension{TTL: long}); err == nil || lease.IsVerdict(err) {
		t.Errorf("on a new one without a file: %v", err)
	}
	<-configs
	change(srv.TLSConfig())
	until(t, "a new connection", func() bool {
		_, err := s.Extend(t.Context(), g, lease.Extension{TTL: long})
		return err == nil
	})
}
