package redislease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/soloist-dev/soloist/internal/lease"
)

// Release implements [lease.Store].
func (s *Store) Release(ctx context.Context, c lease.Claim) (bool, error) {
	return s.Finish(ctx, c, lease.Finish{})
}

// Finish implements [lease.Finisher].
func (s *Store) Finish(ctx context.Context, c lease.Claim, f lease.Finish) (bool, error) {
	err := judge(c, time.Second)
	if err == nil && f.Done != "" {
		err = judgeRun(f.Done, f.Keep)
	}
	if err != nil {
		return false, err
	}
	if err := s.place(ctx); err != nil {
		return false, failed("release", err)
	}
	defer s.leave()
	held, err := s.release(ctx, c, f)
	return held, failed("release", err)
}

func (s *Store) release(ctx context.Context, c lease.Claim, f lease.Finish) (bool, error) {
	keys, keep := s.keys(c), int64(0)
	if f.Done != "" {
		keys, keep = append(keys, s.runKey(c.Lock, f.Done)), f.Keep.Milliseconds()
	}
	n, err := releaseScript.Run(ctx, s.client, keys, string(c.Token), c.Waiter, s.claim,
		s.channels(c.Lock), c.Lock, f.AtLeast.Milliseconds(), keep, f.Done).Int64()
	return n == 1, err
}

func (s *Store) runKey(lock, run string) string { return s.key(lock, "done:"+run) }

func judgeRun(run string, keep time.Duration) error {
	if strings.ContainsFunc(run, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%w: run %q", lease.ErrInvalid, run)
	}
	if keep < time.Millisecond {
		return fmt.Errorf("%w: the record of a run kept for %v, must be at least 1ms", lease.ErrInvalid, keep)
	}
	return nil
}

// Done implements [lease.Finisher].
func (s *Store) Done(ctx context.Context, lock, run string) (*lease.Run, error) {
	if err := judgeRun(run, time.Second); err != nil {
		return nil, err
	}
	if err := s.place(ctx); err != nil {
		return nil, failed("done", err)
	}
	defer s.leave()
	v, err := s.client.Get(ctx, s.runKey(lock, run)).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil //nolint:nilnil // documented
	}
	if err != nil {
		return nil, failed("done", err)
	}
	r, err := parseRun(v)
	return r, failed("done", err)
}

// parseRun reads "<run> <fence> <at ms> <took ms> <name>".
func parseRun(s string) (*lease.Run, error) {
	f := strings.Split(s, " ")
	if len(f) != 5 {
		return nil, fmt.Errorf("%w: %d fields in the record of a run", errReply, len(f))
	}
	fence, err := strconv.ParseUint(f[1], 10, 64)
	at, err2 := strconv.ParseInt(f[2], 10, 64)
	took, err3 := strconv.ParseInt(f[3], 10, 64)
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, fmt.Errorf("%w: record of a run: %w", errReply, err)
	}
	return &lease.Run{Name: f[0], By: unfield(f[4]), Fence: fence, At: time.UnixMilli(at), Took: millis(took)}, nil
}

// Revoke ends what is held of a lock, whatever its holders say, and returns how many slots
// that were. Without force each holder is told at its next renewal that it has lost, and
// others wait until its lease has run out. With force others may have it at once, while
// the holder still believes: only the fence, which rises, then guards the data. It blocks
// and fails as the methods of a [lease.Store] do; repeated it may find nothing to revoke.
func (s *Store) Revoke(ctx context.Context, lock string, force bool) (int, error) {
	info, err := s.Inspect(ctx, lock)
	if err != nil || len(info.Holders) == 0 {
		return 0, err
	}
	if err := s.place(ctx); err != nil {
		return 0, failed("revoke", err)
	}
	defer s.leave()
	forced := 0
	if force {
		forced = 1
	}
	n, err := revokeScript.Run(ctx, s.client, s.keys(lease.Claim{Lock: lock, Slots: info.Slots}),
		forced, s.claim, s.channels(lock), lock).Int()
	return n, failed("revoke", err)
}

// Locks returns the names of all locks that the store remembers, in no order. One that
// comes or goes meanwhile may be missed. It looks at every key of the database, a thousand
// at a time, and blocks until ctx is done at most.
func (s *Store) Locks(ctx context.Context) ([]string, error) {
	if err := s.place(ctx); err != nil {
		return nil, failed("list", err)
	}
	defer s.leave()
	before, after := s.prefix+":{", "}:fn"
	var mu sync.Mutex
	names := map[string]bool{} // SCAN may name a key twice
	scan := func(ctx context.Context, c *redis.Client) error {
		keys := c.Scan(ctx, 0, escape(before)+"*"+after, 1000).Iterator()
		for keys.Next(ctx) {
			mu.Lock()
			names[strings.TrimSuffix(strings.TrimPrefix(keys.Val(), before), after)] = true
			mu.Unlock()
		}
		return keys.Err()
	}
	var err error
	switch c := s.client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, scan)
	case *redis.Client:
		err = scan(ctx, c)
	}
	if err != nil {
		return nil, failed("list", err)
	}
	return slices.Collect(maps.Keys(names)), nil
}

// escape makes s mean itself in a pattern.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}
