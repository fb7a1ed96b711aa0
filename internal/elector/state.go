package elector

import (
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// Phase is where a candidate stands.
type Phase string

const (
	Leader  Phase = "leader"
	Standby Phase = "standby"
	// Unknown: not known yet who leads, no longer known, or leading but not verified
	// since the wall clock jumped. It is not leading.
	Unknown Phase = "unknown"
)

// Reason says why a State came about: a closed set.
type Reason string

const (
	Starting   Reason = "starting"      // nothing heard from the store yet
	Acquired   Reason = "acquired"      // leads: the lock was free, or its turn came
	Reclaimed  Reason = "reclaimed"     // leads: took back its dead predecessor's lease
	Failover   Reason = "failover"      // leads: the leader's pod was proven dead before its lease ended
	Verified   Reason = "verified"      // leads again: a renewal confirmed it after a clock jump
	HeldByPeer Reason = "held"          // another leads
	Unverified Reason = "clock-jump"    // the wall clock ran ahead; a renewal is under way
	Lost       Reason = "lost"          // the store said that the lease is gone
	Expired    Reason = "expired"       // not renewed in time
	Resigned   Reason = "resigned"      // the app, or an operator, said so
	Unhealthy  Reason = "unhealthy"     // the app's health check fails
	Silent     Reason = "silent"        // the app's heartbeat stopped
	Unanswered Reason = "no-answer"     // the store does not answer and the last known lease has run out
	Ending     Reason = "ending"        // the pod is about to end, so it stays out
	Refused    Reason = "refused"       // the store refuses this candidate for good; see the log
	Stopped    Reason = "stopped"       // planned stop, lease released
	DrainOver  Reason = "drain-timeout" // planned stop, the app was not done in time, lease left to expire
)

// State is one snapshot of an election. It is immutable, and safe for concurrent use.
type State struct {
	Lock    string
	Slots   int    // 0: a plain lock
	Name    string // this candidate
	Phase   Phase  // as of when it was written: use At
	Reason  Reason
	Holder  string    // who leads, as far as known; "" if not
	Fence   uint64    // of the term, or the highest seen
	Slot    int       // of the term
	Since   time.Time // when the leader's term began, where known; else when this phase did
	Version int64     // rises with each change of what is said, and over a restart

	// Validity is what the last confirmed renewal entitles to believe; zero unless leading.
	Validity lease.Validity
	// Draining: the pod is about to end; the app still leads, and may finish.
	Draining bool
	// HandingOver: the term has ended for the app, its lease is kept until the last
	// validity handed out has run out.
	HandingOver bool
	Rank        int    // place in line; -1: not in line
	Waiting     int    // candidates in line, as last heard
	StoreError  string // last failure to get an answer; "" once it answers
}

// View is a State as it is to be read at one instant.
type View struct {
	State
	Leading  bool
	ValidFor time.Duration // > 0 if Leading
}

// At judges s at now. It does not block.
func (s *State) At(now lease.Instant) View {
	v := View{State: *s}
	if s.Phase != Leader {
		return v
	}
	belief, left := s.Validity.At(now)
	switch belief {
	case lease.Valid:
		v.Leading, v.ValidFor = true, left
		return v
	case lease.Unverified:
		v.Phase, v.Reason = Unknown, Unverified
	default:
		v.Phase, v.Reason = Standby, Expired
	}
	v.Holder = ""
	v.Version++ // what the writer is about to say
	return v
}
