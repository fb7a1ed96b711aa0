package main

import (
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// startRedis starts a Redis-compatible server in this process.
//
// Its clock is driven from here: it moves before each command that a client sends, but
// not before those of a script. Left to itself it would go on in the middle of a script,
// which Redis's doesn't, and a key could expire between two commands of one script.
func startRedis() (url string, stop func(), err error) {
	m := miniredis.NewMiniRedis()
	m.SetTime(time.Now())
	m.ClockTTL(true) // keys expire by that clock
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return "", nil, fmt.Errorf("start the embedded Redis: %w", err)
	}
	m.Server().SetPreHook(func(*server.Peer, string, ...string) bool {
		if m.TryLock() { // else a script runs, perhaps the one that sends this command
			m.Unlock()
			m.SetTime(time.Now())
		}
		return false // go on with the command
	})
	return "redis://" + m.Addr(), m.Close, nil
}
