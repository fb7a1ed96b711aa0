// Package health is the kubelet's interface: whether the sidecar is alive, whether it is
// ready, and its metrics, on a listener that the whole cluster can reach. So nothing here
// changes state, and nothing that is said here is secret.
//
// The judgements [Live] and [Ready] are functions of snapshots. Neither asks the store:
// a probe that did would have the kubelet restart every sidecar at once when the store
// has trouble.
package health

import (
	"fmt"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

// Election is one election as it was at one instant.
type Election struct {
	elector.View
	Overdue time.Duration // for how long one of its loops has owed a sign of life
	Bound   time.Duration // how much of that is too much
}

// Judgement is the answer to a probe.
type Judgement struct {
	OK   bool
	Text string // a line for each election, for people; holds no secrets
}

// Live is false only if a loop of an election is overdue by more than its bound: then it
// hangs, and only a restart helps. What the store does makes no loop overdue.
func Live(all []Election) Judgement {
	var text strings.Builder
	for _, e := range all {
		if e.Overdue > e.Bound {
			fmt.Fprintf(&text, "%s: a loop is overdue by %v, more than %v\n",
				e.Lock, e.Overdue.Round(time.Millisecond), e.Bound)
		}
	}
	if text.Len() > 0 {
		return Judgement{false, text.String()}
	}
	return Judgement{true, "ok\n"}
}

// Ready is true once the store has answered each election, on standbys too, and stays so:
// whether the app is ready does not depend on the store. If readiness fell with it, all
// replicas would fall out of their Service at once, and the store's trouble would be an
// outage of the app. A pod that has never reached its store is another matter: a rollout
// should stop at it.
//
// If onLeader, it is true only where, besides, one of the elections is led now.
func Ready(all []Election, onLeader bool) Judgement {
	var text strings.Builder
	answered, leading := true, false
	for _, e := range all {
		ok, why := reached(&e.State)
		answered = answered && ok
		leading = leading || e.Leading
		fmt.Fprintf(&text, "%s: %s (%s)", e.Lock, e.Phase, e.Reason)
		if e.Draining {
			text.WriteString(", draining")
		}
		if why != "" {
			text.WriteString(": " + why)
		}
		text.WriteByte('\n')
	}
	if onLeader && !leading {
		text.WriteString("ready on the leader alone, and this is not it\n")
	}
	if text.Len() == 0 {
		text.WriteString("ok\n")
	}
	return Judgement{answered && (leading || !onLeader), text.String()}
}

// reached reports whether the store has ever answered this candidate, as far as its
// state tells, and a remark.
//
// A fence other than 0 was heard from the store, and a state keeps the highest for ever;
// most reasons follow only from an answer. The others:
func reached(s *elector.State) (ok bool, remark string) {
	if s.Fence != 0 {
		return true, ""
	}
	switch s.Reason {
	case elector.Starting, elector.Ending, elector.Stopped:
		return false, "the store has not answered yet"
	case elector.Refused:
		// For good, so this is a mistake in the configuration, at which a rollout should stop.
		return false, "the store refuses this candidate, see the log"
	case elector.Unhealthy, elector.Silent:
		// The store is asked only for an app that is well. Until then the sidecar is as
		// ready as it can be, or an app that starts only after it would never start.
		if s.StoreError != "" {
			return false, "the store has not answered yet"
		}
		return true, "waiting for the app"
	}
	return true, ""
}
