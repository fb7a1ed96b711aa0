package redislease

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"
)

// relocate makes a cluster's client ask again who keeps what, after each call that brought no
// answer. By itself it does so when a node says MOVED, which one that has died does not, and
// otherwise once a minute: longer than a lease.
type relocate struct{ cluster *redis.ClusterClient }

// DialHook implements [redis.Hook].
func (relocate) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements [redis.Hook].
func (r relocate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		r.judge(ctx, err)
		return err
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (r relocate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		r.judge(ctx, err)
		return err
	}
}

func (r relocate) judge(ctx context.Context, err error) {
	var reply redis.Error
	if err != nil && !errors.As(err, &reply) {
		r.cluster.ReloadState(ctx) // does not block
	}
}
