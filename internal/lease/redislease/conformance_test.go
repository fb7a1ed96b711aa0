package redislease

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
	"github.com/soloist-dev/soloist/internal/redistest"
)

// open opens a Store for a test, with times that no machine is too slow for, and
// without a wait for the server, which has just been started.
func open(t testing.TB, url string, change ...func(*Options)) *Store {
	t.Helper()
	o := Options{
		URL: url, Lease: leasetest.Lease, Claim: leasetest.Claim,
		DelayedRestart: DelayOff, CallTimeout: time.Minute,
	}
	for _, c := range change {
		c(&o)
	}
	s, err := Open(o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// aclRule returns the rule that the package comment promises, for one server or a cluster.
func aclRule(t testing.TB, cluster bool) string {
	t.Helper()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var rule []string
	for line := range strings.Lines(string(doc)) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "//"))
		if strings.HasPrefix(line, "+cluster") && !cluster {
			continue
		}
		if strings.HasPrefix(line, "~") || len(rule) > 0 && strings.HasPrefix(line, "+") {
			rule = append(rule, line)
		}
	}
	if len(rule) == 0 {
		t.Fatal("no ACL rule in doc.go")
	}
	return strings.Join(rule, " ")
}

func TestConformance(t *testing.T) {
	for name, start := range map[string]func(*testing.T) (string, func(*Options)){
		"tcp": func(t *testing.T) (string, func(*Options)) {
			return redistest.Start(t).URL(), nil
		},
		"unix socket": func(t *testing.T) (string, func(*Options)) {
			return "unix://" + redistest.Start(t).Socket(), nil
		},
		"TLS": func(t *testing.T) (string, func(*Options)) {
			s := redistest.Start(t, redistest.TLS(), redistest.ConfigLines("tls-auth-clients yes"))
			return s.URL(), func(o *Options) { o.TLS = func() (*tls.Config, error) { return s.TLSConfig(), nil } }
		},
		"smallest ACL rule": func(t *testing.T) (string, func(*Options)) {
			s := redistest.Start(t, redistest.User("default", "off"),
				redistest.User("app", "on >secret resetchannels "+aclRule(t, false)))
			return s.URL(), func(o *Options) { o.Username, o.Password = "app", "secret" }
		},
		"password file": func(t *testing.T) (string, func(*Options)) {
			s := redistest.Start(t, redistest.RequirePass("p@ss word"))
			file := filepath.Join(t.TempDir(), "password")
			if err := os.WriteFile(file, []byte("p@ss word\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return "redis://" + s.Addr(), func(o *Options) { o.PasswordFile = file }
		},
		"sentinel": func(t *testing.T) (string, func(*Options)) {
			s := redistest.StartSentinels(t)
			return "redis://sentinels", func(o *Options) { o.Sentinels, o.Master = s.Addrs(), s.Name() }
		},
		"cluster, TLS, smallest ACL rule": func(t *testing.T) (string, func(*Options)) {
			c := redistest.StartCluster(t, redistest.TLS(), redistest.ConfigLines("tls-cluster yes", "tls-replication yes"),
				redistest.User("app", "on >secret resetchannels "+aclRule(t, true)))
			return "rediss://cluster", func(o *Options) {
				o.Cluster, o.Username, o.Password = c.Addrs()[:1], "app", "secret"
				o.TLS = func() (*tls.Config, error) { return c.Nodes()[0].TLSConfig(), nil }
			}
		},
		"prefix": func(t *testing.T) (string, func(*Options)) {
			return redistest.Start(t).URL(), func(o *Options) { o.Prefix = "other:prefix" }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.CheckLeaks(t)
			url, change := start(t)
			leasetest.Conformance(t, func(t *testing.T) lease.Store {
				if change == nil {
					return open(t, url)
				}
				return open(t, url, change)
			})
		})
	}
}
