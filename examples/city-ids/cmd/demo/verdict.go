package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-dev/soloist/examples/city-ids/tasks"
)

// A sighting is one answer "leader" of a sidecar.
type sighting struct {
	Pod         string
	Fence       int64
	Sent, Heard time.Time     // the question, the answer
	ValidFor    time.Duration // counts from Sent
}

func (s sighting) validUntil() time.Time { return s.Sent.Add(s.ValidFor) }

// An ack is a worker's word that the task store has taken its city ID.
type ack struct {
	Pod           string
	CityID, Fence int64
}

// The kinds of act.
const (
	kill   = "kill -9"
	stop   = "SIGTERM"
	freeze = "SIGSTOP"
)

// An act is what was done to a leader.
type act struct {
	Kind  string
	Pod   string
	Fence int64 // of its term
	At    time.Time
	Rest  time.Duration // what was left of its lease: nobody may lead before. 0 for stop
	Done  time.Time     // for stop: when the worker said that its work was done
}

// evidence is what the verdict rests on. The parts come from independent witnesses: the
// task store, the workers, and the sidecars as this program saw them.
type evidence struct {
	Lease     time.Duration // nobody waits longer after a crash
	Slack     time.Duration // how much longer a takeover may take, as the machine may be busy
	Record    tasks.Record
	Acks      []ack
	Sightings []sighting // in the order in which they were heard
	Acts      []act
	Troubles  []string // anything else that went wrong
}

// A takeover is what followed an act.
type takeover struct {
	act

	Next  string        // who led next; "" if nobody did
	Leads time.Duration // from the act to the first sign that the next one leads
	Write time.Duration // from the act to the first city ID of the next; 0 if none
}

// beyond is the part of a takeover that neither the lease's rest nor the work in hand
// explains.
func (t takeover) beyond() time.Duration {
	if t.Kind == stop {
		return t.Leads - t.Done.Sub(t.At)
	}
	return t.Leads - t.Rest
}

// late is by how much a takeover took longer than promised: at once when the worker's
// work is done, or when the lease has run out, which is never more than a whole one.
func (t takeover) late(lease time.Duration) time.Duration {
	if t.Kind == stop {
		return t.beyond()
	}
	return t.Leads - lease
}

type verdict struct {
	Handed     int // city IDs, each counted once
	Duplicates []int64
	Gaps       []int64
	Terms      int
	Answers    int      // "leader", of all sidecars
	Overlaps   []string // proofs that two led at once
	Stale      []tasks.Refusal
	Takeovers  []takeover
	Wrong      []string // all that was wrong, one sentence each; empty is a pass
}

func (v *verdict) wrong(format string, args ...any) {
	v.Wrong = append(v.Wrong, fmt.Sprintf(format, args...))
}

// judge is a pure function.
func judge(e evidence) verdict {
	terms := make(map[int64]bool)
	for _, s := range e.Sightings {
		terms[s.Fence] = true
	}
	v := verdict{Terms: len(terms), Answers: len(e.Sightings), Overlaps: overlaps(e)}
	v.judgeRecord(e)
	for _, o := range v.Overlaps {
		v.wrong("two led at once: %s", o)
	}
	v.judgeActs(e)
	v.Wrong = append(v.Wrong, e.Troubles...)
	return v
}

// judgeRecord looks at what was handed out.
func (v *verdict) judgeRecord(e evidence) {
	times := make(map[int64]int)
	var first, last int64
	writers := make(map[int64]string) // by fence
	var fence int64                   // the highest so far
	for i, t := range e.Record.Tasks {
		if i == 0 {
			first = t.CityID
		}
		last = max(last, t.CityID)
		times[t.CityID]++
		if times[t.CityID] == 2 {
			v.Duplicates = append(v.Duplicates, t.CityID)
			v.wrong("city ID %d was handed out twice, the second time by %s", t.CityID, t.Worker)
		}
		if t.Fence < fence {
			v.wrong("city ID %d was handed out by %s with fence %d after fence %d", t.CityID, t.Worker, t.Fence, fence)
		}
		fence = max(fence, t.Fence)
		if w, ok := writers[t.Fence]; ok && w != t.Worker {
			v.wrong("fence %d was used by both %s and %s", t.Fence, w, t.Worker)
		}
		writers[t.Fence] = t.Worker
	}
	v.Handed = len(times)
	if v.Handed == 0 {
		v.wrong("no city ID was handed out")
	} else if first != 1 {
		v.wrong("the first city ID was %d, not 1", first)
	}
	for id := first; id < last; id++ {
		if times[id] == 0 {
			v.Gaps = append(v.Gaps, id)
			v.wrong("city ID %d was left out", id)
		}
	}
	for _, a := range e.Acks {
		if !slices.ContainsFunc(e.Record.Tasks, func(t tasks.Task) bool {
			return t.CityID == a.CityID && t.Fence == a.Fence && t.Worker == a.Pod
		}) {
			v.wrong("%s handed out city ID %d with fence %d, and the store knows nothing of it", a.Pod, a.CityID, a.Fence)
		}
	}
	for _, r := range e.Record.Refused {
		if r.Reason == tasks.LowerFence {
			v.Stale = append(v.Stale, r)
		}
	}
}

