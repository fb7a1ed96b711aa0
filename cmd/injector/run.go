package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/soloist-dev/soloist/internal/inject/webhook"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// run serves until ctx is done, and returns an exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer) int {
	s, err := parse(args, getenv, stderr)
	if errors.Is(err, pflag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "injector: %v\nsee injector --help\n", err)
		return exitUsage
	}
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	if err := serve(ctx, s, log); err != nil {
		log.Error("failed", "error", err)
		return exitFailed
	}
	return exitOK
}

func serve(ctx context.Context, s settings, log *slog.Logger) error {
	cluster, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	api, err := dynamic.NewForConfig(cluster)
	if err != nil {
		return err
	}
	if s.inject.RestartRules, err = restartRules(ctx, cluster, s.restartRules); err != nil {
		return err
	}
	keeper := &webhook.Keeper{
		API: api, Namespace: s.namespace, Secret: s.secret, Webhook: s.webhook, Service: s.service, Lasts: s.lasts, Log: log,
	}
	listen := new(net.ListenConfig)
	calls, err := listen.Listen(ctx, "tcp", s.listen)
	if err != nil {
		return err
	}
	probes, err := listen.Listen(ctx, "tcp", s.health)
	if err != nil {
		return errors.Join(err, calls.Close())
	}
	log.Info("started", "calls", calls.Addr().String(), "health", probes.Addr().String(),
		"image", s.inject.Image, "restart_rules", s.inject.RestartRules)

	reviews := http.NewServeMux()
	reviews.Handle("POST /inject", webhook.Handler(s.inject, log))
	servers := []*http.Server{
		server(reviews, &tls.Config{GetCertificate: keeper.Certificate, MinVersion: tls.VersionTLS12}),
		server(health(keeper.Ready), nil),
	}
	var all sync.WaitGroup
	defer all.Wait()
	keeping, stop := context.WithCancel(ctx)
	defer stop()
	all.Go(func() { keeper.Run(keeping) })
	failed := make(chan error, len(servers))
	all.Go(func() { failed <- servers[0].ServeTLS(calls, "", "") })
	all.Go(func() { failed <- servers[1].Serve(probes) })

	select {
	case err = <-failed:
	case <-ctx.Done():
		log.Info("stopping")
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	for _, srv := range servers {
		err = errors.Join(err, srv.Shutdown(end))
	}
	return err
}

func server(h http.Handler, t *tls.Config) *http.Server {
	return &http.Server{
		Handler: h, TLSConfig: t,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute,
	}
}

// health answers the kubelet: alive, and ready once the API server can call.
func health(ready func() bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready() {
			http.Error(w, "no certificate yet", http.StatusServiceUnavailable)
		}
	})
	return mux
}

// restartRules reports whether the cluster has container restart rules, which are on by
// default from Kubernetes 1.36.
func restartRules(ctx context.Context, cluster *rest.Config, say string) (bool, error) {
	if say != "auto" {
		return say == "on", nil
	}
	client, err := rest.HTTPClientFor(cluster)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(cluster.Host, "/")+"/version", http.NoBody)
	if err != nil {
		return false, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return false, fmt.Errorf("ask the API server for its version: %w", err)
	}
	defer resp.Body.Close()
	var v struct{ Major, Minor string }
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&v); err != nil {
		return false, fmt.Errorf("ask the API server for its version: %w", err)
	}
	major, err := strconv.Atoi(v.Major)
	minor, err2 := strconv.Atoi(strings.TrimSuffix(v.Minor, "+"))
	if err := errors.Join(err, err2); err != nil {
		return false, fmt.Errorf("the API server's version is %q.%q: %w", v.Major, v.Minor, err)
	}
	return major > 1 || minor >= 36, nil
}
