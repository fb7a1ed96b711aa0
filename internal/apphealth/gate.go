// Package apphealth says whether the app is well enough to lead: by asking it over HTTP,
// by its heartbeat, or by both.
//
// An app that has not answered yet is not well, and one that has not beaten yet is
// silent, so a sidecar does not campaign for an app that is still starting.
package apphealth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

// Config says what is asked of the app. The zero Config asks nothing.
type Config struct {
	// URL is asked every Period. An answer of 2xx within Timeout, which is at most a
	// Period, is success. "": the app is not asked.
	URL     string
	Period  time.Duration
	Timeout time.Duration
	// Failures in a row make the app unhealthy, ≥ 1; one success makes it well.
	Failures  int
	Transport http.RoundTripper // nil: one of its own, which keeps one connection

	// Heartbeat is how long the app may go without a Beat. 0: for ever.
	Heartbeat time.Duration

	Log *slog.Logger // nil: discard
}

func (c Config) validate() error {
	var errs []error
	if c.URL != "" {
		u, err := url.Parse(c.URL)
		switch {
		case err != nil:
			errs = append(errs, errors.New("app-health-url is not a URL")) // whose text may hold a password
		case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
			errs = append(errs, errors.New("app-health-url must be http://HOST… or https://HOST…"))
		}
		if c.Period <= 0 {
			errs = append(errs, fmt.Errorf("app-health-period must be positive, is %v", c.Period))
		}
		if c.Timeout <= 0 || c.Timeout > c.Period {
			errs = append(errs, fmt.Errorf("app-health-timeout must be positive and ≤ app-health-period, is %v",
				c.Timeout))
		}
		if c.Failures < 1 {
			errs = append(errs, fmt.Errorf("app-health-failures must be at least 1, is %d", c.Failures))
		}
	}
	if c.Heartbeat < 0 {
		errs = append(errs, fmt.Errorf("require-heartbeat must not be negative, is %v", c.Heartbeat))
	}
	return errors.Join(errs...)
}

// Gate is an [elector.Gate]. Its methods are safe for concurrent use.
type Gate struct {
	cfg    Config
	prober *prober // nil: the app is not asked
	log    *slog.Logger

	verdict atomic.Pointer[verdict]   // written by settle alone, in Run's goroutine
	beat    atomic.Pointer[time.Time] // the last one; nil: none yet
	beats   chan struct{}             // a mailbox of one

	// Run's own.
	well     bool  // the prober's word
	failures int   // in a row
	last     error // of the latest of them
}

var _ elector.Gate = (*Gate)(nil)

type verdict struct {
	reason  elector.Reason
	changed chan struct{} // closed when another verdict has taken this one's place
}

// New judges c and returns a Gate that opens once it runs and the app is well.
func New(c Config) (*Gate, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	g := &Gate{cfg: c, log: c.Log, beats: make(chan struct{}, 1)}
	if c.URL != "" {
		g.prober = newProber(c)
	}
	reason, _ := g.judge()
	g.verdict.Store(&verdict{reason, make(chan struct{})})
	return g, nil
}

// Check implements [elector.Gate].
func (g *Gate) Check() (elector.Reason, <-chan struct{}) {
	v := g.verdict.Load()
	return v.reason, v.changed
}

// Beat is the app's heartbeat. It does not block.
func (g *Gate) Beat() {
	now := time.Now()
	g.beat.Store(&now)
	select {
	case g.beats <- struct{}{}:
	default:
	}
}

// Run asks and listens until ctx is done. Call it once. The verdict then stays as it is.
func (g *Gate) Run(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	answers := make(chan error)
	if g.prober != nil {
		asking.Go(func() { g.prober.run(ctx, answers) })
	}
	silence := time.NewTimer(0)
	defer silence.Stop()
	if reason, _ := g.Check(); reason != "" {
		g.log.Info("waiting for the app", slog.String("reason", string(reason)))
	}
	for {
		if left := g.settle(); left > 0 {
			silence.Reset(left)
		}
		select {
		case <-ctx.Done():
			return
		case err := <-answers:
			g.count(err)
		case <-g.beats:
		case <-silence.C:
		}
	}
}

// count takes in the outcome of one question.
func (g *Gate) count(err error) {
	if err == nil {
		g.well, g.failures, g.last = true, 0, nil
		return
	}
	g.failures++
	g.last = err
	if g.failures >= g.cfg.Failures {
		g.well = false
	}
	g.log.Debug("the app's health check failed", slog.Int("failures", g.failures), slog.Any("error", err))
}

// judge returns why the app may not lead now, and after how long that is to be judged
// again though nothing is heard; 0: never.
//
// Silence is measured by a clock that stands still while the machine is suspended: the
// app could not beat meanwhile.
func (g *Gate) judge() (reason elector.Reason, again time.Duration) {
	if g.cfg.Heartbeat > 0 {
		reason = elector.Silent
		if beat := g.beat.Load(); beat != nil {
			if again = g.cfg.Heartbeat - time.Since(*beat); again > 0 {
				reason = ""
			}
		}
	}
	if g.prober != nil && !g.well {
		reason = elector.Unhealthy
	}
	return reason, again
}

// settle publishes and logs the verdict if it has changed.
func (g *Gate) settle() (again time.Duration) {
	reason, again := g.judge()
	old := g.verdict.Load()
	if reason == old.reason {
		return again
	}
	g.verdict.Store(&verdict{reason, make(chan struct{})})
	close(old.changed)
	switch reason {
	case "":
		g.log.Info("the app may lead", slog.String("was", string(old.reason)))
	case elector.Silent:
		attrs := []any{slog.String("reason", string(reason)), slog.Duration("heartbeat", g.cfg.Heartbeat)}
		if beat := g.beat.Load(); beat != nil {
			attrs = append(attrs, slog.Duration("silent_for", time.Since(*beat)))
		}
		g.log.Warn("the app may not lead", attrs...)
	default:
		g.log.Warn("the app may not lead", slog.String("reason", string(reason)),
			slog.Int("failures", g.failures), slog.Any("error", g.last))
	}
	return again
}
