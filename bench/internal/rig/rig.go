// Package rig is what every row of the benchmark stands on: Redis servers and
// child processes of its own, a count of the commands that clients send,
// statistics and tables.
package rig

import (
	"context"
	"fmt"
	"net"
	"time"
)

// FreePort returns a TCP port of the loopback address that was free a moment ago.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Sleep waits for d, or returns the cause that ended ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
