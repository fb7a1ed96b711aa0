package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/internal/api"
	"github.com/soloist-dev/soloist/internal/apphealth"
	"github.com/soloist-dev/soloist/internal/config"
	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/health"
	"github.com/soloist-dev/soloist/internal/joblock"
	"github.com/soloist-dev/soloist/internal/kube"
	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/metrics"
	"github.com/soloist-dev/soloist/internal/podmeta"
)

// lastWords is how long streams have to carry the end of a term before --on-lost=exit.
const lastWords = 250 * time.Millisecond

// sidecar is everything that elect runs. It starts from the top and stops from the
// bottom: first the elections, so that the interfaces can tell of their end.
type sidecar struct {
	log      *slog.Logger
	gate     *apphealth.Gate
	probes   *health.Server // nil: none
	app      *api.Server
	appAddrs []net.Listener
	dapr     *api.Server // nil: none
	daprAddr []net.Listener
	electors []*elector.Elector
	marks    *podmeta.Actor // nil: the pod is not marked
	losing   sync.Once
	lost     chan struct{} // closed for --on-lost=exit, at the first loss
	locks    *joblock.Locks
	grace    time.Duration // for the app to release them
}

func elect(ctx context.Context, p program) int {
	log := p.logger()
	for _, w := range p.warnings {
		log.Warn("configuration", "warning", w)
	}
	store, err := p.openStore(log)
	if err != nil {
		return p.fail(err)
	}
	defer store.Close()
	s, err := p.assemble(ctx, store, log)
	if err != nil {
		return p.fail(err)
	}
	log.Info("started", "version", version, "name", p.Identity.Name, "store", p.Store.URLs[0].String(),
		"http", s.appAddrs[0].Addr().String(), "lease", p.Timing.LeaseDuration,
		"belief", p.Timing.Belief(), "retry", p.Timing.RetryPeriod)
	code := s.run(ctx)
	log.Info("stopped", "exit_code", code)
	return code
}

// assemble opens the listeners and makes the parts; nothing runs yet.
func (p program) assemble(ctx context.Context, store lease.Store, log *slog.Logger) (*sidecar, error) {
	s := &sidecar{log: log, lost: make(chan struct{})}
	var err error
	s.gate, err = apphealth.New(apphealth.Config{
		URL: p.App.HealthURL, Period: p.App.HealthPeriod, Timeout: p.App.HealthTimeout,
		Failures: p.App.HealthFailures, Heartbeat: p.App.Heartbeat, Log: log,
	})
	if err != nil {
		return nil, err
	}
	if s.appAddrs, err = api.Listen(ctx, p.HTTP.Address); err != nil {
		return nil, err
	}
	registry := metrics.New(version)
	limiter, _ := store.(api.Limiter)
	store = registry.Store(store)
	if p.Jobs.Max > 0 {
		s.locks = joblock.New(joblock.Config{
			Store: store, Limit: p.Jobs.Max, Log: log,
			Identity: lease.Identity{Name: p.Identity.Name, PodUID: p.Identity.PodUID, Address: p.HTTP.Address},
		})
		s.grace = p.App.DrainTimeout
		registry.JobLocks(s.locks)
	}
	failover, err := p.failover(log)
	if err != nil {
		return nil, err
	}
	for _, e := range p.Elections {
		detector, err := failover.detector(p.Identity.Namespace, e.Lock, log)
		if err != nil {
			return nil, err
		}
		el, err := elector.New(elector.Config{
			Lock: e.Lock, Slots: e.Slots, Store: store, Timing: p.Timing, Gate: s.gate,
			Identity: lease.Identity{Name: p.Identity.Name, PodUID: p.Identity.PodUID, Address: p.HTTP.Address},
			// The address is bound: nobody else answers there, so whoever holds the lease
			// under this pod and address is dead.
			Reclaim:      p.Identity.PodUID != "",
			DrainTimeout: p.App.DrainTimeout,
			OnLost:       s.onLost(p.App.OnLost, e.Lock, failover),
			Failure:      detector,
			OnGrant:      failover.onGrant(e.Lock, log),
			Log:          log,
		})
		if err != nil {
			return nil, err
		}
		s.electors = append(s.electors, el)
	}
	registry.Elections(nil, elections[metrics.Election](s.electors)...)
	if s.marks, err = p.podMarks(s.electors, log); err != nil {
		return nil, err
	}
	if s.marks != nil {
		registry.Pod(s.marks, kube.Kinds())
	}
	app := api.Config{
		Elections: elections[api.Election](s.electors), Version: version, Heartbeat: p.heartbeat(s.gate), Log: log,
	}
	if s.locks != nil {
		app.Locks, app.Store, app.Limiter = s.locks, store, limiter
	}
	s.app = api.New(app)
	if p.Jobs.Dapr != "" {
		if s.daprAddr, err = api.Listen(ctx, p.Jobs.Dapr); err != nil {
			return nil, err
		}
		s.dapr = api.New(api.Config{Locks: s.locks, Store: store, Dapr: true, Log: log})
	}
	if p.Probe.Address == "" {
		return s, nil
	}
	s.probes = health.New(health.Config{
		Address: p.Probe.Address, Elections: elections[health.Elector](s.electors),
		OnLeader: p.Probe.Readiness == config.ReadyLeader, Metrics: registry.Handler(log), Log: log,
	})
	return s, s.probes.Listen(ctx)
}

