package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/bench/internal/rig"
	"github.com/soloist-dev/soloist/bench/internal/systems"
)

// grantLimit is how long a grant may take before a row fails.
const grantLimit = 30 * time.Second

// A crowd is a lock with one holder and n that wait, each with connections of its
// own. Whoever gives the lock back waits again, once another has it.
type crowd struct {
	server  *rig.Redis
	clients []systems.Client
	grants  chan grant
	holder  grant
	stop    context.CancelFunc
	wg      sync.WaitGroup
}

// grant is the lock in the hands of one member.
type grant struct {
	at   time.Time
	held systems.Held
	back chan struct{} // closed when it was given back
}

// gather starts a server and n+1 members, and returns when all have dialled and one holds.
func (b *bench) gather(ctx context.Context, s systems.System, n int, d time.Duration) (*crowd, error) {
	server, err := rig.StartRedis(ctx, b.server)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	c := &crowd{server: server, grants: make(chan grant, n+1), stop: stop}
	if c.clients, err = dial(ctx, s, server.Addr, n+1, d); err != nil {
		c.close()
		return nil, err
	}
	for _, client := range c.clients {
		c.wg.Go(func() { c.member(ctx, client) })
	}
	if c.holder, err = c.next(ctx); err != nil {
		c.close()
		return nil, fmt.Errorf("%s: first grant: %w", s.Name, err)
	}
	return c, nil
}

// dial opens n clients.
func dial(ctx context.Context, s systems.System, addr string, n int, d time.Duration) ([]systems.Client, error) {
	var clients []systems.Client
	for range n {
		c, err := s.Dial(ctx, addr, d)
		if err != nil {
			closeAll(clients)
			return nil, fmt.Errorf("%s: dial: %w", s.Name, err)
		}
		clients = append(clients, c)
	}
	return clients, nil
}

// closeAll closes clients side by side: some linger.
func closeAll(clients []systems.Client) {
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(c.Close)
	}
	wg.Wait()
}

func (c *crowd) member(ctx context.Context, client systems.Client) {
	for ctx.Err() == nil {
		held, err := client.Hold(ctx, "bench")
		at := time.Now()
		if err != nil {
			_ = rig.Sleep(ctx, 10*time.Millisecond)
			continue
		}
		g := grant{at, held, make(chan struct{})}
		c.grants <- g
		select {
		case <-g.back:
		case <-ctx.Done():
			_ = held.Release(context.Background())
			return
		}
	}
}

func (c *crowd) next(ctx context.Context) (grant, error) {
	limit := time.NewTimer(grantLimit)
	defer limit.Stop()
	select {
	case g := <-c.grants:
		return g, nil
	case <-limit.C:
		return grant{}, fmt.Errorf("nobody was granted the lock within %v", grantLimit)
	case <-ctx.Done():
		return grant{}, context.Cause(ctx)
	}
}

// handover gives the lock back and returns how long it took until another had it.
func (c *crowd) handover(ctx context.Context) (time.Duration, error) {
	old := c.holder
	start := time.Now()
	if err := old.held.Release(ctx); err != nil {
		return 0, fmt.Errorf("release: %w", err)
	}
	defer close(old.back) // who gave the lock back stays away: taking it again is no hand-over
	var err error
	if c.holder, err = c.next(ctx); err != nil {
		return 0, err
	}
	return c.holder.at.Sub(start), nil
}

// rest is how long a holder holds.
func rest() time.Duration { return 10*time.Millisecond + rand.N(20*time.Millisecond) }

// handovers makes n of them, each after a short random rest.
func (c *crowd) handovers(ctx context.Context, n int) (rig.Samples, error) {
	var s rig.Samples
	for range n {
		if err := rig.Sleep(ctx, rest()); err != nil {
			return nil, err
		}
		took, err := c.handover(ctx)
		if err != nil {
			return nil, err
		}
		s = append(s, took)
	}
	return s, nil
}

// close ends the members, the clients and the server. The server goes first where
// the members are many, so that nobody is granted anything any more.
func (c *crowd) close() {
	c.stop()
	c.server.Close()
	closeAll(c.clients)
	c.wg.Wait()
}

// roleHold holds locks until it is killed: SYSTEM ADDR LEASE PREFIX N.
func roleHold(ctx context.Context, args []string, stdout io.Writer) error {
	s, err := systems.Named(args[0])
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(args[4])
	if err != nil {
		return err
	}
	client, err := s.Dial(ctx, args[1], d)
	if err != nil {
		return err
	}
	errs := make(chan error, n)
	for i := range n {
		go func() { // received below
			_, err := client.Hold(ctx, lockName(args[3], i))
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			return err
		}
	}
	fmt.Fprintln(stdout, "held")
	rig.UntilOrphaned(ctx)
	return nil
}

func lockName(prefix string, i int) string { return prefix + "-" + strconv.Itoa(i) }
