package redistest_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/soloist-dev/soloist/internal/redistest"
)

// The client that Soloist uses finds nothing strange about the proxy, and learns of
// the faults what it would of real ones.
func TestGoRedis(t *testing.T) {
	t.Parallel()
	for _, protocol := range []int{2, 3} {
		redistest.CheckLeaks(t)
		s := redistest.Start(t, redistest.RequirePass("secret"))
		p := redistest.NewProxy(t, s)
		opts, err := redis.ParseURL(p.URL() + "/3")
		if err != nil {
			t.Fatal(err)
		}
		opts.Protocol, opts.MaxRetries, opts.ContextTimeoutEnabled = protocol, -1, true
		c := redis.NewClient(opts)
		ctx := t.Context()

		script := redis.NewScript(`return redis.call("INCR", KEYS[1])`)
		cut := p.On(redistest.Script(`return redis.call("INCR", KEYS[1])`), redistest.CutReply(), 1)
		if n, err := script.Run(ctx, c, []string{"n"}).Int(); !errors.Is(err, io.EOF) {
			t.Errorf("cut: %d, %v", n, err)
		}
		cut.Wait(1)
		dup := p.On(redistest.Name("EVALSHA"), redistest.Duplicate(0), 1)
		if n, err := script.Run(ctx, c, []string{"n"}).Int(); n < 2 || err != nil {
			t.Errorf("after the cut: %d, %v", n, err)
		}
		dup.WaitDone(1)
		if n, err := script.Run(ctx, c, []string{"n"}).Int(); n != 4 || err != nil {
			t.Errorf("after the duplicate: %d, %v", n, err)
		}

		sub := c.Subscribe(ctx, "a", "b")
		for range 2 {
			if m, err := sub.Receive(ctx); err != nil {
				t.Error(m, err)
			}
		}
		if _, err := c.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for range 100 {
				pipe.Publish(ctx, "b", "m")
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		for range 100 {
			if m, err := sub.ReceiveMessage(ctx); err != nil || m.Channel != "b" {
				t.Error(m, err)
			}
		}

		// Nothing comes back: the client's own time runs out.
		heal := p.BlackHole(redistest.ToClient)
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		if err := c.Set(short, "k", "v", 0).Err(); err == nil {
			t.Error("an answer from a black hole")
		}
		cancel()
		heal()
		if err := errors.Join(c.Set(ctx, "k", "v", 0).Err(), sub.Close(), c.Close()); err != nil {
			t.Error(err)
		}
		s.WaitClients(0)
	}
}
