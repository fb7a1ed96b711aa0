package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// slotStatus is one line of the table, and one element of the JSON.
type slotStatus struct {
	Lock    string     `json:"lock"`
	Slot    int        `json:"slot"`
	Holder  string     `json:"holder"` // "" if nobody holds it
	Fence   uint64     `json:"fence"`  // of the holder; else the highest that is remembered
	Since   *time.Time `json:"since,omitempty"`
	LeftMS  int64      `json:"left_ms"` // < 0: the lock's key never expires, which is wrong
	Waiting int        `json:"waiting"`
}

// status asks the store who holds the locks.
func status(ctx context.Context, p program) int {
	return p.onStore(ctx, func(ctx context.Context, s store) error { return p.show(ctx, s, p.locks()) })
}

func statusOf(info lease.Info) []slotStatus {
	var lines []slotStatus
	for _, h := range info.Holders {
		s := slotStatus{
			Lock: info.Lock, Slot: h.Slot, Holder: h.Name, Fence: h.Fence,
			LeftMS: h.Left.Milliseconds(), Waiting: info.Waiting,
		}
		if h.Left < 0 {
			s.LeftMS = -1
		}
		if !h.Since.IsZero() {
			since := h.Since.UTC()
			s.Since = &since
		}
		lines = append(lines, s)
	}
	if lines == nil {
		lines = []slotStatus{{Lock: info.Lock, Fence: info.Fence, Waiting: info.Waiting}}
	}
	return lines
}

func writeTable(w io.Writer, lines []slotStatus, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LOCK\tSLOT\tHOLDER\tSINCE\tFENCE\tEXPIRES IN\tWAITING")
	for _, s := range lines {
		holder, since, left := "-", "-", "-"
		switch {
		case s.LeftMS < 0:
			left = "never"
		case s.LeftMS > 0:
			left = (time.Duration(s.LeftMS) * time.Millisecond).String()
		}
		if s.Holder != "" {
			holder = s.Holder
		} else if s.LeftMS != 0 {
			holder = "?" // a key that is not ours
		}
		if s.Since != nil {
			since = now.Sub(*s.Since).Round(time.Second).String() + " ago"
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%d\t%s\t%d\n", s.Lock, s.Slot, holder, since, s.Fence, left, s.Waiting)
	}
	return t.Flush()
}
