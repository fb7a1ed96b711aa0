package systems

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// redislockRetry is the back-off of redislock's own README.
const redislockRetry = 100 * time.Millisecond

// goredisClient is a client with go-redis's defaults, but for a hello that only managed
// servers understand.
func goredisClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:                     addr,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// Redislock is github.com/bsm/redislock.
func Redislock() System {
	return System{
		Name: "redislock",
		Dial: func(_ context.Context, addr string, lease time.Duration) (Client, error) {
			c := goredisClient(addr)
			return &redislockClient{c, redislock.New(c), lease}, nil
		},
		Key:          func(lock string) string { return lock },
		PairCommands: []string{"evalsha"},
		Waits:        true,
	}
}

type redislockClient struct {
	client *redis.Client
	locker *redislock.Client
	lease  time.Duration
}

func (c *redislockClient) Hold(ctx context.Context, lock string) (Held, error) {
	// Without a deadline Obtain gives up after one lease.
	ctx, cancel := context.WithTimeout(ctx, 24*time.Hour)
	defer cancel()
	l, err := c.locker.Obtain(ctx, lock, c.lease, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(redislockRetry),
	})
	if err != nil {
		return nil, err
	}
	stop := keep(c.lease, func(ctx context.Context) { _ = l.Refresh(ctx, c.lease, nil) })
	return releaseFunc(func(ctx context.Context) error { stop(); return l.Release(ctx) }), nil
}

func (c *redislockClient) Pair(ctx context.Context, lock string) error {
	l, err := c.locker.Obtain(ctx, lock, c.lease, nil)
	if err != nil {
		return err
	}
	return l.Release(ctx)
}

func (c *redislockClient) Close() { c.client.Close() }

// Redsync is github.com/go-redsync/redsync on one server, with its default delays.
func Redsync() System {
	return System{
		Name: "redsync",
		Dial: func(_ context.Context, addr string, lease time.Duration) (Client, error) {
			c := goredisClient(addr)
			return &redsyncClient{c, redsync.New(goredis.NewPool(c)), lease}, nil
		},
		Key:          func(lock string) string { return lock },
		PairCommands: []string{"set", "evalsha"},
		Waits:        true,
	}
}

type redsyncClient struct {
	client *redis.Client
	sync   *redsync.Redsync
	lease  time.Duration
}

func (c *redsyncClient) Hold(ctx context.Context, lock string) (Held, error) {
	m := c.sync.NewMutex(lock, redsync.WithExpiry(c.lease), redsync.WithTries(1<<30))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	stop := keep(c.lease, func(ctx context.Context) { _, _ = m.ExtendContext(ctx) })
	return releaseFunc(func(ctx context.Context) error {
		stop()
		_, err := m.UnlockContext(ctx)
		return err
	}), nil
}

func (c *redsyncClient) Pair(ctx context.Context, lock string) error {
	m := c.sync.NewMutex(lock, redsync.WithExpiry(c.lease))
	if err := m.TryLockContext(ctx); err != nil {
		return err
	}
	_, err := m.UnlockContext(ctx)
	return err
}

func (c *redsyncClient) Close() { c.client.Close() }

// Rueidislock is github.com/redis/rueidis/rueidislock on one server, with NOLOOP,
// which its documentation recommends from Redis 7.0.5 on.
func Rueidislock() System {
	return System{
		Name: "rueidislock",
		Dial: func(_ context.Context, addr string, lease time.Duration) (Client, error) {
			locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
				ClientOption:   rueidis.ClientOption{InitAddress: []string{addr}},
				KeyValidity:    lease,
				KeyMajority:    1,
				NoLoopTracking: true,
				// The default of 20 ms is for going on to the next of several servers. With
				// it, a request that the machine delays leaves the waiter asleep.
				TryNextAfter: time.Second,
			})
			if err != nil {
				return nil, err
			}
			return rueidislockClient{locker}, nil
		},
		Key:          func(lock string) string { return "rueidislock:0:" + lock },
		PairCommands: []string{"evalsha"},
		Waits:        true,
	}
}

type rueidislockClient struct{ locker rueidislock.Locker }

func (c rueidislockClient) Hold(ctx context.Context, lock string) (Held, error) {
	held, release, err := c.locker.WithContext(ctx, lock)
	if err != nil {
		return nil, err
	}
	return releaseFunc(func(context.Context) error {
		err := held.Err() // not nil: lost before
		release()
		return err
	}), nil
}

func (c rueidislockClient) Pair(ctx context.Context, lock string) error {
	_, release, err := c.locker.TryWithContext(ctx, lock)
	if err != nil {
		return err
	}
	release()
	return nil
}

func (c rueidislockClient) Close() { c.locker.Close() }

// Raw is the limit: SET NX PX and a script that deletes the key if it is ours.
func Raw() System {
	return System{
		Name: "raw SET NX + Lua DEL",
		Dial: func(_ context.Context, addr string, lease time.Duration) (Client, error) {
			return &rawClient{goredisClient(addr), lease}, nil
		},
		PairCommands: []string{"set", "evalsha"},
	}
}

var rawDelete = redis.NewScript(
	`if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`)

type rawClient struct {
	client *redis.Client
	lease  time.Duration
}

func (c *rawClient) Hold(context.Context, string) (Held, error) {
	return nil, errors.ErrUnsupported
}

func (c *rawClient) Pair(ctx context.Context, lock string) error {
	const token = "0123456789abcdef0123456789abcdef"
	ok, err := c.client.SetNX(ctx, lock, token, c.lease).Result()
	if err != nil {
		return err
	}
	if !ok {
		return ErrNotHeld
	}
	return rawDelete.Run(ctx, c.client, []string{lock}, token).Err()
}

func (c *rawClient) Close() { c.client.Close() }

type releaseFunc func(ctx context.Context) error

func (f releaseFunc) Release(ctx context.Context) error { return f(ctx) }
