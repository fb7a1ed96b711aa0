package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// A state is how a replica looks at one instant.
type state int

const (
	isGone state = iota
	isStarting
	isStandby
	isLeader
	isFrozen
)

// looks are the symbol of each state, its colour, and its name.
var looks = [...]struct{ symbol, colour, name string }{
	isGone:     {"✗", "31", "gone"},
	isStarting: {"○", "2", "starting"},
	isStandby:  {"·", "2", "stands by"},
	isLeader:   {"█", "32", "leads"},
	isFrozen:   {"‖", "36", "frozen"},
}

const (
	sampling = 100 * time.Millisecond // how often the picture is taken, and the live line drawn
	bold     = "1"
	red      = "31"
	green    = "32"
)

// A timeline tells what happens, one line per event, each with the picture of all
// replicas; on a terminal also a live line below. It is safe for concurrent use.
type timeline struct {
	out    io.Writer
	colour bool // and a live line
	pods   []string
	look   func() []state // of each pod
	note   func() string  // the end of the live line

	mu      sync.Mutex
	began   time.Time
	samples [][]state // one each sampling
	live    bool      // the live line is on the screen
}

func newTimeline(out io.Writer, plain bool, pods []string) *timeline {
	return &timeline{out: out, colour: !plain && isTerminal(out), pods: pods, began: time.Now()}
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// head prints what the columns mean, and begins to count the time.
func (t *timeline) head() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began = time.Now()
	var columns, legend []string
	for _, pod := range t.pods {
		columns = append(columns, pod[len(pod)-1:])
	}
	for _, l := range looks {
		legend = append(legend, l.symbol+" "+l.name)
	}
	fmt.Fprintf(t.out, "\n%8s  %s  %s\n", "time", strings.Join(columns, " "), strings.Join(legend, "   "))
}

// say prints one event.
func (t *timeline) say(actor, format string, args ...any) {
	states := t.look()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
	fmt.Fprintf(t.out, "%7.3fs  %s  %s %s\n", time.Since(t.began).Seconds(), t.symbols(states),
		t.paint(bold, actor), fmt.Sprintf(format, args...))
	t.draw(states)
}

// run takes a picture now and then, until ctx is done.
func (t *timeline) run(ctx context.Context) {
	ticker := time.NewTicker(sampling)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			t.mu.Lock()
			t.clear()
			t.mu.Unlock()
			return
		case <-ticker.C:
		}
		states := t.look()
		t.mu.Lock()
		for len(t.samples) <= int(time.Since(t.began)/sampling) { // a late tick stands for those before
			t.samples = append(t.samples, states)
		}
		t.clear()
		t.draw(states)
		t.mu.Unlock()
	}
}

// symbols words the picture. The caller holds mu.
func (t *timeline) symbols(states []state) string {
	var symbols []string
	for _, s := range states {
		symbols = append(symbols, t.paint(looks[s].colour, looks[s].symbol))
	}
	return strings.Join(symbols, " ")
}

// draw draws the live line. The caller holds mu.
func (t *timeline) draw(states []state) {
	if !t.colour {
		return
	}
	var b strings.Builder
	for i, s := range states {
		fmt.Fprintf(&b, "   %s %s", t.pods[i], t.paint(looks[s].colour, fmt.Sprintf("%-9s", looks[s].name)))
	}
	fmt.Fprintf(t.out, "%7.1fs  %s%s   %s", time.Since(t.began).Seconds(), t.symbols(states), b.String(), t.note())
	t.live = true
}

// clear wipes the live line away. The caller holds mu.
func (t *timeline) clear() {
	if t.live {
		fmt.Fprint(t.out, "\r\x1b[K")
		t.live = false
	}
}

func (t *timeline) paint(colour, s string) string {
	if !t.colour {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// seconds words a duration with as many digits as matter.
func seconds(d time.Duration) string {
	if d.Abs() < time.Second {
		return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
