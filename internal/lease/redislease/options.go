package redislease

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// DefaultPrefix begins every key and channel.
const DefaultPrefix = "soloist"

// DefaultClaim is how long a free slot is kept for the first in line.
const DefaultClaim = 100 * time.Millisecond

// DelayedRestart says what to do about a server that started less than a lease ago,
// and may have forgotten the leases that it had granted before.
type DelayedRestart string

const (
	DelayAuto DelayedRestart = "auto" // wait unless it has an append-only file
	DelayOn   DelayedRestart = "on"   // wait always
	DelayOff  DelayedRestart = "off"  // never wait
)

// Options configures a Store. The zero value of each field but URL and Lease is usable.
type Options struct {
	// URL is redis://, rediss:// (TLS) or unix://, as go-redis reads them.
	URL string
	// Sentinels are the addresses of those that know which server is Master now; the URL's
	// host then means nothing.
	Sentinels        []string
	Master           string
	SentinelPassword string // "": none
	// Cluster are the addresses of some nodes of a Redis Cluster, in place of the URL's host.
	Cluster []string
	// Username and Password take the place of the URL's, if set.
	Username, Password string
	// PasswordFile is read again for every new connection, so that a password can
	// change without a restart. White space around it is dropped.
	PasswordFile string
	// TLS is asked for each new connection by rediss://, so that certificates and authorities
	// can change without a restart. Without a ServerName that of the host counts. nil, or a
	// nil config: what the system trusts.
	TLS func() (*tls.Config, error)
	// Prefix of keys and channels; empty: DefaultPrefix.
	Prefix string
	// Lease is the longest lease that is usual here. After a restart that may have lost leases
	// nothing is acquired for this long, nor for as long as the lease that is asked for.
	Lease          time.Duration
	DelayedRestart DelayedRestart // "": DelayAuto
	// AllowEviction acquires on a server that may evict keys, and so forget locks.
	AllowEviction bool
	// Claim is how long a slot is kept for the next in line; 0: DefaultClaim.
	Claim time.Duration
	// CallTimeout bounds the reads and writes of calls without a deadline of their own, and
	// the pause between two attempts to subscribe. 0: 2 s.
	CallTimeout time.Duration
	// PoolSize bounds the connections for everything but renewals, which may use two
	// more, and the inbox, which has one of its own. 0: 4.
	PoolSize int
	Log      *slog.Logger // nil: discard
}

// dialTimeout bounds a lookup, a connection and its TLS handshake together. It is longer
// than a call, which does not wait for it: go-redis dials beside the call, and the next one
// finds the connection. A resolver waits 5 s before it repeats a lost query (resolv.conf(5)),
// and within a call's 2 s would never come to that.
const dialTimeout = 10 * time.Second

// quiet keeps go-redis from writing to stderr by itself: what it would say comes back as
// an error too.
var quiet = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

var errCredentials = errors.New("password file")

// dialer finds a peer that has gone without a word within about half a minute, also on
// the inbox's connection, which nothing is written to; go-redis would ping instead.
func (o *Options) dialer(r *redis.Options) func(context.Context, string, string) (net.Conn, error) {
	d := &net.Dialer{
		Timeout: r.DialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3,
		},
		Control: userTimeout(30 * time.Second),
	}
	if r.TLSConfig == nil {
		return d.DialContext
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c := &tls.Config{MinVersion: tls.VersionTLS12}
		if o.TLS != nil {
			own, err := o.TLS()
			if err != nil {
				return nil, err
			}
			if own != nil {
				c = own.Clone()
			}
		}
		if c.ServerName == "" {
			host, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			c.ServerName = host
		}
		return (&tls.Dialer{NetDialer: d, Config: c}).DialContext(ctx, network, addr)
	}
}
