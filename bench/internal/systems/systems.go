// Package systems puts Soloist and its peers behind one small interface, each used
// as its own documentation shows.
package systems

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrNotHeld is returned by Pair when somebody else holds the lock.
var ErrNotHeld = errors.New("systems: lock held by another")

// A System is a way to lock on Redis.
type System struct {
	Name string
	// Dial opens a client with connections of its own, as another process would have.
	Dial func(ctx context.Context, addr string, lease time.Duration) (Client, error)
	// Key is the Redis key with whose end the lease ends.
	Key func(lock string) string
	// PairCommands are the commands, as INFO names them, that a Pair sends.
	PairCommands []string
	// Waits says whether Hold works.
	Waits bool
}

// A Client locks. It is safe for concurrent use.
type Client interface {
	// Hold waits for the lock as the library waits, and then keeps it until it is
	// released. It returns an error only when ctx is done or the client can't go on.
	Hold(ctx context.Context, lock string) (Held, error)
	// Pair takes the lock without waiting and gives it back.
	Pair(ctx context.Context, lock string) error
	Close()
}

// Held is a lock that is kept.
type Held interface {
	// Release gives the lock back; it returns when the server has answered.
	Release(ctx context.Context) error
}

// All lists the systems: ours first, the bare limit last.
func All() []System {
	return []System{Soloist(), SoloistStore(), Rueidislock(), Redislock(), Redsync(), Raw()}
}

// Named returns the system of that name.
func Named(name string) (System, error) {
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
	}
	return System{}, fmt.Errorf("no system is called %q", name)
}

// keep calls renew at each third of the lease until stop is called, which waits for
// a renewal under way: what a user of a library without renewals writes.
func keep(lease time.Duration, renew func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // stop waits for it
		defer close(done)
		t := time.NewTicker(lease / 3)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				renew(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// Quiet keeps go-redis from logging: servers come and go here.
func Quiet() { redis.SetLogger(quiet{}) }

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
