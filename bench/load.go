package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/bench/internal/rig"
)

// loadConns is how many keep-alive connections the load has.
const loadConns = 8

// loadResult is what a load generator found.
type loadResult struct {
	Requests int
	Seconds  float64
	P50, P99 time.Duration
	Bad      int // answers that were not 200
}

// leaderLoad measures GET /leader of a sidecar that leads, under load from another
// process, beside a bare net/http handler that writes a body as long.
func (b *bench) leaderLoad(ctx context.Context) ([]*rig.Table, error) {
	t := &rig.Table{
		Title:   fmt.Sprintf("/leader under load, %d keep-alive connections, the load on the same machine", loadConns),
		Budget:  "≥ 35k/s, p99 ≤ 2 ms",
		Columns: []string{"server", "requests/s", "p50", "p99", "bare / this"},
	}
	server, err := rig.StartRedis(ctx, b.server)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	sc, err := b.startSidecar(ctx, server, "bench", "pod-a")
	if err != nil {
		return nil, err
	}
	defer sc.kill()
	if err := sc.untilLeading(ctx); err != nil {
		return nil, err
	}
	bare, err := rig.StartChild("_serve")
	if err != nil {
		return nil, err
	}
	defer bare.Kill()
	bareURL, err := bare.Line()
	if err != nil {
		return nil, err
	}
	targets := []struct{ name, url string }{{"sidecar /leader", sc.url("/leader")}, {"bare net/http", bareURL}}
	length := pick(b, "4s", "1s")
	results := make([][]loadResult, len(targets))
	for run := range b.runs {
		for k := range targets {
			i := (k + run) % len(targets)
			b.logf("  run %d, %s", run+1, targets[i].name)
			r, err := load(targets[i].url, length)
			if err != nil {
				return nil, err
			}
			results[i] = append(results[i], r)
		}
	}
	of := func(i int, f func(loadResult) float64) float64 {
		var v []float64
		for _, r := range results[i] {
			v = append(v, f(r))
		}
		return rig.MedianFloat(v)
	}
	rate := func(r loadResult) float64 { return float64(r.Requests) / r.Seconds }
	bad := 0
	for i, target := range targets {
		t.Add(target.name, rig.Rate(of(i, rate)),
			rig.Ms(time.Duration(of(i, func(r loadResult) float64 { return float64(r.P50) }))),
			rig.Ms(time.Duration(of(i, func(r loadResult) float64 { return float64(r.P99) }))),
			rig.Times(of(1, rate), of(i, rate)))
		for _, r := range results[i] {
			bad += r.Bad
		}
	}
	t.Note("Medians of %d runs of %s each, alternating. %d answers were not 200.", b.runs, length, bad)
	return []*rig.Table{t}, nil
}

// load runs a load generator in a process of its own.
func load(url, length string) (loadResult, error) {
	var r loadResult
	gen, err := rig.StartChild("_load", url, length)
	if err != nil {
		return r, err
	}
	defer gen.Kill()
	line, err := gen.Line()
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		return r, fmt.Errorf("load generator: %w", err)
	}
	return r, nil
}

// bareBody is as long as a body of /leader.
const bareBody = `{"lock":"bench","leader":true,"state":"leader","name":"pod-a","holder":"pod-a","fence":1763683200123456,` +
	`"slot":0,"since":"2026-11-21T02:00:00Z","valid_for_ms":9321,"version":1763683200123999,"reason":"acquired"}`

// roleServe is the bare handler that /leader is compared with.
func roleServe(ctx context.Context, _ []string, stdout io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = io.WriteString(w, bareBody)
	})}
	fmt.Fprintf(stdout, "http://%s/leader\n", l.Addr())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }() // received below
	rig.UntilOrphaned(ctx)
	srv.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// roleLoad sends requests: URL DURATION. It writes one line of JSON.
func roleLoad(ctx context.Context, args []string, stdout io.Writer) error {
	d, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	if _, err := hammer(ctx, args[0], d/8); err != nil { // connections, caches
		return err
	}
	r, err := hammer(ctx, args[0], d)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(stdout).Encode(r); err != nil {
		return err
	}
	rig.UntilOrphaned(ctx)
	return nil
}

func hammer(ctx context.Context, url string, d time.Duration) (loadResult, error) {
	start := time.Now()
	end := start.Add(d)
	samples := make([]rig.Samples, loadConns)
	bad := make([]int, loadConns)
	errs := make([]error, loadConns)
	var wg sync.WaitGroup
	for i := range loadConns {
		wg.Go(func() { samples[i], bad[i], errs[i] = oneConn(ctx, url, end) })
	}
	wg.Wait()
	r := loadResult{Seconds: time.Since(start).Seconds()}
	for i := range loadConns {
		if errs[i] != nil {
			return r, errs[i]
		}
		r.Bad += bad[i]
	}
	all := rig.Pool(samples)
	r.Requests, r.P50, r.P99 = len(all), median(all), p99(all)
	return r, nil
}
