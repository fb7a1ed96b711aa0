package redislease

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// dial returns a client of the servers that o names. It does not connect.
func (s *Store) dial(r *redis.Options) {
	switch {
	case len(s.opt.Cluster) > 0:
		s.cluster = redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: s.opt.Cluster,
			NewClient: func(node *redis.Options) *redis.Client {
				node.OnConnect = s.node(node.Addr).onConnect
				return redis.NewClient(node)
			},
			MaxRedirects:           3,
			DisableRoutingPolicies: true, // they would ask for COMMAND
			Dialer:                 r.Dialer, TLSConfig: r.TLSConfig, DisableIdentity: true, Protocol: r.Protocol,
			Username: r.Username, Password: r.Password, CredentialsProviderContext: r.CredentialsProviderContext,
			// A node that swallows what it is sent must not keep the others from being asked.
			MaxRetries: r.MaxRetries, DialTimeout: 2 * s.opt.CallTimeout, DialerRetries: r.DialerRetries,
			ReadTimeout: r.ReadTimeout, WriteTimeout: r.WriteTimeout, ContextTimeoutEnabled: true,
			PoolSize: r.PoolSize, PoolTimeout: r.PoolTimeout, MaxConcurrentDials: r.MaxConcurrentDials,
			ReadBufferSize: r.ReadBufferSize, WriteBufferSize: r.WriteBufferSize,
			MaintNotificationsConfig: r.MaintNotificationsConfig,
		})
		s.cluster.AddHook(relocate{s.cluster})
		s.client = s.cluster
	case len(s.opt.Sentinels) > 0:
		s.client = redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: s.opt.Master, SentinelAddrs: s.opt.Sentinels, SentinelPassword: s.opt.SentinelPassword,
			OnConnect: s.node("").onConnect,
			Dialer:    r.Dialer, TLSConfig: r.TLSConfig, DisableIdentity: true, Protocol: r.Protocol, DB: r.DB,
			Username: r.Username, Password: r.Password, CredentialsProviderContext: r.CredentialsProviderContext,
			MaxRetries: r.MaxRetries, DialTimeout: r.DialTimeout, DialerRetries: r.DialerRetries,
			ReadTimeout: r.ReadTimeout, WriteTimeout: r.WriteTimeout, ContextTimeoutEnabled: true,
			PoolSize: r.PoolSize, PoolTimeout: r.PoolTimeout, MaxConcurrentDials: r.MaxConcurrentDials,
			ReadBufferSize: r.ReadBufferSize, WriteBufferSize: r.WriteBufferSize,
		})
	default:
		r.OnConnect = s.node("").onConnect
		s.client = redis.NewClient(r)
	}
}

// node returns what is known of the server at an address; "" if there is but one at a time.
func (s *Store) node(addr string) *incarnation {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.nodes[addr]
	if in == nil {
		in = &incarnation{
			delay: s.opt.DelayedRestart, strict: !s.opt.AllowEviction, lease: s.opt.Lease, log: s.log,
			changed: s.resubscribe,
		}
		s.nodes[addr] = in
	}
	return in
}

// nodeOf returns what is known of the server that keeps a lock, and a client of it.
func (s *Store) nodeOf(ctx context.Context, lock string) (*incarnation, redis.Cmdable, error) {
	if s.cluster == nil {
		return s.node(""), s.client, nil
	}
	c, err := s.cluster.MasterForKey(ctx, s.key(lock, "fn"))
	if err != nil {
		return nil, nil, err
	}
	s.follow(lock, c.Options().Addr)
	return s.node(c.Options().Addr), c, nil
}

// translate makes go-redis's options of o. Time-outs and retries are ours alone: go-redis
// ignores a context's deadline unless told otherwise, and its own retry makes a lost
// reply look like a refusal (redis/go-redis#2985).
func (o *Options) translate() (*redis.Options, error) {
	r, err := redis.ParseURL(o.URL)
	if err != nil {
		var parse *url.Error // quotes the URL, which may hold a password
		if errors.As(err, &parse) {
			err = parse.Err
		}
		return nil, fmt.Errorf("store URL: %w", err)
	}
	if o.Username != "" {
		r.Username = o.Username
	}
	if o.Password != "" {
		r.Password = o.Password
	}
	if o.PasswordFile != "" {
		user := r.Username
		r.CredentialsProviderContext = func(context.Context) (string, string, error) {
			b, err := os.ReadFile(o.PasswordFile)
			if err != nil {
				return "", "", fmt.Errorf("%w: %w", errCredentials, err)
			}
			return user, strings.TrimSpace(string(b)), nil
		}
	}
	quiet()
	r.ContextTimeoutEnabled = true
	r.MaxRetries = -1
	r.DialerRetries = 1
	r.DialTimeout = dialTimeout
	r.ReadTimeout = o.CallTimeout
	r.WriteTimeout = o.CallTimeout
	r.PoolTimeout = o.CallTimeout
	r.DisableIdentity = true
	r.ReadBufferSize = 4096
	r.WriteBufferSize = 4096
	r.Protocol = 2 // no pushes: nothing here uses them
	r.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	r.Dialer = o.dialer(r)
	return r, nil
}
