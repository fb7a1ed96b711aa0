package api

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// A sink is a response that goes nowhere. As in net/http, each has a header map.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkHandler is what an answer costs beyond net/http.
func BenchmarkHandler(b *testing.B) {
	for _, c := range []struct{ name, path string }{
		{"leader", "/leader"},
		{"leader?lock", "/leader?lock=city-ids"},
		{"name", "/"},
		{"isLeader", "/isLeader"},
		{"status", "/status"},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := New(Config{Elections: []Election{says(b, leading())}}).Handler()
			r := httptest.NewRequestWithContext(b.Context(), "GET", c.path, nil)
			w := &sink{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

// BenchmarkServer asks over 8 connections that are kept, with the load on the same
// machine. "bare" is net/http with a handler that sends the same bytes, and no timeouts.
func BenchmarkServer(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		body := []byte(leaderBody + "\n")
		bare := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = jsonType
			w.Header()["Cache-Control"] = noStore
			w.Write(body)
		})}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		go bare.Serve(l)
		defer bare.Close()
		load(b, l.Addr().String())
	})
	b.Run("leader", func(b *testing.B) {
		listeners := listenLocal(b)
		s, served := begin(b, Config{Elections: []Election{says(b, leading())}}, listeners)
		load(b, listeners[0].Addr().String())
		if err := s.Shutdown(b.Context()); err != nil {
			b.Error(err)
		}
		if err := served(); err != nil {
			b.Error(err)
		}
	})
}

// load asks b.N times, and reports questions per second and the 99th percentile.
func load(b *testing.B, addr string) {
	const clients = 8
	request := []byte("GET /leader HTTP/1.1\r\nHost: localhost:4040\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n")
	took := make([][]time.Duration, clients)
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for i := range clients {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		n := (b.N + i) / clients
		took[i] = make([]time.Duration, n)
		wg.Go(func() {
			answer := make([]byte, 4096)
			for j := range n {
				start := time.Now()
				if _, err := conn.Write(request); err != nil {
					b.Error(err)
					return
				}
				got, err := io.ReadAtLeast(conn, answer, len(leaderBody))
				for err == nil && !bytes.HasSuffix(answer[:got], []byte("}\n")) {
					var more int
					more, err = conn.Read(answer[got:])
					got += more
				}
				if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 200")) {
					b.Errorf("%v: %q", err, answer[:got])
					return
				}
				took[i][j] = time.Since(start)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
	if len(all) > 0 {
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
	}
}
