package elector

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// watch knows by when a loop should have called again. The zero watch rests. It counts
// time as timers do: a suspended machine makes no loop overdue.
type watch struct{ due atomic.Pointer[time.Time] }

// beat says that the loop will call again within d, give or take a second.
func (w *watch) beat(d time.Duration) {
	due := time.Now().Add(d + time.Second)
	w.due.Store(&due)
}

// rest says that the loop does not run.
func (w *watch) rest() { w.due.Store(nil) }

func (w *watch) overdue() time.Duration {
	if due := w.due.Load(); due != nil {
		return max(time.Since(*due), 0)
	}
	return 0
}

// Overdue returns for how long a loop of the election has owed a sign of life: 0 in a
// healthy process, whatever the store does. It does not block.
func (e *Elector) Overdue() time.Duration { return max(e.loop.overdue(), e.lease.overdue()) }

// Stats counts what has happened since the start.
type Stats struct {
	Transitions map[Reason]uint64 // changes of what is said
	Renewals    uint64            // confirmed
	Unanswered  uint64            // renewals without an answer
	ClockJumps  uint64            // the wall clock ran ahead of elapsed time while leading
	StoreJumps  uint64            // a lease had less left than it should have had
}

type stats struct {
	mu sync.Mutex
	s  Stats
}

// Stats returns a copy.
func (e *Elector) Stats() Stats {
	e.stats.mu.Lock()
	defer e.stats.mu.Unlock()
	s := e.stats.s
	s.Transitions = maps.Clone(s.Transitions)
	return s
}

func (s *stats) count(f func(*Stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.s)
}

func (s *stats) transition(r Reason) {
	s.count(func(s *Stats) {
		if s.Transitions == nil {
			s.Transitions = map[Reason]uint64{}
		}
		s.Transitions[r]++
	})
}
