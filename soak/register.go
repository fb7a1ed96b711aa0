package soak

import (
	"fmt"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// register is what the workers change: a number that refuses lower fences. Reading takes
// the fence along, too: from then on a write of an earlier holder is refused, so that what
// was read is still true when it is written.
type register struct {
	mu    sync.Mutex
	value int
	fence uint64
}

func (r *register) read(fence uint64) (value int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fence < r.fence {
		return 0, false
	}
	r.fence = fence
	return r.value, true
}

func (r *register) write(value int, fence uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fence < r.fence {
		return false
	}
	r.value, r.fence = value, fence
	return true
}

// increment is one operation of the history: read, then write one more.
type increment struct {
	read int
	done bool // false: a fence was refused, and nothing was changed
}

// counter is what the register must have been: each increment that was done found what the
// one before it left.
var counter = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, _, output any) (bool, any) {
		n, op := state.(int), output.(increment)
		if !op.done {
			return true, n
		}
		return op.read == n, n + 1
	},
	DescribeOperation: func(_, output any) string { return fmt.Sprintf("%+v", output) },
}

// A hold is a time in which a worker might believe that it has the lock.
type hold struct {
	worker   int
	fence    uint64
	from, to time.Time
}

// overlap returns the first two holds that overlap, in the order of their fences.
func overlap(holds []hold) (a, b hold, ok bool) {
	for i := 1; i < len(holds); i++ {
		if a, b = holds[i-1], holds[i]; b.from.Before(a.to) {
			return a, b, true
		}
	}
	return hold{}, hold{}, false
}
