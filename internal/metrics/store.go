package metrics

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/soloist-dev/soloist/internal/lease"
)

// Kinds of errors beside those that a store gives.
const (
	kindCanceled = "canceled" // we gave up first: no fault of the store
	kindWait     = "wait"     // the store can't be trusted with a new lease yet
	kindTimeout  = "timeout"
	kindOther    = "other"
)

// verdicts by error: what a store may refuse.
var verdicts = []struct {
	err   error
	label string
}{
	{lease.ErrHeld, "held"},
	{lease.ErrLost, "lost"},
	{lease.ErrBurned, "burned"},
	{lease.ErrKind, "kind"},
	{lease.ErrFence, "fence"},
	{lease.ErrInvalid, "invalid"},
}

type storeMetrics struct {
	seconds  *prometheus.HistogramVec
	errors   *prometheus.CounterVec
	refusals *prometheus.CounterVec
}

func newStoreMetrics() *storeMetrics {
	return &storeMetrics{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "soloist_store_seconds",
			Help: "How long requests to the store took, answered or not. " +
				"Without those that we gave up ourselves or that were never sent.",
			Buckets: []float64{.00025, .0005, .001, .0025, .01, .05, .25, 1, 2.5},
		}, []string{"op"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "soloist_store_errors_total",
			Help: "Requests to the store without an answer, or with one that is no verdict, by kind.",
		}, []string{"op", "kind"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "soloist_store_refusals_total",
			Help: "Verdicts of the store that were a no: answers like others, and no errors.",
		}, []string{"op", "verdict"}),
	}
}

// Store returns a store that does what s does and is observed. It is a [lease.Waker] if
// s is one, and then a [lease.Finisher] if s is one.
func (r *Registry) Store(s lease.Store) lease.Store {
	o := &observed{
		next:    s,
		acquire: r.op("acquire"), extend: r.op("extend"), release: r.op("release"), inspect: r.op("inspect"),
	}
	w, ok := s.(lease.Waker)
	if !ok {
		return o
	}
	ow := &observedWaker{o, w, r.op("join")}
	if f, ok := s.(lease.Finisher); ok {
		return &observedFinisher{ow, f, r.op("done")}
	}
	return ow
}

func (r *Registry) op(name string) op {
	return op{name, r.store.seconds.WithLabelValues(name), r.store}
}

type observed struct {
	next                              lease.Store
	acquire, extend, release, inspect op
}

type observedWaker struct {
	*observed
	waker lease.Waker
	join  op
}

type observedFinisher struct {
	*observedWaker
	finisher lease.Finisher
	done     op
}

var (
	_ lease.Store    = (*observed)(nil)
	_ lease.Waker    = (*observedWaker)(nil)
	_ lease.Finisher = (*observedFinisher)(nil)
)

func (o *observed) Acquire(ctx context.Context, r lease.Request) (lease.Grant, error) {
	began := time.Now()
	g, err := o.next.Acquire(ctx, r)
	o.acquire.observe(ctx, began, err)
	return g, err
}

func (o *observed) Extend(ctx context.Context, g lease.Grant, e lease.Extension) (lease.Extended, error) {
	began := time.Now()
	ext, err := o.next.Extend(ctx, g, e)
	o.extend.observe(ctx, began, err)
	return ext, err
}

func (o *observed) Release(ctx context.Context, c lease.Claim) (bool, error) {
	began := time.Now()
	released, err := o.next.Release(ctx, c)
	o.release.observe(ctx, began, err)
	return released, err
}

func (o *observed) Inspect(ctx context.Context, lock string) (lease.Info, error) {
	began := time.Now()
	info, err := o.next.Inspect(ctx, lock)
	o.inspect.observe(ctx, began, err)
	return info, err
}

func (o *observedWaker) Join(ctx context.Context, lock string) (lease.Inbox, error) {
	began := time.Now()
	inbox, err := o.waker.Join(ctx, lock)
	o.join.observe(ctx, began, err)
	return inbox, err
}

func (o *observedFinisher) Finish(ctx context.Context, c lease.Claim, f lease.Finish) (bool, error) {
	began := time.Now()
	held, err := o.finisher.Finish(ctx, c, f)
	o.release.observe(ctx, began, err)
	return held, err
}

func (o *observedFinisher) Done(ctx context.Context, lock, run string) (*lease.Run, error) {
	began := time.Now()
	r, err := o.finisher.Done(ctx, lock, run)
	o.done.observe(ctx, began, err)
	return r, err
}

// op observes one operation of a store.
type op struct {
	name    string
	seconds prometheus.Observer
	m       *storeMetrics
}

func (o op) observe(ctx context.Context, began time.Time, err error) {
	took := time.Since(began)
	if err == nil {
		o.seconds.Observe(took.Seconds())
		return
	}
	if v := verdictOf(err); v != "" {
		o.seconds.Observe(took.Seconds())
		o.m.refusals.WithLabelValues(o.name, v).Inc()
		return
	}
	kind := kindOf(ctx, err)
	if kind != kindCanceled && kind != kindWait {
		o.seconds.Observe(took.Seconds())
	}
	o.m.errors.WithLabelValues(o.name, kind).Inc()
}

// verdictOf returns which one err is, or "".
func verdictOf(err error) string {
	for _, v := range verdicts {
		if errors.Is(err, v.err) {
			return v.label
		}
	}
	return ""
}

// kindOf returns what kind of error err is. A store whose errors have an ErrorKind takes it
// from a closed set.
func kindOf(ctx context.Context, err error) string {
	if errors.Is(ctx.Err(), context.Canceled) {
		return kindCanceled // whatever the store makes of it
	}
	var wait *lease.WaitError
	if errors.As(err, &wait) {
		return kindWait
	}
	var kinded interface{ ErrorKind() string }
	if errors.As(err, &kinded) {
		return kinded.ErrorKind()
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return kindTimeout
	}
	return kindOther
}
