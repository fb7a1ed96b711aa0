package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/internal/config"
	"github.com/soloist-dev/soloist/internal/joblock"
	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/runner"
)

// Exit codes of a shell for a command that did not start.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// runJob runs a command while it holds a lock.
func runJob(ctx context.Context, p program) int {
	path, err := exec.LookPath(p.Args[0])
	switch {
	case errors.Is(err, exec.ErrNotFound):
		p.fail(err)
		return exitNotFound
	case err != nil:
		p.fail(err)
		return exitNotExecutable
	}
	log := p.logger()
	held, closeStore, err := p.acquire(ctx, log)
	defer closeStore()
	if err != nil {
		return p.notRun(ctx, log, err)
	}
	log.Info("acquired", "lock", held.Lock, "fence", held.Fence)
	result, err := runner.Run(held, path, p.Args, log)
	if err != nil {
		p.fail(err)
		return exitNotExecutable
	}
	if result.Lost != nil {
		fmt.Fprintf(p.stderr, "sidecar run: %s was not held to the end, or that is not known: %v\n", held.Lock, result.Lost)
		return config.ExitLost
	}
	return result.Code
}

// acquire gets the lock from a sidecar, or from the store.
func (p program) acquire(ctx context.Context, log *slog.Logger) (*runner.Held, func(), error) {
	ask := joblock.Ask{
		Lock: p.Elections[0].Lock, Slots: p.Elections[0].Slots,
		Lease: p.Job.Lease, Wait: p.Job.Wait, Once: p.Job.Once, Keep: p.Job.Keep,
		AtLeast: p.Job.AtLeast, AtMost: p.Job.AtMost,
	}
	if p.Job.Via != "" {
		held, err := runner.AcquireVia(ctx, strings.TrimSuffix(p.Job.Via, "/"), ask)
		return held, func() {}, err
	}
	if ask.AtMost == 0 {
		ask.AtMost = -1 // this process is there as long as its command
	}
	p.Timing = lease.JobTiming(p.Job.Lease)
	store, err := p.openStore(log)
	if err != nil {
		return nil, func() {}, err
	}
	locks := joblock.New(joblock.Config{Store: store, Identity: lease.Identity{Name: p.Identity.Name, PodUID: p.Identity.PodUID}, Log: log})
	held, err := runner.Acquire(ctx, locks, ask)
	return held, func() {
		locks.Close(context.WithoutCancel(ctx), 0)
		_ = store.Close() // nothing is under way
	}, err
}

// notRun says why the command did not run.
func (p program) notRun(ctx context.Context, log *slog.Logger, err error) int {
	code := config.ExitFailed
	var (
		done *joblock.DoneError
		held *lease.HeldError
		by   stoppedBy
	)
	switch {
	case errors.As(context.Cause(ctx), &by):
		return config.ExitSignal + int(by)
	case errors.As(err, &done):
		code = config.ExitDone
		err = fmt.Errorf("done by %s at %s", done.Run.By, done.Run.At.UTC().Format(time.RFC3339))
	case errors.As(err, &held):
		code = config.ExitHeld
		err = fmt.Errorf("held by %s", cmp.Or(held.Holder.Name, "another"))
	}
	if p.Job.SkipOK && code != config.ExitFailed {
		log.Info("skipped", "lock", p.Elections[0].Lock, "reason", err)
		return config.ExitOK
	}
	p.fail(err)
	return code
}
