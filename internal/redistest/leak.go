package redistest

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const leakLabel = "redistest-leaks"

var leakChecks atomic.Int64

// CheckLeaks fails the test if goroutines that it started, or that these started,
// still run at its end; they have 5 s to leave. Call it first, from the test's own
// goroutine, so that its check comes after all other cleanups. It can be used in
// parallel tests: goroutines are told apart by a profiler label, which a goroutine
// inherits from the one that starts it. So it does not see what the runtime starts
// (time.AfterFunc), and code that sets profiler labels itself. A test that has
// failed is not checked.
func CheckLeaks(t testing.TB) {
	t.Helper()
	checkLeaks(t, 5*time.Second)
}

func checkLeaks(t testing.TB, limit time.Duration) {
	t.Helper()
	id := strconv.FormatInt(leakChecks.Add(1), 10)
	labels := pprof.Labels(leakLabel, id)
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), labels))
	t.Cleanup(func() {
		t.Helper()
		pprof.SetGoroutineLabels(context.Background())
		if t.Failed() {
			return
		}
		left := goroutines(id)
		for deadline := time.Now().Add(limit); len(left) > 0 && time.Now().Before(deadline); {
			<-time.After(2 * time.Millisecond)
			left = goroutines(id)
		}
		if len(left) > 0 {
			t.Errorf("redistest: goroutines left behind:\n%s", strings.Join(left, "\n\n"))
		}
	})
}

// goroutines returns the stacks of the goroutines with a label.
func goroutines(id string) []string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return []string{err.Error()}
	}
	label := strconv.Quote(leakLabel) + ":" + strconv.Quote(id)
	var found []string
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		// os/signal starts one for the whole process, on first use.
		if strings.Contains(stack, label) && !strings.Contains(stack, "os/signal.loop") {
			found = append(found, stack)
		}
	}
	return found
}
