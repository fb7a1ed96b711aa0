package main

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/soloist-dev/soloist/examples/city-ids/tasks"
)

// leader waits for a replica that leads, as its sidecar says when asked now, and that has
// handed out something in this term.
func (d *demo) leader(ctx context.Context) (r *replica, s sighting, err error) {
	err = d.until(ctx, "a leader", func() bool {
		latest, _ := d.history.latest("")
		for _, candidate := range d.replicas {
			if candidate.name != latest.Pod || candidate.is() != up {
				continue
			}
			if a, err := d.ask(ctx, candidate, candidate.url+"/leader"); err == nil && a.Leader {
				r = candidate
				s, _ = d.history.latest(r.name)
				return d.written(s.Fence) > 0
			}
		}
		return false
	})
	return r, s, err
}

// left is how much of a lease was left at t, by the newest answer of its leader.
func (d *demo) left(s sighting, t time.Time) time.Duration {
	return s.validUntil().Sub(t) + d.options.afterBelief()
}

// next waits until another term than that with the fence is led, and has handed out
// something.
func (d *demo) next(ctx context.Context, fence int64) (led sighting, err error) {
	err = d.until(ctx, "the next leader", func() bool {
		led, _ = d.history.latest("")
		return led.Fence > fence
	})
	if err != nil {
		return led, err
	}
	return led, d.until(ctx, "its first city ID", func() bool {
		return d.history.store.Record().Fence >= led.Fence
	})
}

// kill crashes the leader's pod.
func (d *demo) kill(ctx context.Context) error {
	r, _, err := d.leader(ctx)
	if err != nil {
		return err
	}
	at := time.Now()
	r.end()
	s, _ := d.history.latest(r.name) // it may have renewed meanwhile
	rest := d.left(s, at)
	d.history.acted(act{Kind: kill, Pod: r.name, Fence: s.Fence, At: at, Rest: rest})
	d.timeline.say(r.name, "is killed with -9, worker and sidecar; %s are left of its lease", seconds(rest))
	if _, err := d.next(ctx, s.Fence); err != nil {
		return err
	}
	return d.again(ctx, r)
}

// again starts a pod that is gone.
func (d *demo) again(ctx context.Context, r *replica) error {
	if err := d.start(ctx, r); err != nil {
		return err
	}
	d.timeline.say(r.name, "is started again")
	return nil
}

// stop ends the leader's pod as planned.
func (d *demo) stop(ctx context.Context) error {
	r, s, err := d.leader(ctx)
	if err != nil {
		return err
	}
	d.history.acted(act{Kind: stop, Pod: r.name, Fence: s.Fence, At: time.Now()})
	d.timeline.say(r.name, "is stopped with SIGTERM: the worker, then the sidecar")
	if err := r.stop(); err != nil {
		return err
	}
	if _, err := d.next(ctx, s.Fence); err != nil {
		return err
	}
	return d.again(ctx, r)
}

// freeze pauses the leader's pod with a write in hand, until others have led and written,
// and then lets it go on.
func (d *demo) freeze(ctx context.Context) error {
	r, s, id, err := d.freezeLeader(ctx)
	if err != nil {
		return err
	}
	led, err := d.next(ctx, s.Fence)
	if err != nil {
		return err
	}
	err = d.until(ctx, "three city IDs of "+led.Pod, func() bool { return d.written(led.Fence) >= 3 })
	if err != nil {
		return err
	}
	d.timeline.say(r.name, "is thawed with SIGCONT; it still has city ID %d in hand", id)
	before := d.history.store.Record()
	r.become(up)
	r.signal(syscall.SIGCONT)
	return d.until(ctx, "the late write of "+r.name, func() bool {
		now := d.history.store.Record()
		return len(now.Refused) > len(before.Refused) || d.count(id) > 1
	})
}

// freezeLeader stops both processes of the leader, the worker between its check and its
// write, and returns the city ID that it is about to write. A worker whose write was faster
// than the signal, or whose term has ended meanwhile, goes on, and it tries again.
func (d *demo) freezeLeader(ctx context.Context) (r *replica, s sighting, id int64, err error) {
	for range 20 {
		if r, _, err = d.leader(ctx); err != nil {
			return nil, s, 0, err
		}
		select {
		case <-r.writing: // an old one
		default:
		}
		select {
		case id = <-r.writing:
		case <-ctx.Done():
			return nil, s, 0, errors.New("waited in vain for a write of " + r.name)
		case <-time.After(d.options.lease): // it leads no more
			continue
		}
		r.worker.signal(syscall.SIGSTOP)
		sleep(ctx, d.options.delay) // what was sent before has arrived by then
		a, err := d.ask(ctx, r, r.url+"/leader")
		if d.count(id) > 0 || err != nil || !a.Leader {
			r.worker.signal(syscall.SIGCONT)
			continue
		}
		r.sidecar.signal(syscall.SIGSTOP)
		at := time.Now()
		r.become(frozen)
		s, _ = d.history.latest(r.name)
		rest := d.left(s, at)
		d.history.acted(act{Kind: freeze, Pod: r.name, Fence: s.Fence, At: at, Rest: rest})
		d.timeline.say(r.name, "is frozen with SIGSTOP, while it writes city ID %d; %s are left of its lease",
			id, seconds(rest))
		return r, s, id, nil
	}
	return nil, s, 0, errors.New("no worker could be frozen while it writes: give them a larger --write-delay")
}

// count is how often the store has recorded a city ID.
func (d *demo) count(id int64) int {
	return d.tally(func(t tasks.Task) bool { return t.CityID == id })
}

// written is how many city IDs were handed out with a fence.
func (d *demo) written(fence int64) int {
	return d.tally(func(t tasks.Task) bool { return t.Fence == fence })
}

func (d *demo) tally(counts func(tasks.Task) bool) (n int) {
	for _, t := range d.history.store.Record().Tasks {
		if counts(t) {
			n++
		}
	}
	return n
}
