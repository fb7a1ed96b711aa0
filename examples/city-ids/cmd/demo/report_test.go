package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestChart(t *testing.T) {
	var out bytes.Buffer
	line := newTimeline(&out, false, []string{"pod-a", "pod-b"})
	add := func(n int, states ...state) {
		for range n {
			line.samples = append(line.samples, states)
		}
	}
	add(10, isStarting, isGone)
	add(40, isLeader, isStandby)
	add(1, isFrozen, isStandby) // short, and yet seen
	add(29, isLeader, isStandby)
	add(20, isGone, isStandby)
	line.chart()
	want := "\nWho led\n" + // 100 samples of 100 ms in columns of two
		"  pod-a  ○○○○○████████████████████‖██████████████✗\n" +
		"  pod-b       ·············································\n" +
		"         0s                       5s\n"
	var got strings.Builder
	for l := range strings.Lines(out.String()) {
		got.WriteString(strings.TrimRight(l, " \n") + "\n")
	}
	if got.String() != want {
		t.Errorf("chart:%s\nwant:%s", got.String(), want)
	}
}

func TestTimelineInALog(t *testing.T) {
	var out bytes.Buffer
	line := newTimeline(&out, false, []string{"pod-a", "pod-b"})
	line.look = func() []state { return []state{isLeader, isStandby} }
	line.head()
	line.say("pod-a", "leads, with fence %d", 7)
	lines := strings.Split(out.String(), "\n")
	if want := "    time  a b  "; !strings.HasPrefix(lines[1], want) {
		t.Errorf("head %q, want it to begin with %q", lines[1], want)
	}
	if want := "s  █ ·  pod-a leads, with fence 7"; !strings.HasSuffix(lines[2], want) || len(lines) != 4 {
		t.Errorf("lines %q, want one that ends with %q", lines[2:], want)
	}
}

func TestTimelineOnATerminal(t *testing.T) {
	var out bytes.Buffer
	line := newTimeline(&out, false, []string{"pod-a"})
	line.colour = true
	line.look = func() []state { return []state{isLeader} }
	line.note = func() string { return "next city ID 8" }
	line.say("pod-a", "leads")
	line.say("pod-a", "writes")
	want := []string{"\x1b[1mpod-a\x1b[0m leads\n", "next city ID 8\r\x1b[K", "writes\n", "next city ID 8"}
	rest := out.String()
	for _, w := range want {
		_, after, ok := strings.Cut(rest, w)
		if !ok {
			t.Errorf("%q not in its place in %q", w, out.String())
		}
		rest = after
	}
}

func TestWhy(t *testing.T) {
	a := act{Kind: kill, At: at(0), Rest: 2 * time.Second}
	s := act{Kind: stop, At: at(0), Done: at(120)}
	for _, c := range []struct {
		o    takeover
		want string
	}{
		{takeover{act: a}, ""},
		{takeover{act: a, Next: "b", Leads: 2004 * time.Millisecond}, "2.00 s were left of the lease, then 4.0 ms"},
		{takeover{act: a, Next: "b", Leads: 1999 * time.Millisecond}, "2.00 s were left of the lease, then 0.0 ms"},
		{takeover{act: s, Next: "b", Leads: 121500 * time.Microsecond}, "120 ms for the write in hand, then 1.5 ms"},
		{takeover{act: act{Kind: stop}, Next: "b"}, "the worker did not resign"},
	} {
		if got := why(c.o); got != c.want {
			t.Errorf("why(%+v) = %q, want %q", c.o, got, c.want)
		}
	}
}
