package rig

import (
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	var s Samples
	if got := s.Quantile(0.5); got != 0 {
		t.Errorf("median of nothing = %v, want 0", got)
	}
	for i := 100; i >= 1; i-- {
		s = append(s, time.Duration(i))
	}
	for _, tt := range []struct {
		q    float64
		want time.Duration
	}{{0, 1}, {0.5, 50}, {0.99, 99}, {0.991, 100}, {1, 100}} {
		if got := s.Quantile(tt.q); got != tt.want {
			t.Errorf("Quantile(%v) = %d, want %d", tt.q, got, tt.want)
		}
	}
	if s[0] != 100 {
		t.Error("Quantile sorted its receiver")
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := MedianFloat(tt.values); got != tt.want {
			t.Errorf("MedianFloat(%v) = %v, want %v", tt.values, got, tt.want)
		}
	}
}

func TestFormats(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Ms(1234 * time.Microsecond), "1.23 ms"},
		{Ms(45 * time.Millisecond), "45.0 ms"},
		{Ms(2 * time.Second), "2000 ms"},
		{Rate(3.56), "3.6"},
		{Rate(456.4), "456"},
		{Rate(31240), "31.2k"},
		{Times(3, 2), "1.50×"},
		{Times(300, 2), "150×"},
		{Times(3, 0), "-"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestParseMonitor(t *testing.T) {
	for _, tt := range []struct {
		line, name string
		script, ok bool
	}{
		{`+1763683200.123456 [0 127.0.0.1:50000] "evalsha" "abc" "2"`, "EVALSHA", false, true},
		{`+1763683200.123456 [0 lua] "get" "soloist:{x}:lk"`, "GET", true, true},
		{`+1763683200.123456 [0 unix:/tmp/x [y] lua.sock] "PING"`, "PING", false, true},
		{`+1763683200.123456 [0 127.0.0.1:50000] "set" "[0 lua] \"get\""`, "SET", false, true},
		{`+OK`, "", false, false},
	} {
		name, script, ok := parseMonitor(tt.line)
		if name != tt.name || script != tt.script || ok != tt.ok {
			t.Errorf("parseMonitor(%q) = %q, %v, %v; want %q, %v, %v", tt.line, name, script, ok, tt.name, tt.script, tt.ok)
		}
	}
}
