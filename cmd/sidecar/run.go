package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"

	"github.com/soloist-dev/soloist/internal/config"
	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/kubelease"
	"github.com/soloist-dev/soloist/internal/lease/redislease"
)

// A program is what a verb works with.
type program struct {
	*config.Config
	warnings []string
	stdout   io.Writer
	stderr   io.Writer
}

var verbs = map[string]func(context.Context, program) int{
	config.Elect:   elect,
	config.Leader:  leader,
	config.Status:  status,
	config.Resign:  resign,
	config.Wait:    wait,
	config.Drain:   drain,
	config.Check:   checkInjection,
	config.Run:     runJob,
	config.Locks:   listLocks,
	config.Install: install,

	config.UnlockVerb: unlock,
	config.Version:    printVersion,
}

// run runs the verb that args name until it is done or ctx is, and returns an exit code.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	verb, rest, err := config.Verb(args)
	var (
		c        *config.Config
		warnings []string
	)
	if err == nil {
		c, warnings, err = config.Parse(verb, rest, environ)
	}
	var help *config.HelpError
	if errors.As(err, &help) {
		fmt.Fprint(stdout, help.Text)
		return config.ExitOK
	}
	if err != nil {
		for _, w := range warnings {
			fmt.Fprintln(stderr, "warning:", w)
		}
		fmt.Fprintf(stderr, "sidecar: %v\nsee sidecar --help\n", err)
		return config.ExitUsage
	}
	return verbs[verb](ctx, program{c, warnings, stdout, stderr})
}

// fail says why a verb failed.
func (p program) fail(err error) int {
	fmt.Fprintf(p.stderr, "sidecar %s: %v\n", p.Verb, err)
	return config.ExitFailed
}

func (p program) logger() *slog.Logger {
	opt := &slog.HandlerOptions{Level: p.Log.Slog(), ReplaceAttr: readable}
	if p.Log.Format == config.LogText {
		return slog.New(slog.NewTextHandler(p.stderr, opt))
	}
	return slog.New(slog.NewJSONHandler(p.stderr, opt))
}

// readable writes durations for people in JSON too.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().Round(time.Microsecond).String())
	}
	return a
}

// A store is a lease.Store, and a lease.Waker, that wants to be closed.
type store interface {
	lease.Store
	lease.Waker
	io.Closer
}

// openStore opens the store that the flags name; it does not connect.
func (p program) openStore(log *slog.Logger) (store, error) {
	if namespace, ok := p.Store.URLs[0].Namespace(); ok {
		cluster, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("--store=%s: %w", config.Kubernetes, err)
		}
		return kubelease.Open(cluster, kubelease.Options{
			Namespace: cmp.Or(namespace, p.Identity.Namespace), Lease: p.Timing.LeaseDuration, Log: log,
		})
	}
	if _, err := p.Store.TLSConfig(); err != nil { // better now than at the first connection
		return nil, err
	}
	servers := p.Store.URLs[0].Servers()
	return redislease.Open(redislease.Options{
		URL:              servers.URL,
		Sentinels:        servers.Sentinels,
		Master:           servers.Master,
		SentinelPassword: p.Store.SentinelPassword.Reveal(),
		Cluster:          servers.Cluster,
		Username:         p.Store.Username,
		Password:         p.Store.Password.Reveal(),
		PasswordFile:     p.Store.PasswordFile,
		TLS:              p.Store.TLSConfig,
		Prefix:           p.Store.KeyPrefix,
		Lease:            p.Timing.LeaseDuration,
		DelayedRestart:   redislease.DelayedRestart(p.Store.DelayedRestart),
		AllowEviction:    p.Store.Check == config.CheckWarn,
		CallTimeout:      p.Timing.RetryPeriod,
		Log:              log,
	})
}
