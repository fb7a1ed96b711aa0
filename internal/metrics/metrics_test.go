package metrics

import (
	"context"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/joblock"
	"github.com/soloist-dev/soloist/internal/lease"
	"github.com/soloist-dev/soloist/internal/lease/leasetest"
	"github.com/soloist-dev/soloist/internal/podmeta"
)

var update = flag.Bool("update", false, "write testdata anew")

// fixed is an election that does not move.
type fixed struct {
	state elector.State
	stats elector.Stats
}

func (f *fixed) State() *elector.State { return &f.state }
func (f *fixed) Stats() elector.Stats  { return f.stats }

// example returns a registry in which every metric shows. Call it in a bubble.
func example(t *testing.T) *Registry {
	t.Helper()
	clock := leasetest.NewClock(1)
	stamp := clock.Now()
	valid := lease.Validity{Stamp: stamp, For: lease.DefaultTiming.Belief()}
	began := time.Now()
	r := New("v1.2.3")
	store := r.Store(&slow{Store: leasetest.NewMemory(leasetest.Config{})})
	if _, err := store.Inspect(t.Context(), "leads"); err != nil { // takes 3 ms
		t.Fatal(err)
	}
	if _, err := store.Acquire(t.Context(), lease.Request{}); !errors.Is(err, lease.ErrInvalid) {
		t.Fatal(err)
	}
	if _, err := store.Release(t.Context(), lease.Claim{}); err == nil {
		t.Fatal("a slow store that fails to release was expected")
	}
	time.Sleep(time.Until(began.Add(1500 * time.Millisecond)))
	clock.StepWall(time.Second)
	later := valid
	later.Stamp = clock.Now()
	time.Sleep(250 * time.Millisecond)
	r.Elections(clock.Now,
		&fixed{
			elector.State{
				Lock: "leads", Phase: elector.Leader, Reason: elector.Acquired, Since: began.Add(-time.Hour), Waiting: 2,
				Fence: 1<<53 - 1, Validity: later,
			},
			elector.Stats{
				Transitions: map[elector.Reason]uint64{elector.Acquired: 2, elector.Lost: 1},
				Renewals:    1234, Unanswered: 5, ClockJumps: 6, StoreJumps: 7,
			},
		},
		&fixed{state: elector.State{
			Lock: "waits", Phase: elector.Standby, Reason: elector.HeldByPeer, Waiting: 9, Rank: 3, Fence: 1763683200123456,
		}},
		// What was written says leader; the clocks say otherwise.
		&fixed{state: elector.State{
			Lock: "unverified", Phase: elector.Leader, Reason: elector.Acquired, Since: began, Fence: 3, Validity: valid,
		}},
		&fixed{state: elector.State{Lock: "expired", Phase: elector.Leader, Reason: elector.Acquired, Fence: 4}},
	)
	r.JobLocks(fixedJobs{joblock.Stats{
		Held:     3,
		Acquires: map[string]uint64{"granted": 7, "held": 2}, Releases: map[string]uint64{"held": 4, "lost": 1},
		Lost: map[string]uint64{"expired": 1},
	}})
	r.Pod(fixedPod{podmeta.Stats{
		Marks: 7, Conditions: 2, Events: 3, Dropped: 1, Errors: map[string]uint64{"forbidden": 4}, Behind: true,
	}}, []string{"forbidden", "other"})
	return r
}

type fixedPod struct{ stats podmeta.Stats }

func (p fixedPod) Stats() podmeta.Stats { return p.stats }

type fixedJobs struct{ stats joblock.Stats }

func (f fixedJobs) Stats() joblock.Stats { return f.stats }

// slow is a store that answers after 3 ms, and never to a Release.
type slow struct{ lease.Store }

func (s *slow) Inspect(ctx context.Context, lock string) (lease.Info, error) {
	time.Sleep(3 * time.Millisecond)
	return s.Store.Inspect(ctx, lock)
}

func (s *slow) Release(context.Context, lease.Claim) (bool, error) {
	time.Sleep(time.Second)
	return false, context.DeadlineExceeded
}

// scrape returns what Prometheus would see, without what is the process's.
func scrape(t *testing.T, r *Registry) string {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	req.Header.Set("Accept-Encoding", "gzip, zstd")
	w := httptest.NewRecorder()
	r.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(w, req)
	if w.Code != 200 || w.Header().Get("Content-Encoding") != "" {
		t.Fatalf("%d, %v", w.Code, w.Header())
	}
	var ours strings.Builder
	for line := range strings.Lines(w.Body.String()) {
		if strings.Contains(line, "soloist_") {
			ours.WriteString(line)
		}
	}
	return strings.ReplaceAll(ours.String(), runtime.Version(), "go1.X")
}

