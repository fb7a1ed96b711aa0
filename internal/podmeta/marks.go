package podmeta

import (
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

// Prefix is what every key of ours begins with.
const Prefix = "soloist.dev/"

// Roles are the values of the label soloist.dev/role.
const (
	RoleLeader  = "leader"
	RoleStandby = "standby"
)

// marks are the labels and annotations of a pod that are ours.
type marks struct {
	labels, annotations map[string]string
}

// suffixed is what a lock's name must be to stand in a key behind "since.": the name part
// of a key has at most 63 characters.
var suffixed = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,54}[a-z0-9])?$`)

// marksOf returns what to show of elections. The first is shown under plain keys, such as
// soloist.dev/role; each other under keys that end in its lock, such as
// soloist.dev/role.billing, if its name can stand in a key.
func marksOf(views []elector.View) marks {
	m := marks{map[string]string{}, map[string]string{}}
	for i, v := range views {
		suffix := ""
		if i > 0 {
			if !suffixed.MatchString(v.Lock) {
				continue
			}
			suffix = "." + v.Lock
		}
		key := func(name string) string { return Prefix + name + suffix }
		role := RoleStandby
		if v.Leading {
			role = RoleLeader
		}
		m.labels[key("role")] = role
		m.annotations[key("lock")] = v.Lock
		m.annotations[key("leader")] = v.Holder
		m.annotations[key("fence")] = strconv.FormatUint(v.Fence, 10)
		m.annotations[key("since")] = v.Since.UTC().Format(time.RFC3339)
		m.annotations[key("reason")] = string(v.Reason)
	}
	return m
}

// leaving are the reasons of a pod that ends: it is shown as it was, so that a Service
// switches from it to the next leader in one step. (Its endpoint is terminating, and is
// used no more once there is another.)
var leaving = []elector.Reason{elector.Ending, elector.Stopped, elector.DrainOver}

// shown returns what to show of now, an election that was shown as before.
func shown(before, now elector.View) elector.View {
	if before.Lock == "" {
		return now // the first time: marks of a crashed predecessor go
	}
	ends := slices.Contains(leaving, now.Reason) || now.Reason == elector.Resigned && before.Draining
	if ends && before.Leading {
		return before
	}
	return now
}

// An occasion is what an Event tells.
type occasion struct {
	reason  string // for programs, in Kubernetes' style
	note    string
	warning bool
	at      time.Time
}

// occasionOf returns what an Event should tell of the change from before to now, if any:
// of what happens to this pod, not of what happens to the leader elsewhere.
func occasionOf(before, now elector.View) (occasion, bool) {
	o := occasion{at: time.Now()}
	if now.Since.After(before.Since) && now.Since.Before(o.at) {
		o.at = now.Since // a term may have ended before anybody could notice
	}
	lock := strconv.Quote(now.Lock)
	switch {
	case now.Leading && (!before.Leading || before.Fence != now.Fence):
		o.reason = "Leading"
		o.note = "leads " + lock + " with fence " + strconv.FormatUint(now.Fence, 10) + " (" + string(now.Reason) + ")"
		return o, true
	case before.Leading && !now.Leading:
		o.reason = "NotLeading"
		o.note = "no longer leads " + lock + " (" + string(now.Reason) + "); its fence was " + strconv.FormatUint(before.Fence, 10)
		switch now.Reason {
		case elector.Lost, elector.Expired, elector.Unhealthy, elector.Silent, elector.Unverified, elector.DrainOver:
			o.warning = true
		}
		return o, true
	case now.Reason == before.Reason:
	case now.Reason == elector.Refused:
		return occasion{"Refused", "the store refuses this candidate for " + lock + ": see the sidecar's log", true, o.at}, true
	case now.Reason == elector.Unanswered:
		return occasion{"StoreUnanswered", "who leads " + lock + " is not known: the store does not answer", true, o.at}, true
	}
	return occasion{}, false
}
