package redislease

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/soloist-dev/soloist/internal/lease"
)

// Inspect implements [lease.Store]. Its parts are read one after another: a holder that
// changes meanwhile is shown as before or as after.
func (s *Store) Inspect(ctx context.Context, lock string) (lease.Info, error) {
	if err := s.place(ctx); err != nil {
		return lease.Info{Lock: lock}, failed("inspect", err)
	}
	defer s.leave()
	info, err := s.inspect(ctx, lock)
	return info, failed("inspect", err)
}

func (s *Store) inspect(ctx context.Context, lock string) (lease.Info, error) {
	info := lease.Info{Lock: lock}
	pipe := s.client.Pipeline()
	known := pipe.HMGet(ctx, s.key(lock, "fn"), "f", "k", "n", "l")
	waiting := pipe.ZCard(ctx, s.key(lock, "q"))
	if _, err := pipe.Exec(ctx); err != nil {
		return info, err
	}
	info.Waiting = int(waiting.Val())
	var meta struct {
		Fence uint64 `redis:"f"`
		Kind  string `redis:"k"`
		Slots int    `redis:"n"`
		Last  string `redis:"l"`
	}
	if err := known.Scan(&meta); err != nil {
		return info, fmt.Errorf("%w: %w", errReply, err)
	}
	info.Fence = meta.Fence
	if meta.Last != "" {
		var err error
		if info.LastRun, err = parseRun(meta.Last); err != nil {
			return info, err
		}
	}
	if meta.Kind == slotted {
		info.Slots = max(meta.Slots, 1)
	}
	values := make([]*redis.StringCmd, max(info.Slots, 1))
	lefts := make([]*redis.DurationCmd, len(values))
	pipe = s.client.Pipeline()
	for slot := range values {
		lk := s.slotKey(lock, info.Slots, slot)
		values[slot], lefts[slot] = pipe.Get(ctx, lk), pipe.PTTL(ctx, lk)
	}
	_, _ = pipe.Exec(ctx) // its error is the first of these, and may be that a key is free
	for slot, value := range values {
		v, err := value.Result()
		if err == nil || errors.Is(err, redis.Nil) {
			err = lefts[slot].Err()
		}
		if err != nil {
			return info, err
		}
		left := lefts[slot].Val()
		if v == "" || strings.HasPrefix(v, "~") || left == -2 {
			continue
		}
		_, public, _ := strings.Cut(v, " ")
		h := lease.HolderInfo{Slot: slot, Left: left, Resting: strings.HasPrefix(v, "= ")}
		h.Fence, h.Holder = parsePublic(public)
		info.Holders = append(info.Holders, h)
	}
	return info, nil
}
