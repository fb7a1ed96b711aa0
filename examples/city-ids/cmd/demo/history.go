package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/soloist-dev/soloist/examples/city-ids/tasks"
)

// history collects what happened. It is safe for concurrent use.
type history struct {
	store *tasks.Store
	lease time.Duration
	slack time.Duration

	mu        sync.Mutex
	acks      []ack
	sightings []sighting
	acts      []act
	troubles  []string
	pictures  map[string]picture
}

// A picture is what a sidecar said last: how long it leads, zero for not at all.
type picture struct{ until time.Time }

// see records an answer "leader", and tells whether it is the first of a new term.
func (h *history) see(s sighting) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first = !slices.ContainsFunc(h.sightings, func(old sighting) bool { return old.Fence >= s.Fence })
	h.sightings = append(h.sightings, s)
	h.pictures[s.Pod] = picture{s.validUntil()}
	return first
}

// standsBy records an answer "not leader".
func (h *history) standsBy(pod string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pictures[pod] = picture{}
}

// forget records that the pod's sidecar is a new one, which has said nothing yet.
func (h *history) forget(pod string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pictures, pod)
}

// picture returns what the pod's sidecar said last, if it did.
func (h *history) picture(pod string) (p picture, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, ok = h.pictures[pod]
	return p, ok
}

// latest returns the newest answer "leader" of the pod, or, without a name, of the
// newest term.
func (h *history) latest(pod string) (s sighting, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, old := range h.sightings {
		if pod == "" && old.Fence >= s.Fence || pod != "" && old.Pod == pod {
			s, ok = old, true
		}
	}
	return s, ok
}

func (h *history) acked(a ack) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acks = append(h.acks, a)
}

func (h *history) acted(a act) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acts = append(h.acts, a)
}

// resigned records when the worker of a pod that was told to stop had done its work.
func (h *history) resigned(pod string, fence int64, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, a := range h.acts {
		if a.Kind == stop && a.Pod == pod && a.Fence == fence {
			h.acts[i].Done = at
		}
	}
}

func (h *history) trouble(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := fmt.Sprintf(format, args...); !slices.Contains(h.troubles, s) {
		h.troubles = append(h.troubles, s)
	}
}

// evidence returns a copy of all that was collected.
func (h *history) evidence() evidence {
	h.mu.Lock()
	defer h.mu.Unlock()
	return evidence{
		Lease:     h.lease,
		Slack:     h.slack,
		Record:    h.store.Record(),
		Acks:      slices.Clone(h.acks),
		Sightings: slices.Clone(h.sightings),
		Acts:      slices.Clone(h.acts),
		Troubles:  slices.Clone(h.troubles),
	}
}
