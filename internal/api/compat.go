package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

// Endpoints for apps that were written for another elector: contrib's and its
// descendants (/, /isLeader, /api/leader), and NAIS's (/, /sse). Such an app takes
// itself for the leader if the name is its hostname, so it is that only while this pod
// leads. The status is 200 always, and the election is the first.

// maxHostname is how much of a pod's name Kubernetes makes the hostname.
const maxHostname = 63

// hostname is the hostname of a pod.
func hostname(pod string) string {
	if len(pod) <= maxHostname {
		return pod
	}
	return strings.TrimRight(pod[:maxHostname], "-.")
}

// leaderHost is the hostname of who leads. Pods with long names may have one hostname:
// it is told only if this pod is not among them, or leads.
func leaderHost(v *elector.View) string {
	name := hostname(holder(v))
	if !v.Leading && name == hostname(v.Name) {
		return ""
	}
	return name
}

// first returns the first election. If there is none it answers, and returns nil.
func (s *Server) first(w http.ResponseWriter) Election {
	if len(s.cfg.Elections) == 0 {
		fail(w, http.StatusNotFound, "unknown_lock", "this sidecar runs no election")
		return nil
	}
	return s.cfg.Elections[0]
}

// reply sends what body makes of the first election.
func (s *Server) reply(w http.ResponseWriter, body func(b []byte, v *elector.View) []byte) {
	e := s.first(w)
	if e == nil {
		return
	}
	v := e.View()
	buf := buffers.Get().(*buffer)
	buf.b = body(buf.b, &v)
	respond(w, http.StatusOK, buf.b)
	buf.b = buf.b[:0]
	buffers.Put(buf)
}

func (s *Server) name(w http.ResponseWriter, _ *http.Request) { s.reply(w, appendName) }

// appendName serves contrib's clients, who look at the name alone, and NAIS's: last_update
// is when this was known to be so, which is now.
func appendName(b []byte, v *elector.View) []byte {
	b = append(b, `{"name":`...)
	b = appendString(b, leaderHost(v))
	b = append(b, `,"last_update":"`...)
	b = time.Now().UTC().AppendFormat(b, time.RFC3339)
	return append(b, `"}`...)
}

func (s *Server) isLeader(w http.ResponseWriter, _ *http.Request) {
	s.reply(w, func(b []byte, v *elector.View) []byte {
		if v.Leading {
			return append(b, `{"isLeader": true}`...)
		}
		return append(b, `{"isLeader": false}`...)
	})
}

func (s *Server) apiLeader(w http.ResponseWriter, _ *http.Request) {
	s.reply(w, func(b []byte, v *elector.View) []byte {
		b = append(b, `{"leader":`...)
		return append(appendString(b, leaderHost(v)), '}')
	})
}

// sse streams the body of /. NAIS's sends nothing but data, and the same again as often.
func (s *Server) sse(w http.ResponseWriter, r *http.Request) {
	if e := s.first(w); e != nil {
		s.stream(w, r, e, format{event: func(b []byte, v *elector.View) []byte {
			b = append(b, "data: "...)
			return append(appendName(b, v), "\n\n"...)
		}})
	}
}
