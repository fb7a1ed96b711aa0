package podmeta

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

const (
	callTimeout  = 5 * time.Second
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 30 * time.Second
	maxEvents    = 32              // that wait; more, and the oldest are dropped
	lastWords    = 2 * time.Second // what Config.LastWords is by itself
)

// An Election is what is shown. Its methods do not block.
type Election interface {
	View() elector.View
	Subscribe() *elector.Subscription
}

// API changes the pod. Its methods block until they are answered or ctx is done. Their
// errors may say what kind they are, by a method ErrorKind() string: a closed set.
type API interface {
	PatchMarks(ctx context.Context, mergePatch []byte) error
	PatchStatus(ctx context.Context, strategicMergePatch []byte) error
	CreateEvent(ctx context.Context, event []byte) error
}

// Config says what to show, and on which pod. All but the gate and the log are required.
type Config struct {
	Pod           Pod
	API           API
	Elections     []Election
	ReadinessGate bool // keep the pod's condition soloist.dev/leader
	// LastWords is how long an actor that ends goes on saying what it has not said. 0: 2 s.
	LastWords time.Duration
	Log       *slog.Logger // nil: discard
}

// Stats counts what has happened since the start.
type Stats struct {
	Marks, Conditions, Events uint64            // written
	Dropped                   uint64            // Events that waited too long
	Errors                    map[string]uint64 // by kind
	Behind                    bool              // the pod does not show the newest state
}

// Actor shows elections on their pod. Its methods are safe for concurrent use.
type Actor struct {
	cfg  Config
	log  *slog.Logger
	wake chan struct{} // a mailbox of one

	mu     sync.Mutex
	views  []elector.View // the newest of each election
	show   []elector.View // what of them is to be shown
	queue  [][]byte       // Events that wait
	stats  Stats
	denied bool // said so in the log

	// Run's own.
	marks     *marks        // as last written; nil: not known
	condition *elector.View // the same
}

// New returns an Actor that has yet to Run.
func New(c Config) *Actor {
	c.LastWords = cmp.Or(c.LastWords, lastWords)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Actor{
		cfg: c, log: c.Log, wake: make(chan struct{}, 1),
		views: make([]elector.View, len(c.Elections)), show: make([]elector.View, len(c.Elections)),
		stats: Stats{Errors: map[string]uint64{}},
	}
}

// Stats returns a copy. It does not block.
func (a *Actor) Stats() Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stats
	s.Errors = maps.Clone(s.Errors)
	return s
}

// Run shows what the elections say until ctx is done, and then for at most
// Config.LastWords what has not been shown yet. Call it once.
func (a *Actor) Run(ctx context.Context) {
	var watchers sync.WaitGroup
	for i, e := range a.cfg.Elections {
		sub := e.Subscribe()
		a.take(i, e.View())
		watchers.Go(func() {
			defer sub.Close()
			for {
				select {
				case <-sub.C:
					a.take(i, e.View())
				case <-ctx.Done():
					a.take(i, e.View())
					return
				}
			}
		})
	}
	var failures int
	for {
		wait := time.Duration(1<<63 - 1)
		if a.write(ctx) {
			failures = 0
		} else {
			failures++
			wait = backoff(failures)
		}
		retry := time.NewTimer(wait)
		select {
		case <-a.wake:
		case <-retry.C:
		case <-ctx.Done():
			retry.Stop()
			watchers.Wait()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.LastWords)
			defer cancel()
			a.writeLast(last)
			return
		}
		retry.Stop()
	}
}

// take takes in what election i says now.
func (a *Actor) take(i int, now elector.View) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.views[i]
	if before.Lock != "" && now.Version < before.Version {
		return
	}
	if o, ok := occasionOf(before, now); ok {
		if len(a.queue) == maxEvents {
			a.queue = a.queue[1:]
			a.stats.Dropped++
		}
		a.queue = append(a.queue, a.cfg.Pod.event(o))
	}
	a.show[i] = shown(a.show[i], now)
	a.views[i] = now
	if now.Version == before.Version {
		return // a renewal
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// write writes what has changed, the marks first, and reports whether all is said.
func (a *Actor) write(ctx context.Context) bool {
	ok := a.writeMarks(ctx) && a.writeEvents(ctx)
	a.mu.Lock()
	a.stats.Behind = !ok
	a.mu.Unlock()
	return ok
}

// writeLast writes everything at once: there may be time for one trip only.
func (a *Actor) writeLast(ctx context.Context) {
	var events sync.WaitGroup
	events.Go(func() { a.writeEvents(ctx) })
	a.writeMarks(ctx)
	events.Wait()
}

func (a *Actor) writeMarks(ctx context.Context) bool {
	a.mu.Lock()
	views := append([]elector.View(nil), a.show...)
	a.mu.Unlock()

	ok := true
	want := marksOf(views)
	if a.marks == nil || !maps.Equal(a.marks.labels, want.labels) || !maps.Equal(a.marks.annotations, want.annotations) {
		done := a.call(ctx, a.cfg.API.PatchMarks, a.cfg.Pod.patch(a.marks, want), func(s *Stats) { s.Marks++ })
		if a.marks = &want; !done {
			a.marks, ok = nil, false // what was written is not known
		}
	}
	if v := views[0]; a.cfg.ReadinessGate && (a.condition == nil || a.condition.Leading != v.Leading) {
		body := a.cfg.Pod.condition(v.Leading, v.Reason, v.Since)
		done := a.call(ctx, a.cfg.API.PatchStatus, body, func(s *Stats) { s.Conditions++ })
		if a.condition = &v; !done {
			a.condition, ok = nil, false
		}
	}
	return ok
}

// writeEvents creates the Events that wait, and reports whether none is left.
func (a *Actor) writeEvents(ctx context.Context) bool {
	for {
		a.mu.Lock()
		if len(a.queue) == 0 {
			a.mu.Unlock()
			return true
		}
		event := a.queue[0]
		a.mu.Unlock()
		done := a.call(ctx, a.cfg.API.CreateEvent, event, func(s *Stats) { s.Events++ })
		if !done && ctx.Err() != nil {
			return false // broken off by the end, which says it once more, under the same name
		}
		// One that was refused is not sent again.
		a.mu.Lock()
		if len(a.queue) > 0 && &a.queue[0][0] == &event[0] { // else it was dropped meanwhile
			a.queue = a.queue[1:]
		}
		a.mu.Unlock()
	}
}

// call makes one call, and reports whether it was answered with success. A failure is
// logged once, until one of them succeeds.
func (a *Actor) call(ctx context.Context, f func(context.Context, []byte) error, body []byte, done func(*Stats)) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	err := f(ctx, body)
	cancel()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		done(&a.stats)
		if a.denied {
			a.denied = false
			a.log.Info("the pod can be marked again")
		}
		return true
	}
	a.stats.Errors[kindOf(err)]++
	if !a.denied {
		a.denied = true
		a.log.Warn("can't mark the pod; the election goes on without", "kind", kindOf(err), "error", err)
	}
	return false
}

func kindOf(err error) string {
	var k interface{ ErrorKind() string }
	if errors.As(err, &k) {
		return k.ErrorKind()
	}
	return "other"
}

// backoff returns a pause after the n-th failure in a row (n ≥ 1), with jitter.
func backoff(n int) time.Duration {
	d := min(firstBackoff<<min(n-1, 10), maxBackoff)
	return d/2 + rand.N(d/2+1)
}