func elections[I any](all []*elector.Elector) []I {
	out := make([]I, len(all))
	for i, e := range all {
		out[i] = any(e).(I)
	}
	return out
}

func (p program) heartbeat(g *apphealth.Gate) func() {
	if p.App.Heartbeat == 0 {
		return nil
	}
	return g.Beat
}

// onLost returns what an elector calls when a term ended that nobody meant to end.
func (s *sidecar) onLost(do config.OnLost, lock string, noted failover) func(elector.Reason) {
	if do != config.LostExit {
		return nil
	}
	return func(r elector.Reason) {
		s.losing.Do(func() {
			s.log.Error("exiting so that the containers restart",
				"lock", lock, "reason", string(r), "exit_code", config.ExitLost)
			noted.onLost(lock, r, s.log)
			for _, e := range s.electors {
				if e.State().Lock != lock {
					e.Drain()
				}
			}
			close(s.lost)
		})
		// What was acquired from here on would die with this process, and be held by nobody for a
		// lease. So this election ends here, with the process; the others campaign no more.
		select {}
	}
}

// run runs everything until ctx is done or something fails, and stops it in order. After
// a loss, with --on-lost=exit, nothing is released: the app is still at work, and the
// leases outlive what it was told.
func (s *sidecar) run(ctx context.Context) int {
	serving, failed := s.serve()
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	var elections sync.WaitGroup
	for _, e := range s.electors {
		elections.Go(func() { e.Run(stop) })
	}
	if s.locks != nil {
		elections.Go(func() {
			<-stop.Done()
			s.locks.Close(context.WithoutCancel(ctx), s.grace)
		})
	}
	outlasting, closeRest := context.WithCancel(context.WithoutCancel(ctx))
	defer closeRest()
	serving.Go(func() { s.gate.Run(outlasting) }) // until the elections have ended
	var marking sync.WaitGroup
	if s.marks != nil {
		marking.Go(func() { s.marks.Run(outlasting) }) // says the last words, too
	}

	code := config.ExitOK
	select {
	case <-ctx.Done():
		s.log.Info("stopping")
	case err := <-failed:
		s.log.Error("an interface failed", "error", err)
		code = config.ExitFailed
	case <-s.lost:
		// The elections are not stopped: that would release what they hold.
		words, done := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
		defer done()
		closeRest()
		_ = s.app.Shutdown(words) // of what is cut off, nothing can be told
		marking.Wait()
		return config.ExitLost
	}
	cancel()
	elections.Wait()
	closeRest()
	marking.Wait()
	s.shutdown(context.WithoutCancel(ctx))
	serving.Wait()
	return code
}

// serve starts the interfaces. What fails is received from the channel.
func (s *sidecar) serve() (*sync.WaitGroup, <-chan error) {
	var serving sync.WaitGroup
	failed := make(chan error, 3)
	serving.Go(func() {
		if err := s.app.Serve(s.appAddrs...); err != nil {
			failed <- err
		}
	})
	if s.dapr != nil {
		serving.Go(func() {
			if err := s.dapr.Serve(s.daprAddr...); err != nil {
				failed <- err
			}
		})
	}
	if s.probes != nil {
		serving.Go(func() {
			if err := s.probes.Serve(); err != nil {
				failed <- err
			}
		})
	}
	return &serving, failed
}

// shutdown closes the interfaces, the kubelet's last. Each bounds its own end.
func (s *sidecar) shutdown(ctx context.Context) {
	err := s.app.Shutdown(ctx)
	if s.dapr != nil {
		err = errors.Join(err, s.dapr.Shutdown(ctx))
	}
	if s.probes != nil {
		err = errors.Join(err, s.probes.Shutdown(ctx))
	}
	if err != nil {
		s.log.Debug("an interface was closed with requests under way", "error", err)
	}
}
