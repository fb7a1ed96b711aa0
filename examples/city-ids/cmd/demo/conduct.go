package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/examples/city-ids/tasks"
)

// patience is how long a process may take to end after SIGTERM.
const patience = 10 * time.Second

// A demo is one performance.
type demo struct {
	options  options
	logs     string // directory
	history  *history
	timeline *timeline
	http     *http.Client // to the sidecars
	replicas []*replica
	redis    string // URLs
	tasks    string

	ends   []func() // in the order in which they were begun
	closed sync.Once
}

// newDemo starts what the replicas need.
func newDemo(o options, logs string, out io.Writer) (_ *demo, err error) {
	d := &demo{
		options: o,
		logs:    logs,
		history: &history{
			store:    &tasks.Store{Unguarded: o.withoutFence},
			lease:    o.lease,
			slack:    o.slack,
			pictures: make(map[string]picture),
		},
		http:  &http.Client{Transport: &http.Transport{}},
		redis: o.store,
	}
	d.ends = append(d.ends, d.http.CloseIdleConnections)
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	var pods []string
	for i, follow := range []string{"poll", "events", "poll"} {
		r := &replica{name: "pod-" + string(rune('a'+i)), follow: follow, writing: make(chan int64, 1)}
		d.replicas = append(d.replicas, r)
		pods = append(pods, r.name)
	}
	d.timeline = newTimeline(out, o.plain, pods)
	d.timeline.look, d.timeline.note = d.look, d.note

	on := "the Redis of --store"
	if d.redis == "" {
		url, stop, err := startRedis()
		if err != nil {
			return nil, err
		}
		d.redis, on = url, "an embedded Redis (miniredis)"
		d.ends = append(d.ends, stop)
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d.tasks = "http://" + listener.Addr().String()
	server := &http.Server{Handler: tasks.NewHandler(d.history.store), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			d.history.trouble("the task store ended: %v", err)
		}
	}()
	d.ends = append(d.ends, func() {
		_ = server.Close() // nobody waits for an answer
		<-served
	})

	guard := "that refuses lower fences"
	if o.withoutFence {
		guard = "WITHOUT a check of the fence"
	}
	fmt.Fprintf(out, "city-ids: 3 replicas, each a worker and a sidecar; they elect on %s,\n", on)
	fmt.Fprintf(out, "and write to a task store %s.\n", guard)
	fmt.Fprintf(out, "Lease %v, renewed each %v; a leader that can't renew stops leading after %v.\n",
		o.lease, o.retry, o.renew)
	return d, nil
}

// play gives the performance. What goes wrong is recorded as trouble.
func (d *demo) play(ctx context.Context) {
	pictures, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	d.timeline.head()
	wg.Go(func() { d.timeline.run(pictures) })

	for _, act := range []func(context.Context) error{
		d.open, d.kill, d.rest, d.stop, d.rest, d.freeze, d.rest, d.finish,
	} {
		if err := act(ctx); err != nil {
			d.history.trouble("%v", err)
			d.timeline.say("demo", "stops here: %v", err)
			return
		}
	}
}

// close ends whatever still runs.
func (d *demo) close() {
	d.closed.Do(func() {
		for _, r := range d.replicas {
			r.end()
		}
		for i := len(d.ends) - 1; i >= 0; i-- {
			d.ends[i]()
		}
	})
}

func (d *demo) evidence() evidence { return d.history.evidence() }

func (d *demo) rest(ctx context.Context) error {
	sleep(ctx, d.options.pause())
	return ctx.Err()
}

// open starts all replicas and waits for the first leader.
func (d *demo) open(ctx context.Context) error {
	var names []string
	for _, r := range d.replicas {
		if err := d.start(ctx, r); err != nil {
			return err
		}
		names = append(names, r.name)
	}
	d.timeline.say(strings.Join(names, ", "), "start")
	if _, err := d.next(ctx, 0); err != nil {
		return err
	}
	return d.rest(ctx)
}

// finish stops all replicas: the leader last, so that nobody takes over.
func (d *demo) finish(ctx context.Context) error {
	leader, _, err := d.leader(ctx)
	if err != nil {
		return err
	}
	d.timeline.say("all", "are stopped, the standbys first")
	for _, r := range d.replicas {
		if r != leader {
			err = errors.Join(err, r.stop())
		}
	}
	return errors.Join(err, leader.stop())
}

// look is the picture of all replicas.
func (d *demo) look() (states []state) {
	now := time.Now()
	for _, r := range d.replicas {
		p, heard := d.history.picture(r.name)
		s := isStandby
		switch {
		case r.is() == gone:
			s = isGone
		case r.is() == frozen:
			s = isFrozen
		case !heard:
			s = isStarting
		case now.Before(p.until):
			s = isLeader
		}
		states = append(states, s)
	}
	return states
}

// note is the end of the live line.
func (d *demo) note() string {
	return fmt.Sprintf("next city ID %d", d.history.store.Next())
}

// handedOut records a worker's word, and tells of the first of a term.
func (d *demo) handedOut(a ack) {
	first := true
	for _, old := range d.evidence().Acks {
		first = first && old.Fence < a.Fence
	}
	d.history.acked(a)
	if first {
		d.timeline.say(a.Pod, "hands out city ID %d, the first of its term", a.CityID)
	}
}

// until waits for something, which what names for the error.
func (d *demo) until(ctx context.Context, what string, happened func() bool) error {
	for !happened() {
		if sleep(ctx, 5*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("waited in vain for %s", what)
		}
	}
	return nil
}
