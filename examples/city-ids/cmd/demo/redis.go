package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// tick is how often the embedded server's clock moves.
const tick = time.Millisecond

// startRedis starts a Redis-compatible server in this process.
//
// Its clock is driven from here, because left to itself it would go on in the middle of
// a script, which Redis's doesn't: a key could expire between two commands of one script.
// Moving it takes the server's lock, which a script holds.
func startRedis() (url string, stop func(), err error) {
	m := miniredis.NewMiniRedis()
	m.SetTime(time.Now())
	m.ClockTTL(true) // keys expire by that clock
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return "", nil, fmt.Errorf("start the embedded Redis: %w", err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				m.SetTime(time.Now())
			}
		}
	})
	return "redis://" + m.Addr(), func() {
		close(done)
		wg.Wait()
		m.Close()
	}, nil
}
