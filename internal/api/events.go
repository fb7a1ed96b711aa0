package api

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

// maxNap bounds how long a stream that says "leader" sleeps without a look at the clock:
// timers stand still in a suspend, the belief does not.
const maxNap = time.Second

// minPatience is the least time that a client has to take in what was written.
const minPatience = time.Second

// A format is what a stream looks like.
type format struct {
	event func(b []byte, v *elector.View) []byte
	idle  string // what is sent to a standby when there is no news; "": the event again
}

// events streams each change, and while leading each renewal.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	if e, _ := s.pick(w, r); e != nil {
		s.stream(w, r, e, format{appendEvent, ":\n\n"})
	}
}

func appendEvent(b []byte, v *elector.View) []byte {
	b = append(b, "id: "...)
	b = strconv.AppendInt(b, v.Version, 10)
	b = append(b, "\nevent: "...)
	b = append(b, v.Phase...)
	b = append(b, "\ndata: "...)
	b = appendView(b, v)
	return append(b, "\n\n"...)
}

// stream sends what e says: now, at each change, at each renewal, and as the last thing
// when the server stops. What it says is judged as it is said, and the end of a belief is
// news even if nobody publishes it.
//
// While leading nothing but fresh events is sent, also where no renewal comes: a client
// that hears nothing for valid_for_ms stops, and a comment must not stand in for news.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, e Election, f format) {
	if !s.enter(w) {
		return
	}
	defer s.leave()
	w.Header()["Content-Type"] = eventType
	w.Header()["Cache-Control"] = noStore
	if r.Method == http.MethodHead {
		return
	}
	sub := e.Subscribe()
	defer sub.Close()
	timer := time.NewTimer(0)
	defer timer.Stop()

	var (
		period = e.Timing().RetryPeriod
		said   elector.View // the zero View: nothing yet
		next   time.Time    // when to say something even if there is no news
		line   []byte
		last   bool
	)
	for {
		v := e.View()
		now := time.Now()
		ends := now.Add(v.ValidFor) // of the belief, if there is one
		switch due := !now.Before(next); {
		case last, news(&said, &v), due && (v.Leading || f.idle == ""):
			line, said = f.event(line[:0], &v), v
		case due:
			line = append(line[:0], f.idle...)
		default:
			line = line[:0]
		}
		if len(line) > 0 {
			if err := push(w, line, max(period, minPatience)); err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					s.log.Warn("dropped an event stream: its client does not read", slog.String("lock", v.Lock))
				}
				return
			}
			next = now.Add(period)
			if v.Leading { // a renewal comes before that, or there is something wrong
				next = next.Add(period / 2)
			}
		}
		if last {
			return
		}
		nap := time.Until(next)
		if v.Leading {
			nap = min(nap, time.Until(ends), maxNap)
		}
		timer.Reset(nap)
		select {
		case <-sub.C:
		case <-timer.C:
		case <-s.closing:
			last = true
		case <-r.Context().Done():
			return
		}
	}
}

// news reports whether v says something that said does not, or says it anew.
func news(said, v *elector.View) bool {
	return v.Version != said.Version || v.Phase != said.Phase || v.Reason != said.Reason ||
		v.Leading && v.Validity != said.Validity
}

// push writes a line of a stream, and gives up if the client does not take it in.
func push(w http.ResponseWriter, line []byte, patience time.Duration) error {
	c := http.NewResponseController(w)
	if err := c.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := w.Write(line); err != nil {
		return err
	}
	return c.Flush()
}
