package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/soloist-dev/soloist/internal/joblock"
	"github.com/soloist-dev/soloist/internal/lease"
)

// An Inspector sees who holds a lock.
type Inspector interface {
	Inspect(ctx context.Context, lock string) (lease.Info, error)
}

// inspectTimeout is how long the store may take over a look.
const inspectTimeout = 2 * time.Second

type lockStatus struct {
	Lock    string         `json:"lock"`
	Slots   int            `json:"slots"` // 0: a plain lock, or none that is known
	Fence   uint64         `json:"fence"`
	Waiting int            `json:"waiting"`
	Holders []holderStatus `json:"holders"`
	LastRun *runStatus     `json:"last_run"`
}

type holderStatus struct {
	Slot      int       `json:"slot"`
	Holder    string    `json:"holder"`
	Fence     uint64    `json:"fence"`
	Since     time.Time `json:"since"`
	ExpiresMS int64     `json:"expires_in_ms"` // unless it is renewed
	Resting   bool      `json:"resting"`       // released, and kept from all until then
}

type runStatus struct {
	Once   string    `json:"once"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Fence  uint64    `json:"fence"`
	TookMS int64     `json:"took_ms"`
}

func newRunStatus(r *lease.Run) *runStatus {
	return &runStatus{r.Name, r.By, r.At.UTC().Truncate(time.Second), r.Fence, r.Took.Milliseconds()}
}

// look tells who holds a lock, whoever that is.
func (s *Server) look(w http.ResponseWriter, r *http.Request) {
	name := lockName(w, r)
	if name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), inspectTimeout)
	defer cancel()
	info, err := s.cfg.Store.Inspect(ctx, name)
	if err != nil {
		fail(w, http.StatusServiceUnavailable, "unknown", "the store did not answer: "+err.Error())
		return
	}
	st := lockStatus{Lock: name, Slots: info.Slots, Fence: info.Fence, Waiting: info.Waiting, Holders: []holderStatus{}}
	for _, h := range info.Holders {
		st.Holders = append(st.Holders, holderStatus{
			h.Slot, h.Name, h.Fence, h.Since.UTC().Truncate(time.Second), h.Left.Milliseconds(), h.Resting,
		})
	}
	if run := info.LastRun; run != nil {
		st.LastRun = newRunStatus(run)
	}
	b, err := json.Marshal(st)
	if err != nil { // times, strings and numbers are always JSON
		fail(w, http.StatusInternalServerError, "internal", err.Error())
		return
	}
	respond(w, http.StatusOK, append(b, '\n'))
}

// locks tells what this sidecar holds for the app.
func (s *Server) locks(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, append(appendLocks([]byte(`{"locks":`), s.cfg.Locks.List()), "}\n"...))
}

func appendLocks(b []byte, all []joblock.Lease) []byte {
	slices.SortFunc(all, func(x, y joblock.Lease) int {
		return cmp.Or(cmp.Compare(x.Lock, y.Lock), cmp.Compare(x.Slot, y.Slot))
	})
	b = append(b, '[')
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendLease(b, &all[i], false)
	}
	return append(b, ']')
}
