package rig

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Redis is a redis-server of our own, without persistence.
type Redis struct {
	Addr  string
	Admin *redis.Client // for questions outside the measured windows

	cmd *exec.Cmd
	dir string
}

// StartRedis starts a redis-server on a free port and waits until it answers.
func StartRedis(ctx context.Context, binary string) (*Redis, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "soloist-bench-redis-")
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	r := &Redis{Addr: fmt.Sprintf("127.0.0.1:%d", port), dir: dir}
	r.cmd = exec.Command(binary, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "no", "--loglevel", "warning", "--maxclients", "15000", "--tcp-backlog", "4096")
	r.cmd.Stderr = os.Stderr
	if err := r.cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("start redis: %w", err)
	}
	r.Admin = redis.NewClient(&redis.Options{Addr: r.Addr, PoolSize: 1, MaxRetries: -1})
	deadline := time.Now().Add(5 * time.Second)
	for r.Admin.Ping(ctx).Err() != nil {
		if time.Now().After(deadline) || ctx.Err() != nil {
			r.Close()
			return nil, fmt.Errorf("start redis: no answer on %s", r.Addr)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return r, nil
}

// Close kills the server and removes its directory.
func (r *Redis) Close() {
	r.Admin.Close()
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
	os.RemoveAll(r.dir)
}

// CPUTime returns how long the server has run on a processor.
func (r *Redis) CPUTime() time.Duration { return CPUTime(r.cmd.Process.Pid) }

// Version returns the server's version.
func (r *Redis) Version(ctx context.Context) string {
	info, _ := r.info(ctx, "server")
	return info["redis_version"]
}

// Expiry returns when key expires, by the server's clock, which is this machine's.
// Redis lets others in from one millisecond later.
func (r *Redis) Expiry(ctx context.Context, key string) (time.Time, error) {
	ms, err := r.Admin.Do(ctx, "PEXPIRETIME", key).Int64()
	if err != nil {
		return time.Time{}, fmt.Errorf("read expiry of %s: %w", key, err)
	}
	if ms < 0 {
		return time.Time{}, fmt.Errorf("read expiry of %s: no such key, or no expiry (%d)", key, ms)
	}
	return time.UnixMilli(ms), nil
}

// ServerTime resets the server's statistics, and returns a function that tells how
// much time the server has spent on calls of the given commands since, and on how many.
func (r *Redis) ServerTime(ctx context.Context, commands []string) (func() (time.Duration, int, error), error) {
	if err := r.Admin.ConfigResetStat(ctx).Err(); err != nil {
		return nil, fmt.Errorf("reset statistics: %w", err)
	}
	return func() (time.Duration, int, error) {
		info, err := r.info(ctx, "commandstats")
		if err != nil {
			return 0, 0, err
		}
		var usec, calls int
		for _, c := range commands {
			for field := range strings.SplitSeq(info["cmdstat_"+c], ",") {
				name, value, _ := strings.Cut(field, "=")
				n, _ := strconv.Atoi(value)
				switch name {
				case "usec":
					usec += n
				case "calls":
					calls += n
				}
			}
		}
		return time.Duration(usec) * time.Microsecond, calls, nil
	}, nil
}

func (r *Redis) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := r.Admin.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("info %s: %w", section, err)
	}
	fields := map[string]string{}
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		if name, value, ok := strings.Cut(s.Text(), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}
