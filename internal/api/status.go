package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

// electionStatus is what /status tells of an election beyond the body of /leader.
type electionStatus struct {
	Slots      int          `json:"slots"`          // 0: a plain lock
	Rank       *int         `json:"rank,omitempty"` // place in line; absent: not in line
	Waiting    int          `json:"waiting"`
	Timing     timingStatus `json:"timing"`
	StoreError string       `json:"store_error"` // "" while it answers
	OverdueMS  int64        `json:"overdue_ms"`
	Stats      statsStatus  `json:"stats"`
}

type timingStatus struct {
	LeaseDurationMS int64 `json:"lease_duration_ms"`
	RenewDeadlineMS int64 `json:"renew_deadline_ms"`
	RetryPeriodMS   int64 `json:"retry_period_ms"`
}

type statsStatus struct {
	Transitions map[elector.Reason]uint64 `json:"transitions"`
	Renewals    uint64                    `json:"renewals"`
	Unanswered  uint64                    `json:"unanswered"`
	ClockJumps  uint64                    `json:"clock_jumps"`
	StoreJumps  uint64                    `json:"store_jumps"`
}

// status tells all there is, for people and for reports. It is always 200.
func (s *Server) status(w http.ResponseWriter, _ *http.Request) {
	b := append([]byte(nil), `{"version":`...)
	b = appendString(b, s.cfg.Version)
	b = append(b, `,"elections":[`...)
	for i, e := range s.cfg.Elections {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendStatus(b, e)
	}
	b = append(b, ']')
	if s.cfg.Locks != nil {
		b = appendLocks(append(b, `,"locks":`...), s.cfg.Locks.List())
	}
	respond(w, http.StatusOK, append(b, "}\n"...))
}

// appendStatus appends the fields of /leader, and then the others, as one object.
func appendStatus(b []byte, e Election) []byte {
	v, timing, stats := e.View(), e.Timing(), e.Stats()
	st := electionStatus{
		Slots:   v.Slots,
		Waiting: v.Waiting,
		Timing: timingStatus{
			timing.LeaseDuration.Milliseconds(), timing.RenewDeadline.Milliseconds(), timing.RetryPeriod.Milliseconds(),
		},
		StoreError: v.StoreError,
		OverdueMS:  roundUp(e.Overdue()),
		Stats:      statsStatus(stats),
	}
	if st.Stats.Transitions == nil {
		st.Stats.Transitions = map[elector.Reason]uint64{}
	}
	if v.Rank >= 0 {
		st.Rank = &v.Rank
	}
	rest, err := json.Marshal(st)
	if err != nil { // strings and numbers are always JSON
		return appendView(b, &v)
	}
	b = append(b, '{')
	b = appendFields(b, &v)
	b = append(b, ',')
	return append(b, rest[1:]...)
}

// roundUp returns milliseconds; anything above 0 is at least 1.
func roundUp(d time.Duration) int64 {
	return (d + time.Millisecond - 1).Milliseconds()
}
