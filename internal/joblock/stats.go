package joblock

import (
	"context"
	"errors"
	"maps"

	"github.com/soloist-dev/soloist/internal/lease"
)

// Stats counts since the start, by outcome. The words are a closed set: see Outcomes.
type Stats struct {
	Held     int // now
	Acquires map[string]uint64
	Releases map[string]uint64
	Lost     map[string]uint64 // leases that ended before anybody released them, by reason
}

// Outcomes returns the words that Stats may hold.
func Outcomes() (acquires, releases, lost []string) {
	return []string{"granted", "done", "held", "kind", "invalid", "limit", "released", "closing", "gone", "unknown"},
		[]string{"held", "unknown", "lost", "invalid", "unanswered"},
		[]string{"lost", "expired", "limit"}
}

func newStats() Stats {
	return Stats{Acquires: map[string]uint64{}, Releases: map[string]uint64{}, Lost: map[string]uint64{}}
}

// Stats returns a copy. It does not block.
func (l *Locks) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{
		Held:     len(l.held),
		Acquires: maps.Clone(l.stats.Acquires), Releases: maps.Clone(l.stats.Releases), Lost: maps.Clone(l.stats.Lost),
	}
}

func (s *Stats) asked(err error) {
	word := "unknown"
	var done *DoneError
	switch {
	case err == nil:
		word = "granted"
	case errors.As(err, &done):
		word = "done"
	case errors.Is(err, lease.ErrHeld):
		word = "held"
	case errors.Is(err, lease.ErrKind):
		word = "kind"
	case errors.Is(err, lease.ErrInvalid):
		word = "invalid"
	case errors.Is(err, ErrTooMany):
		word = "limit"
	case errors.Is(err, ErrReleased):
		word = "released"
	case errors.Is(err, ErrClosing):
		word = "closing"
	case errors.Is(err, context.Canceled):
		word = "gone"
	}
	s.Acquires[word]++
}

func (s *Stats) released(r Released, err error) {
	word := "unanswered"
	switch {
	case err == nil && r.Unknown:
		word = "unknown"
	case err == nil:
		word = "held"
	case errors.Is(err, lease.ErrLost):
		word = "lost"
	case errors.Is(err, lease.ErrInvalid), errors.Is(err, ErrElsewhere):
		word = "invalid"
	}
	s.Releases[word]++
}

func (s *Stats) lost(err error) {
	word := "expired"
	switch {
	case errors.Is(err, lease.ErrLost):
		word = "lost"
	case errors.Is(err, lease.ErrLimit):
		word = "limit"
	}
	s.Lost[word]++
}
