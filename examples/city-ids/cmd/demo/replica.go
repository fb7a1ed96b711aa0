package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A phase is what the demo did to a replica.
type phase int32

const (
	gone phase = iota
	up
	frozen
)

// A replica stands for a pod: a worker and the sidecar beside it.
type replica struct {
	name   string
	follow string // how its worker follows

	phase atomic.Int32
	// writing gets the city ID that the worker is about to write; it holds the newest.
	writing chan int64

	// Written by start and the acts, which one goroutine does.
	worker, sidecar *process
	url             string // of the sidecar
	stopWatching    context.CancelFunc
	watching        sync.WaitGroup
}

func (r *replica) is() phase      { return phase(r.phase.Load()) }
func (r *replica) become(p phase) { r.phase.Store(int32(p)) }

// start starts both processes, on ports that are free, and watches the sidecar.
func (d *demo) start(ctx context.Context, r *replica) error {
	ports, err := freePorts(ctx, 2)
	if err != nil {
		return err
	}
	address, probes := ports[0], ports[1]
	r.url = "http://" + address
	o := d.options
	ended := func(name string) func(error) {
		return func(err error) {
			d.history.trouble("%s ended of itself: %v", name, err)
			d.timeline.say(r.name, "its %s ended of itself: %v", name, err)
		}
	}

	name := r.name + "-sidecar"
	r.sidecar, err = spawn(name, d.logs, o.sidecar, []string{
		"elect",
		"--store", d.redis,
		"--lock", o.lock,
		"--name", r.name,
		"--http-address", address,
		"--probe-address", probes,
		"--lease-duration", o.lease.String(),
		"--renew-deadline", o.renew.String(),
		"--retry-period", o.retry.String(),
		"--delayed-restart", "off",
		"--log-format", "json",
	}, nil, nil, ended(name))
	if err != nil {
		return err
	}
	name = r.name + "-worker"
	r.worker, err = spawn(name, d.logs, o.worker, []string{
		"--follow", r.follow,
		"--interval", "100ms",
		"--pace", o.pace.String(),
		"--write-delay", o.delay.String(),
		"--verbose",
	}, []string{"POD_NAME=" + r.name, "SOLOIST_URL=" + r.url, "TASKS_URL=" + d.tasks}, d.hear(r), ended(name))
	if err != nil {
		r.sidecar.kill()
		return err
	}
	d.history.forget(r.name)
	r.become(up)
	watch, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.stopWatching = cancel
	r.watching.Go(func() { d.watch(watch, r, r.url) })
	return nil
}

// end ends both processes at once, if they run: a pod's crash.
func (r *replica) end() {
	if r.is() == gone {
		return
	}
	r.become(gone)
	r.worker.ending.Store(true)
	r.sidecar.ending.Store(true)
	r.signal(syscall.SIGKILL) // both at once, then wait for both
	r.worker.kill()
	r.sidecar.kill()
	r.unwatch()
}

// stop ends them as a kubelet does: the sidecar hears of it when the worker has gone.
func (r *replica) stop() error {
	err := r.worker.stop(patience)
	if err2 := r.sidecar.stop(patience); err == nil {
		err = err2
	}
	r.become(gone)
	r.unwatch()
	return err
}

// signal sends a signal to both processes.
func (r *replica) signal(s syscall.Signal) {
	r.worker.signal(s)
	r.sidecar.signal(s)
}

func (r *replica) unwatch() {
	r.stopWatching()
	r.watching.Wait()
}

// hear returns what to do with each line that the worker of r prints.
func (d *demo) hear(r *replica) func([]byte) {
	return func(line []byte) {
		var entry struct {
			Time    time.Time `json:"time"`
			Msg     string    `json:"msg"`
			CityID  int64     `json:"city_id"`
			Fence   int64     `json:"fence"`
			Highest int64     `json:"highest"`
		}
		if json.Unmarshal(line, &entry) != nil {
			return // what a program prints when it crashes; it is in the log
		}
		switch entry.Msg {
		case "writing":
			select {
			case <-r.writing:
			default:
			}
			r.writing <- entry.CityID // the only sender
		case "handed out":
			d.handedOut(ack{r.name, entry.CityID, entry.Fence})
		case "refused":
			d.timeline.say(r.name, "city ID %d is refused: fence %d is lower than %d",
				entry.CityID, entry.Fence, entry.Highest)
		case "resigning":
			d.history.resigned(r.name, entry.Fence, entry.Time)
		}
	}
}

// freePorts returns n addresses of this machine on which nobody listens now.
func freePorts(ctx context.Context, n int) (addresses []string, err error) {
	for range n {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer func() { _ = l.Close() }() // all of them, once all are found
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}
