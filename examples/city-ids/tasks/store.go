// Package tasks is the resource of the city-ids workload: a list of tasks, one per
// city ID, in order and without gaps. It shows what a resource must do so that a
// leader who doesn't know yet that it was deposed can do no harm: remember the
// highest fence that it has seen, and refuse lower ones.
package tasks

import (
	"fmt"
	"sync"
	"time"
)

// A Task is one city ID, handed out.
type Task struct {
	CityID int64     `json:"city_id"`
	Fence  int64     `json:"fence"` // of the term in which it was handed out
	Worker string    `json:"worker"`
	At     time.Time `json:"at"` // by the store's clock
}

// The reasons why a [Store] refuses a task.
const (
	// LowerFence means that a later term has written: the writer leads no more.
	LowerFence = "lower_fence"
	// WrongID means that it isn't this ID's turn: see [Refusal.Next].
	WrongID = "wrong_id"
)

// A Refusal is a task that was not recorded, and why. It is an error.
type Refusal struct {
	Task

	Reason  string `json:"reason"`  // LowerFence or WrongID
	Highest int64  `json:"highest"` // the highest fence seen so far
	Next    int64  `json:"next"`    // the ID whose turn it is
}

func (r *Refusal) Error() string {
	if r.Reason == LowerFence {
		return fmt.Sprintf("tasks: city ID %d refused: fence %d is lower than %d", r.CityID, r.Fence, r.Highest)
	}
	return fmt.Sprintf("tasks: city ID %d refused: the next is %d", r.CityID, r.Next)
}

// A Record is all that a [Store] has seen.
type Record struct {
	Next    int64     `json:"next"`    // the ID whose turn it is
	Fence   int64     `json:"fence"`   // the highest seen so far
	Tasks   []Task    `json:"tasks"`   // in the order in which they were recorded
	Refused []Refusal `json:"refused"` // likewise
}

// A Store keeps the tasks in memory. The zero Store is empty and ready; its methods
// do not block and are safe for concurrent use.
type Store struct {
	// Unguarded makes the store believe every writer, to show what the fence is for.
	// It is set before the first use.
	Unguarded bool

	mu      sync.Mutex
	fence   int64
	tasks   []Task
	refused []Refusal
}

// Add records t, and says so with its time, or returns a [*Refusal]. Repeating the
// last task of the same worker and fence is answered as the first time: a writer that
// got no answer may ask again.
func (s *Store) Add(t Task) (Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.At = time.Now()

	if n := len(s.tasks); n > 0 {
		if last := s.tasks[n-1]; last.CityID == t.CityID && last.Fence == t.Fence && last.Worker == t.Worker {
			return last, nil
		}
	}
	if !s.Unguarded {
		if reason := s.judge(t); reason != "" {
			r := Refusal{Task: t, Reason: reason, Highest: s.fence, Next: s.next()}
			s.refused = append(s.refused, r)
			return Task{}, &r
		}
	}
	s.fence = max(s.fence, t.Fence)
	s.tasks = append(s.tasks, t)
	return t, nil
}

// judge returns the reason to refuse t, or "". The fence comes first: a writer whose
// term is over must learn that, not which ID would be next.
func (s *Store) judge(t Task) string {
	switch {
	case t.Fence < s.fence:
		return LowerFence
	case t.CityID != s.next():
		return WrongID
	default:
		return ""
	}
}

// next returns the ID after the last one recorded; the first is 1.
func (s *Store) next() int64 {
	if len(s.tasks) == 0 {
		return 1
	}
	return s.tasks[len(s.tasks)-1].CityID + 1
}

// Next returns the ID whose turn it is.
func (s *Store) Next() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next()
}

// Record returns a copy of all that the store has seen.
func (s *Store) Record() Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Record{
		Next:    s.next(),
		Fence:   s.fence,
		Tasks:   append([]Task{}, s.tasks...), // [], not null, when empty
		Refused: append([]Refusal{}, s.refused...),
	}
}
