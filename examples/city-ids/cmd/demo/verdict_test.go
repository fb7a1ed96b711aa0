package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/examples/city-ids/tasks"
)

var began = time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)

// at is a time of the story, in milliseconds.
func at(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }

func task(ms int, id, fence int64, pod string) tasks.Task {
	return tasks.Task{CityID: id, Fence: fence, Worker: pod, At: at(ms)}
}

// seen is an answer "leader" whose validity runs out at until.
func seen(pod string, fence int64, sent, heard, until int) sighting {
	return sighting{pod, fence, at(sent), at(heard), time.Duration(until-sent) * time.Millisecond}
}

// story is a good one: a is killed at 1 s, b is stopped at 4 s, c freezes at 6 s with city
// ID 5 in hand, and a leads again.
func story() evidence {
	e := evidence{
		Lease: 3 * time.Second,
		Slack: 2 * time.Second,
		Record: tasks.Record{
			Tasks: []tasks.Task{
				task(500, 1, 10, "a"), task(900, 2, 10, "a"), task(3400, 3, 20, "b"), task(4100, 4, 20, "b"),
				task(4200, 5, 30, "c"), task(8600, 6, 40, "a"),
			},
			Refused: []tasks.Refusal{{Task: task(9000, 6, 30, "c"), Reason: tasks.LowerFence, Highest: 40, Next: 7}},
		},
		Sightings: []sighting{
			seen("a", 10, 400, 401, 2200), seen("a", 10, 950, 951, 2900),
			seen("b", 20, 3000, 3300, 5200), seen("b", 20, 3900, 3901, 5800),
			seen("c", 30, 4000, 4152, 6100), seen("c", 30, 5990, 5991, 7800),
			seen("a", 40, 8400, 8504, 10200),
		},
		Acts: []act{
			{Kind: kill, Pod: "a", Fence: 10, At: at(1000), Rest: 2290 * time.Millisecond},
			{Kind: stop, Pod: "b", Fence: 20, At: at(4000), Done: at(4150)},
			{Kind: freeze, Pod: "c", Fence: 30, At: at(6000), Rest: 2500 * time.Millisecond},
		},
	}
	for _, t := range e.Record.Tasks {
		e.Acks = append(e.Acks, ack{t.Worker, t.CityID, t.Fence})
	}
	return e
}

func TestJudgeGoodStory(t *testing.T) {
	v := judge(story())
	if len(v.Wrong) != 0 {
		t.Errorf("wrong: %q, want nothing", v.Wrong)
	}
	if v.Handed != 6 || v.Terms != 4 || v.Answers != 7 || len(v.Stale) != 1 || len(v.Takeovers) != 3 {
		t.Errorf("%+v, want 6 IDs, 4 terms, 7 answers, 1 stale write, 3 takeovers", v)
	}
	for i, want := range []struct {
		next                 string
		leads, write, beyond time.Duration
	}{
		{"b", 2300, 2400, 10},
		{"c", 152, 200, 2},
		{"a", 2504, 2600, 4},
	} {
		o := v.Takeovers[i]
		if o.Next != want.next || o.Leads.Milliseconds() != int64(want.leads) ||
			o.Write.Milliseconds() != int64(want.write) || o.beyond().Milliseconds() != int64(want.beyond) {
			t.Errorf("takeover %d: %s leads after %v, writes after %v, %v beyond; want %+v (ms)",
				i, o.Next, o.Leads, o.Write, o.beyond(), want)
		}
	}
}

// This program may look late; a city ID shows that the next one led.
func TestJudgeTakesTheFirstSign(t *testing.T) {
	e := story()
	e.Sightings[6] = seen("a", 40, 9000, 9100, 10200)
	if got := judge(e).Takeovers[2].Leads; got != 2600*time.Millisecond {
		t.Errorf("leads after %v, want 2.6s, when it wrote", got)
	}
}

