package redislease

import (
	"strconv"
	"strings"
	"testing"

	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/redistest"
)

// BenchmarkPair measures an acquire and a release that nobody contends for, and how much
// of it the server spends in the scripts.
func BenchmarkPair(b *testing.B) {
	srv := redistest.Start(b)
	s := open(b, srv.URL())
	r := request("L")
	pair := func() {
		r.Token = lease.NewToken()
		if _, err := s.Acquire(b.Context(), r); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Release(b.Context(), r.Claim); err != nil {
			b.Fatal(err)
		}
	}
	pair()
	srv.Must("CONFIG", "RESETSTAT")
	for b.Loop() {
		pair()
	}
	stats, _ := srv.Must("INFO", "commandstats").(string)
	for line := range strings.Lines(stats) {
		fields, ok := strings.CutPrefix(line, "cmdstat_evalsha:calls=")
		if !ok {
			continue
		}
		_, rest, _ := strings.Cut(fields, "usec=")
		usec, _, _ := strings.Cut(rest, ",")
		if n, err := strconv.ParseFloat(usec, 64); err == nil {
			b.ReportMetric(n/float64(b.N), "server-µs/op")
		}
	}
}
