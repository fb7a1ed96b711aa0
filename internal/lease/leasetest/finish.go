package leasetest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// Finish implements [lease.Finisher].
func (p *Process) Finish(ctx context.Context, c lease.Claim, f lease.Finish) (bool, error) {
	if err := judge(ctx, c, time.Second); err != nil {
		return false, err
	}
	if f.Done != "" {
		if err := judgeRun(f.Done, f.Keep); err != nil {
			return false, err
		}
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.m.counts["release"]++
	return p.m.releaseScript(c, f), nil
}

func judgeRun(run string, keep time.Duration) error {
	if strings.ContainsFunc(run, func(r rune) bool { return r <= ' ' || r > '~' }) || keep < time.Millisecond {
		return fmt.Errorf("%w: run %q, kept for %v", lease.ErrInvalid, run, keep)
	}
	return nil
}

// Done implements [lease.Finisher].
func (p *Process) Done(ctx context.Context, lock, run string) (*lease.Run, error) {
	if err := judgeRun(run, time.Second); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, noAnswer(ctx)
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.m.counts["done"]++
	r, ok := p.m.record(lock, p.m.now()).runs[run]
	if !ok {
		return nil, nil //nolint:nilnil // documented
	}
	done := r.Run
	return &done, nil
}

// Revoke ends what is held of a lock, as the method of redislease.Store.
func (p *Process) Revoke(ctx context.Context, lock string, force bool) (int, error) {
	if ctx.Err() != nil {
		return 0, noAnswer(ctx)
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.m.counts["revoke"]++
	return p.m.revokeScript(lock, force), nil
}

// Finish implements [lease.Finisher]. The store must be one.
func (l *Link) Finish(ctx context.Context, c lease.Claim, f lease.Finish) (bool, error) {
	return send(ctx, l, "release", c.Lock, func(ctx context.Context) (bool, error) {
		return l.store.(lease.Finisher).Finish(ctx, c, f)
	})
}

// Done implements [lease.Finisher]. The store must be one.
func (l *Link) Done(ctx context.Context, lock, run string) (*lease.Run, error) {
	return send(ctx, l, "done", lock, func(ctx context.Context) (*lease.Run, error) {
		return l.store.(lease.Finisher).Done(ctx, lock, run)
	})
}
