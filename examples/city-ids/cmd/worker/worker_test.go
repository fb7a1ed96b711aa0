package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-dev/soloist/examples/city-ids/tasks"
)

// start runs a worker beside f, with an ID each second. stop is SIGTERM, and waits.
func start(t *testing.T, f *fake, events bool, delay time.Duration) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	log := slog.New(slog.DiscardHandler)
	leads := newLeadership("http://sidecar", f, log)
	w := &worker{
		name:  "a",
		leads: leads,
		tasks: &tasks.Client{URL: "http://store", HTTP: &http.Client{Transport: f}},
		pace:  time.Second,
		delay: delay,
		log:   log,
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		var follow sync.WaitGroup
		follow.Go(func() { leads.follow(ctx, events, 250*time.Millisecond) })
		w.run(ctx)
		follow.Wait()
		leads.resign(context.WithoutCancel(ctx))
	})
	return func() { cancel(); wg.Wait() }
}

// ids are the IDs recorded so far, with their fences.
func (f *fake) ids() (ids []string) {
	for _, task := range f.store.Record().Tasks {
		ids = append(ids, fmt.Sprintf("%d by %d", task.CityID, task.Fence))
	}
	return ids
}

func wantIDs(t *testing.T, f *fake, want ...string) {
	t.Helper()
	if got := f.ids(); !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

func TestWorkerFollows(t *testing.T) {
	for _, events := range []bool{false, true} {
		t.Run(fmt.Sprintf("events=%v", events), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{validFor: 3 * time.Second}
				stop := start(t, f, events, 0)
				defer stop()
				time.Sleep(5 * time.Second)
				wantIDs(t, f) // a standby writes nothing

				f.set(7, 3*time.Second)
				time.Sleep(3500 * time.Millisecond)
				if got := len(f.ids()); got < 3 || got > 4 {
					t.Errorf("leading for 3.5s: recorded %q, want one each second", f.ids())
				}
				f.set(0, 0) // a verdict: at once, not after valid_for_ms
				time.Sleep(time.Second)
				before := f.ids()
				time.Sleep(5 * time.Second)
				wantIDs(t, f, before...)

				f.set(9, 3*time.Second)
				time.Sleep(2 * time.Second)
				if got := f.ids(); len(got) == len(before) || !strings.HasSuffix(got[len(got)-1], "by 9") {
					t.Errorf("recorded %q, want the last by 9", got)
				}
			})
		})
	}
}

// Between two changes the slow questions would not notice; an event makes it ask at once.
func TestWorkerHearsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		stop := start(t, f, true, 0)
		defer stop()
		time.Sleep(10*time.Second + time.Millisecond) // just after a question
		f.set(7, 3*time.Second)
		f.mu.Lock()
		if f.asked != 11 {
			t.Errorf("asked %d times in 10s of silence, want once a second", f.asked)
		}
		stream := f.streams[0]
		f.mu.Unlock()
		_, _ = io.WriteString(stream, ": a comment\n\nid: 1\nevent: leader\n")
		synctest.Wait()
		wantIDs(t, f) // nothing of an event but its data
		_, _ = io.WriteString(stream, "data: {}\n\n")
		synctest.Wait()
		wantIDs(t, f, "1 by 7")

		_ = stream.Close()
		time.Sleep(2 * time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.streams) != 2 {
			t.Errorf("%d streams were opened, want a second one after the first has ended", len(f.streams))
		}
	})
}

// Lost and led again between two questions: the new term begins with its own fence.
func TestNextTermHasItsOwnFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{fence: 7, validFor: 3 * time.Second}
		stop := start(t, f, false, 0)
		defer stop()
		time.Sleep(100 * time.Millisecond)
		f.set(9, 3*time.Second)
		time.Sleep(time.Second)
		wantIDs(t, f, "1 by 7", "2 by 9")
	})
}

// An answer that was long under way is worth what is left, counted from the question.
func TestValidityCountsFromTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{fence: 7, validFor: time.Second, latency: 1200 * time.Millisecond}
		stop := start(t, f, false, 0)
		defer stop()
		time.Sleep(20 * time.Second)
		wantIDs(t, f)
	})
}

func TestNoAnswerIsNoVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{fence: 7, validFor: 2500 * time.Millisecond}
		stop := start(t, f, false, 0)
		defer stop()
		time.Sleep(10 * time.Millisecond)
		f.mu.Lock()
		f.failing = true
		f.mu.Unlock()
		time.Sleep(2 * time.Second)
		wantIDs(t, f, "1 by 7", "2 by 7", "3 by 7") // at 0, 1 and 2 s: still valid
		time.Sleep(20 * time.Second)
		wantIDs(t, f, "1 by 7", "2 by 7", "3 by 7") // and not for ever
	})
}

// A refused fence ends the term, even if the sidecar goes on saying that it leads.
func TestRefusedWriteStopsTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{fence: 7, validFor: 3 * time.Second}
		stop := start(t, f, false, 0)
		defer stop()
		time.Sleep(500 * time.Millisecond)
		if _, err := f.store.Add(tasks.Task{CityID: 2, Fence: 8, Worker: "b"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		wantIDs(t, f, "1 by 7", "2 by 8")
		if n := len(f.store.Record().Refused); n != 1 {
			t.Errorf("%d refused writes, want one", n)
		}
		f.set(9, 3*time.Second)
		time.Sleep(500 * time.Millisecond)
		wantIDs(t, f, "1 by 7", "2 by 8", "3 by 9")
	})
}

// An ID that another handed out after this worker had asked for the next.
func TestWrongIDIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{fence: 7, validFor: 3 * time.Second}
		stop := start(t, f, false, 0)
		defer stop()
		time.Sleep(500 * time.Millisecond)
		for _, id := range []int64{2, 3, 4} {
			if _, err := f.store.Add(tasks.Task{CityID: id, Fence: 7, Worker: "b"}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		wantIDs(t, f, "1 by 7", "2 by 7", "3 by 7", "4 by 7", "5 by 7")
	})
}

func TestLostAnswerOfTheStoreIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{fence: 7, validFor: 3 * time.Second}
		losses := 1
		f.onAdd = func() error {
			if losses--; losses >= 0 {
				return errors.New("connection reset")
			}
			return nil
		}
		stop := start(t, f, false, 0)
		defer stop()
		time.Sleep(2500 * time.Millisecond)
		wantIDs(t, f, "1 by 7", "2 by 7")
	})
}

func TestStopFinishesTheWriteInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{fence: 7, validFor: 3 * time.Second}
		stop := start(t, f, false, 700*time.Millisecond)
		time.Sleep(200 * time.Millisecond)
		wantIDs(t, f)
		stop()
		wantIDs(t, f, "1 by 7")
		if want := []string{`{"done":true,"fence":7} after 1`}; !slices.Equal(f.resigned, want) {
			t.Errorf("resigned %q, want %q", f.resigned, want)
		}
	})
}

func TestStopOfAStandbyResignsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		stop := start(t, f, false, 0)
		time.Sleep(time.Second)
		stop()
		if len(f.resigned) != 0 {
			t.Errorf("resigned %q, want nothing", f.resigned)
		}
	})
}

// The steady clock stands still while a machine is suspended; the wall clock doesn't.
func TestBeliefNeedsBothClocks(t *testing.T) {
	now := time.Now()
	b := newBelief(1, now, time.Second)
	suspended := b
	suspended.wall = b.wall.Add(-time.Second)
	for _, c := range []struct {
		name string
		b    belief
		now  time.Time
		want bool
	}{
		{"before the end", b, now.Add(999 * time.Millisecond), true},
		{"at the end", b, now.Add(time.Second), false},
		{"the wall clock has run ahead", suspended, now.Add(time.Millisecond), false},
		{"no fence", newBelief(0, now, time.Second), now, false},
		{"nothing", belief{}, now, false},
	} {
		if got := c.b.holds(c.now); got != c.want {
			t.Errorf("%s: holds = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestRunJudgesItsFlags(t *testing.T) {
	for _, args := range [][]string{{"--follow=both"}, {"--interval=0s"}, {"--nosuch"}, {"--pace=x"}} {
		err := run(t.Context(), args, func(string) string { return "" }, io.Discard, io.Discard)
		if err == nil {
			t.Errorf("run(%q): no error", args)
		}
	}
}