// judgeActs looks at what followed each act.
func (v *verdict) judgeActs(e evidence) {
	for _, a := range e.Acts {
		t := follow(a, e)
		v.Takeovers = append(v.Takeovers, t)
		switch {
		case t.Next == "":
			v.wrong("nobody led after %s of %s", a.Kind, a.Pod)
		case t.Write == 0:
			v.wrong("%s led after %s of %s, but handed out nothing", t.Next, a.Kind, a.Pod)
		case t.late(e.Lease) > e.Slack:
			v.wrong("the takeover after %s of %s came %v late", a.Kind, a.Pod, t.late(e.Lease))
		}
		if a.Kind == stop && a.Done.IsZero() {
			v.wrong("%s was stopped and did not resign", a.Pod)
		}
		if a.Kind == freeze && !slices.ContainsFunc(v.Stale, func(r tasks.Refusal) bool {
			return r.Worker == a.Pod && r.Fence == a.Fence
		}) {
			v.wrong("the write that %s had in hand when it froze was not refused", a.Pod)
		}
	}
}

// follow finds who led after an act.
func follow(a act, e evidence) takeover {
	t := takeover{act: a}
	next, ok := firstAfter(a, e)
	if !ok {
		return t
	}
	t.Next, t.Leads = next.Pod, next.Heard.Sub(a.At)
	for _, task := range e.Record.Tasks {
		if task.Fence == next.Fence {
			t.Write = task.At.Sub(a.At)
			t.Leads = min(t.Leads, t.Write) // this program may have looked late
			break
		}
	}
	return t
}

// firstAfter returns the first answer "leader" of a term after that of an act.
func firstAfter(a act, e evidence) (first sighting, ok bool) {
	i := slices.IndexFunc(e.Sightings, func(s sighting) bool { return s.Fence > a.Fence })
	if i < 0 {
		return first, false
	}
	return e.Sightings[i], true
}

// overlaps looks for proofs that two sidecars led at once. An answer proves that its
// sidecar led at some instant between question and answer, and promises that no other
// will until its validity has run out.
func overlaps(e evidence) (found []string) {
	type pair struct {
		pod, otherPod     string
		fence, otherFence int64
	}
	told := make(map[pair]bool)
	tell := func(x, y sighting, format string, args ...any) {
		if p := (pair{x.Pod, y.Pod, x.Fence, y.Fence}); !told[p] {
			told[p] = true
			found = append(found, y.Pod+" said that it leads "+fmt.Sprintf(format, args...))
		}
	}
	for _, x := range e.Sightings {
		for _, y := range e.Sightings {
			switch {
			case y.Sent.Before(x.Heard):
				// not surely later
			case y.Fence < x.Fence:
				tell(x, y, "with fence %d after %s had with the higher fence %d", y.Fence, x.Pod, x.Fence)
			case y.Pod != x.Pod && y.Heard.Before(x.validUntil()) && !endedEarly(x, y.Heard, e.Acts):
				tell(x, y, "%v before the answer of %s had run out", x.validUntil().Sub(y.Heard), x.Pod)
			}
		}
	}
	return found
}

// endedEarly tells whether the term of x was ended on purpose before t: by SIGTERM, after
// which the worker says that its work is done.
func endedEarly(x sighting, t time.Time, acts []act) bool {
	return slices.ContainsFunc(acts, func(a act) bool {
		return a.Kind == stop && a.Pod == x.Pod && a.Fence == x.Fence && a.At.Before(t)
	})
}
