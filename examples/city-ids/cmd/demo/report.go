package main

import (
	"fmt"
	"strings"
	"time"
)

// chartWidth is how many columns the chart of who led may take.
const chartWidth = 72

// chart draws each replica's time from left to right. In a column the rarest state wins,
// so that what was short is seen.
func (t *timeline) chart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	step := (len(t.samples) + chartWidth - 1) / chartWidth
	if step == 0 {
		return
	}
	columns := (len(t.samples) + step - 1) / step
	fmt.Fprintf(t.out, "\n%s\n", t.paint(bold, "Who led"))
	for i, pod := range t.pods {
		var b strings.Builder
		before := isGone
		for c := range columns {
			s := isGone
			for _, states := range t.samples[c*step : min((c+1)*step, len(t.samples))] {
				s = max(s, states[i]) // the states are in the order of what matters
			}
			symbol := looks[s].symbol
			if s == isGone && before == isGone {
				symbol = " "
			}
			before = s
			b.WriteString(t.paint(looks[s].colour, symbol))
		}
		fmt.Fprintf(t.out, "  %-7s%s\n", pod, b.String())
	}
	fmt.Fprintf(t.out, "  %-7s%s\n", "", scale(columns, time.Duration(step)*sampling))
}

// scale words the time below the chart: a mark each 5 seconds.
func scale(columns int, step time.Duration) string {
	const mark = 5 * time.Second
	var b strings.Builder
	for at := time.Duration(0); int(at/step) < columns; at += mark {
		for b.Len() < int(at/step) {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%.0fs", at.Seconds())
	}
	return b.String()
}

// verdict prints what came of it.
func (t *timeline) verdict(v verdict) {
	t.chart()
	row := func(name, value string, more ...any) {
		fmt.Fprintf(t.out, "  %-26s%6s  %s\n", name, value, fmt.Sprint(more...))
	}
	count := func(name string, n int, more ...any) { row(name, fmt.Sprint(n), more...) }

	fmt.Fprintf(t.out, "\n%s\n", t.paint(bold, "Takeovers"))
	format := "  %-22s%-16s%11s%11s   %s\n"
	fmt.Fprintf(t.out, format, "what", "leader", "next leads", "and writes", "why so long")
	for _, o := range v.Takeovers {
		next, leads, writes := o.Next, seconds(o.Leads), seconds(o.Write)
		if next == "" {
			next, leads = "nobody", "-"
		}
		if o.Write == 0 {
			writes = "-"
		}
		fmt.Fprintf(t.out, format, o.Kind+" ("+meaning[o.Kind]+")", o.Pod+" to "+next, leads, writes, why(o))
	}

	fmt.Fprintf(t.out, "\n%s\n", t.paint(bold, "Verdict"))
	count("city IDs handed out", v.Handed)
	count("duplicates", len(v.Duplicates))
	count("gaps", len(v.Gaps))
	count("terms", v.Terms, unplanned(v))
	count("two leaders at once", len(v.Overlaps), "in ", v.Answers, " answers \"leader\"")
	count("writes refused by fence", len(v.Stale))
	for _, r := range v.Stale {
		row("", "", fmt.Sprintf("city ID %d by %s with %d, after %d", r.CityID, r.Worker, r.Fence, r.Highest))
	}
	if len(v.Wrong) == 0 {
		fmt.Fprintf(t.out, "  %s\n", t.paint(green, "Nothing was wrong."))
		return
	}
	for _, w := range v.Wrong {
		fmt.Fprintf(t.out, "  %s %s\n", t.paint(red, "WRONG:"), w)
	}
}

// unplanned words the terms that began without an act: the demo has no hand in them, a
// machine that is too busy to renew a lease in time has.
func unplanned(v verdict) string {
	if n := v.Terms - 1 - len(v.Takeovers); n > 0 {
		return fmt.Sprintf("%d of them unplanned: is this machine busy?", n)
	}
	return ""
}

var meaning = map[string]string{kill: "a crash", stop: "planned", freeze: "a freeze"}

// why words the parts of a takeover's time, so that it explains itself.
func why(o takeover) string {
	switch {
	case o.Next == "":
		return ""
	case o.Kind == stop && o.Done.IsZero():
		return "the worker did not resign"
	case o.Kind == stop:
		return fmt.Sprintf("%s for the write in hand, then %s", seconds(o.Done.Sub(o.At)), ms(o.beyond()))
	default:
		return fmt.Sprintf("%s were left of the lease, then %s", seconds(o.Rest), ms(o.beyond()))
	}
}

// ms words a short time, which measuring may have made negative.
func ms(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", max(0, float64(d)/float64(time.Millisecond)))
}
