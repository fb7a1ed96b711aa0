package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/proto"
)

// Time passes between commands, and stands still in a script.
func TestRedisClock(t *testing.T) {
	url, stop, err := startRedis()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	c, err := proto.Dial(strings.TrimPrefix(url, "redis://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()

	began := time.Now()
	got, err := c.DoStrings("EVAL", `
		redis.call('SET', KEYS[1], 'v', 'PX', 20)
		local from = redis.call('TIME')
		for i = 1, 1e6 do local x = i * i end -- longer than the key lives
		local to = redis.call('TIME')
		return {redis.call('GET', KEYS[1]) or 'expired', (from[1] == to[1] and from[2] == to[2]) and 'stood' or 'passed'}`,
		"1", "k")
	if want := []string{"v", "stood"}; !slices.Equal(got, want) || err != nil {
		t.Errorf("in a script of %v: %q, %v, want %q", time.Since(began), got, err, want)
	}
	if time.Since(began) < 20*time.Millisecond {
		t.Log("this machine is too fast for the test") // and the next step waits
	}
	for began := time.Now(); ; {
		got, err := c.Do("EXISTS", "k")
		if err != nil || time.Since(began) > 30*time.Second {
			t.Fatalf("EXISTS = %q, %v: the key of 20 ms lives on", got, err)
		}
		if got == proto.Int(0) {
			break
		}
	}
}