func TestExposition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := scrape(t, example(t))
		const golden = "testdata/exposition.txt"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("differs from %s (-update writes it anew):\n%s", golden, got)
		}
	})
}

// A sidecar that has just started shows each label of a closed set, with 0.
func TestFromTheStart(t *testing.T) {
	r := New("dev")
	r.Elections(nil, &fixed{state: elector.State{Lock: "a", Phase: elector.Unknown, Reason: elector.Starting}})
	got := scrape(t, r)
	for _, want := range []string{
		`soloist_leader{lock="a"} 0`, `soloist_state{lock="a",state="unknown"} 1`, `soloist_fence{lock="a"} 0`,
		`soloist_transitions_total{lock="a",reason="lost"} 0`, `soloist_clock_jumps_total{lock="a",where="store"} 0`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("%s is missing from\n%s", want, got)
		}
	}
	for _, unwanted := range []string{"soloist_valid_seconds", "soloist_since_renewal", "soloist_term_age", "soloist_waiters"} {
		if strings.Contains(got, unwanted) {
			t.Errorf("%s is shown, though nothing leads", unwanted)
		}
	}
}

// constants returns the string constants that a file declares, by their types' names.
func constants(t *testing.T, file string) map[string][]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string][]string{}
	for _, d := range f.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			continue
		}
		for _, s := range decl.Specs {
			spec := s.(*ast.ValueSpec)
			var typ string
			if id, ok := spec.Type.(*ast.Ident); ok {
				typ = id.Name
			}
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			declared[typ] = append(declared[typ], text)
		}
	}
	return declared
}

// The closed sets are those that elector declares.
func TestClosedSets(t *testing.T) {
	declared := constants(t, "../elector/state.go")
	want := map[string][]string{"Reason": {string(elector.Starting)}} // no transition comes of it
	for _, p := range phases {
		want["Phase"] = append(want["Phase"], string(p))
	}
	for _, r := range reasons {
		want["Reason"] = append(want["Reason"], string(r))
	}
	for name := range want {
		slices.Sort(want[name])
		slices.Sort(declared[name])
		if !slices.Equal(want[name], declared[name]) {
			t.Errorf("%s: metrics knows %q, elector %q", name, want[name], declared[name])
		}
	}
}

// entry is a line of the table.
type entry struct{ kind, labels, meaning string }

var row = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\w+) \\| ([^|]*?) ?\\| (.*?) \\|")

// docs/metrics.md lists the metrics, with their types, labels and help.
func TestTable(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the process's metrics differ here")
	}
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range slices.Concat(
		constants(t, "../elector/state.go")["Phase"], constants(t, "../elector/state.go")["Reason"],
		constants(t, "../lease/redislease/errors.go")[""],
		[]string{kindCanceled, kindWait, kindTimeout, kindOther, "held", "lost", "burned", "kind", "fence", "invalid"},
	) {
		if v != string(elector.Starting) && !strings.Contains(string(text), "`"+v+"`") {
			t.Errorf("docs/metrics.md does not list %q, which a label may be", v)
		}
	}
	table := map[string]entry{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		if _, twice := table[m[1]]; twice {
			t.Errorf("%s is listed twice", m[1])
		}
		table[m[1]] = entry{m[2], m[3], m[4]}
	}
	synctest.Test(t, func(t *testing.T) {
		families, err := example(t).all.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			name := f.GetName()
			if f.GetHelp() == "" {
				t.Errorf("%s has no help", name)
			}
			var labels []string
			for _, l := range f.GetMetric()[0].GetLabel() {
				labels = append(labels, "`"+l.GetName()+"`")
			}
			want := entry{strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp()}
			got, ok := table[name]
			delete(table, name)
			if !strings.HasPrefix(name, "soloist_") {
				want.meaning, got.meaning = "", "" // not our words
			}
			if !ok || got != want {
				t.Errorf("docs/metrics.md: want | `%s` | %s | %s | %s |, have %+v", name, want.kind, want.labels, want.meaning, got)
			}
		}
		for name := range table {
			if !strings.HasPrefix(name, "process_") { // those depend on what /proc shows
				t.Errorf("docs/metrics.md lists %s, which there is not", name)
			}
		}
		problems, err := promlint.NewWithMetricFamilies(families).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	})
}
