package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/soloist-dev/soloist/examples/city-ids/tasks"
)

// writeTimeout bounds one request to the task store.
const writeTimeout = 5 * time.Second

// A worker hands out the next city IDs while its replica leads.
type worker struct {
	name  string
	leads *leadership
	tasks *tasks.Client
	pace  time.Duration // between two IDs
	delay time.Duration // within one write
	log   *slog.Logger
}

// run works, term after term, until ctx is done. A write in hand is finished first.
func (w *worker) run(ctx context.Context) {
	var refused int64 // the fence of a term that the store knows to be over
	for {
		fence, err := w.leads.await(ctx, refused)
		if err != nil {
			return
		}
		w.log.Info("leading", "fence", fence)
		if w.term(ctx, fence) {
			refused = fence
		}
		w.log.Info("not leading", "fence", fence)
	}
}

// term hands out IDs in one term, until it is over or ctx is done. It tells whether the
// task store refused the fence, which means that another replica leads.
func (w *worker) term(ctx context.Context, fence int64) (refused bool) {
	var id int64 // the next; 0 is not known yet
	for ctx.Err() == nil && w.leads.leads(fence) {
		if id == 0 {
			next, err := w.next(ctx)
			if err != nil {
				w.log.Warn("no answer from the task store", "error", err)
				w.rest(ctx)
				continue
			}
			id = next
			continue // that took time: look again whether the term goes on
		}
		err := w.handOut(ctx, id, fence)
		refusal, isRefusal := errors.AsType[*tasks.Refusal](err)
		switch {
		case err == nil:
			w.log.Info("handed out", "city_id", id, "fence", fence)
			id++
		case isRefusal && refusal.Reason == tasks.LowerFence:
			w.log.Warn("refused", "city_id", id, "fence", fence, "highest", refusal.Highest)
			return true
		case isRefusal: // somebody was faster, in a term before this one
			w.log.Info("not this ID's turn", "city_id", id, "fence", fence, "next", refusal.Next)
			id = refusal.Next
		default: // recorded or not: the same ID again tells
			w.log.Warn("no answer from the task store", "city_id", id, "fence", fence, "error", err)
		}
		w.rest(ctx)
	}
	return false
}

// handOut writes one ID. Between the check, before it, and the store there is always
// some time, in which a pause may outlast the term: no check in here can help, but the
// store can, by the fence. The write is finished even if ctx is done.
func (w *worker) handOut(ctx context.Context, id, fence int64) error {
	w.log.Debug("writing", "city_id", id, "fence", fence)
	time.Sleep(w.delay) //nolint:forbidigo // not to be interrupted
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	return w.tasks.Add(ctx, tasks.Task{CityID: id, Fence: fence, Worker: w.name})
}

func (w *worker) next(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return w.tasks.Next(ctx)
}

// rest pauses between two IDs, not longer than ctx lasts.
func (w *worker) rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(w.pace):
	}
}
