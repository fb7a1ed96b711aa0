package main

import (
	"context"
	"sync"
	"time"
)

// A stock is what there is to sell, in one segment or several. Reading is safe, and so is
// writing; what lies between the two, in [stock.sell], is left to the lock.
type stock struct {
	mu    sync.Mutex
	left  []int
	fence []uint64 // of each segment, the highest that has been seen
	sold  int
	late  int // writes that were refused

	pay time.Duration // from read to write
}

// newStock shares items out to segments, as evenly as it goes.
func newStock(items, segments int, pay time.Duration) *stock {
	s := &stock{left: make([]int, segments), fence: make([]uint64, segments), pay: pay}
	for i := range segments {
		s.left[i] = (items + i) / segments
	}
	return s
}

// sell sells one item of a segment, unless there is none. It reads, takes its time, and
// writes what it has read less one.
func (s *stock) sell(ctx context.Context, segment int, fence uint64) bool {
	n := s.read(segment, fence)
	if n == 0 {
		return false
	}
	select { // the buyer pays
	case <-time.After(s.pay):
	case <-ctx.Done():
		return false
	}
	return s.write(segment, fence, n-1)
}

func (s *stock) read(segment int, fence uint64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fence[segment] = max(s.fence[segment], fence)
	return s.left[segment]
}

// write refuses a lower fence than it has seen: that of a buyer whose lock ran out while
// it paid, so that another has read since.
func (s *stock) write(segment int, fence uint64, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fence < s.fence[segment] {
		s.late++
		return false
	}
	s.left[segment] = n
	s.sold++
	return true
}

// empty tells whether all is sold. No lock is needed: the stock only falls.
func (s *stock) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.left {
		if n > 0 {
			return false
		}
	}
	return true
}