func TestJudgeFinds(t *testing.T) {
	for _, c := range []struct {
		name string
		with func(*evidence)
		want []string // how the wrongs begin
	}{
		{"nothing handed out", func(e *evidence) { *e = evidence{} }, []string{
			"no city ID was handed out",
		}},
		{"a duplicate", func(e *evidence) {
			e.Record.Tasks = append(e.Record.Tasks, task(9000, 6, 40, "a"))
		}, []string{"city ID 6 was handed out twice, the second time by a"}},
		{"a late write that got through", func(e *evidence) {
			e.Record.Tasks = append(e.Record.Tasks, task(9000, 6, 30, "c"))
			e.Record.Refused = nil
		}, []string{
			"city ID 6 was handed out twice, the second time by c",
			"city ID 6 was handed out by c with fence 30 after fence 40",
			"the write that c had in hand when it froze was not refused",
		}},
		{"three times", func(e *evidence) {
			e.Record.Tasks = append(e.Record.Tasks, task(9000, 6, 40, "a"), task(9001, 6, 40, "a"))
		}, []string{"city ID 6 was handed out twice"}},
		{"a gap", func(e *evidence) {
			e.Record.Tasks = append(e.Record.Tasks, task(9000, 8, 40, "a"))
		}, []string{"city ID 7 was left out"}},
		{"a gap at the start", func(e *evidence) { e.Record.Tasks, e.Acks = e.Record.Tasks[1:], e.Acks[1:] }, []string{
			"the first city ID was 2, not 1",
		}},
		{"a shared fence", func(e *evidence) {
			e.Record.Tasks = append(e.Record.Tasks, task(9000, 7, 40, "b"))
		}, []string{"fence 40 was used by both a and b"}},
		{"a lost write", func(e *evidence) { e.Acks = append(e.Acks, ack{"a", 7, 40}) }, []string{
			"a handed out city ID 7 with fence 40, and the store knows nothing of it",
		}},
		{"an ack for another's write", func(e *evidence) { e.Acks = append(e.Acks, ack{"b", 6, 40}) }, []string{
			"b handed out city ID 6 with fence 40",
		}},
		{"a refusal of another term", func(e *evidence) { e.Record.Refused[0].Fence = 20 }, []string{
			"the write that c had in hand when it froze was not refused",
		}},
		{"a refusal for another reason", func(e *evidence) { e.Record.Refused[0].Reason = tasks.WrongID }, []string{
			"the write that c had in hand when it froze was not refused",
		}},
		{"nobody led next", func(e *evidence) {
			e.Sightings = e.Sightings[:6]
			e.Record.Tasks, e.Acks = e.Record.Tasks[:5], e.Acks[:5]
		}, []string{"nobody led after SIGSTOP of c"}},
		{"the next one idles", func(e *evidence) { e.Record.Tasks, e.Acks = e.Record.Tasks[:5], e.Acks[:5] }, []string{
			"a led after SIGSTOP of c, but handed out nothing",
		}},
		{"a slow takeover", func(e *evidence) { e.Lease, e.Acts[2].Rest = 503*time.Millisecond, 0 }, []string{
			"the takeover after SIGSTOP of c came 2.001s late",
		}},
		{"a hand-over just in time", func(e *evidence) { e.Acts[1].At, e.Acts[1].Done = at(2000), at(2200) }, nil},
		{"a slow hand-over", func(e *evidence) { e.Acts[1].At, e.Acts[1].Done = at(2000), at(2100) }, []string{
			"the takeover after SIGTERM of b came 2.052s late",
		}},
		{"no resignation", func(e *evidence) { e.Acts[1].Done = time.Time{} }, []string{"b was stopped and did not resign"}},
		{"trouble", func(e *evidence) { e.Troubles = []string{"smoke"} }, []string{"smoke"}},

		{"an old leader speaks up", func(e *evidence) {
			e.Sightings = append(e.Sightings, seen("c", 30, 8600, 8601, 8700), seen("c", 30, 8602, 8603, 8700))
		}, []string{"two led at once: c said that it leads with fence 30 after a had with the higher fence 40"}},
		{"an old answer comes late", func(e *evidence) { // asked before a led: no proof
			e.Sightings = append(e.Sightings, seen("c", 30, 5995, 8601, 7800))
		}, nil},
		{"too early after a crash", func(e *evidence) {
			e.Sightings = append(e.Sightings, seen("b", 20, 2700, 2899, 5000))
		}, []string{"two led at once: b said that it leads 1ms before the answer of a had run out"}},
		{"just in time after a crash", func(e *evidence) {
			e.Sightings = append(e.Sightings, seen("b", 20, 2700, 2900, 5000))
		}, nil},
		{"next to a leader that was not stopped", func(e *evidence) { e.Acts[1].Pod = "x" }, []string{
			"two led at once: c said that it leads 1.048s before the answer of b had run out",
		}},
		{"a stop of another term", func(e *evidence) {
			e.Sightings = append(e.Sightings, seen("b", 50, 10300, 10301, 12000), seen("a", 60, 11000, 11001, 13000))
		}, []string{"two led at once: a said that it leads 999ms before the answer of b had run out"}},
		{"before the stop", func(e *evidence) { e.Sightings[4] = seen("c", 30, 3950, 3999, 6100) }, []string{
			"two led at once: c said that it leads 1.201s before the answer of b had run out",
		}},
	} {
		e := story()
		c.with(&e)
		got := judge(e).Wrong
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s: wrong = %q, want %q", c.name, got, c.want)
		}
	}
}
