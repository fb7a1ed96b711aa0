package health

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

func election(phase elector.Phase, reason elector.Reason, change func(*Election)) Election {
	e := Election{
		View:  elector.View{State: elector.State{Lock: "jobs", Phase: phase, Reason: reason}},
		Bound: 15 * time.Second,
	}
	e.Leading = phase == elector.Leader
	if change != nil {
		change(&e)
	}
	return e
}

func TestLive(t *testing.T) {
	overdue := func(name string, d time.Duration) Election {
		return election(elector.Standby, elector.HeldByPeer, func(e *Election) { e.Lock, e.Overdue = name, d })
	}
	for _, tt := range []struct {
		name string
		all  []Election
		want Judgement
	}{
		{"no elections", nil, Judgement{true, "ok\n"}},
		{"on time", []Election{overdue("a", 0), overdue("b", 0)}, Judgement{true, "ok\n"}},
		{"late, within its bound", []Election{overdue("a", 15*time.Second)}, Judgement{true, "ok\n"}},
		{"one too late", []Election{overdue("a", 0), overdue("b", 15*time.Second+1500*time.Microsecond)},
			Judgement{false, "b: a loop is overdue by 15.002s, more than 15s\n"}},
		{"each too late is named", []Election{overdue("a", time.Minute), overdue("b", time.Hour)},
			Judgement{false, "a: a loop is overdue by 1m0s, more than 15s\nb: a loop is overdue by 1h0m0s, more than 15s\n"}},
		{"whatever the store does", []Election{election(elector.Unknown, elector.Unanswered, func(e *Election) { e.StoreError = "x" })},
			Judgement{true, "ok\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Live(tt.all); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestReady(t *testing.T) {
	fence := func(e *Election) { e.Fence = 17 }
	failing := func(e *Election) { e.StoreError = "dial tcp 10.0.0.7:6379: i/o timeout" }
	for _, tt := range []struct {
		name     string
		onLeader bool
		all      []Election
		want     Judgement
	}{
		{"no elections", false, nil, Judgement{true, "ok\n"}},
		{"a standby", false, []Election{election(elector.Standby, elector.HeldByPeer, nil)},
			Judgement{true, "jobs: standby (held)\n"}},
		{"not heard from the store", false, []Election{election(elector.Unknown, elector.Starting, failing)},
			Judgement{false, "jobs: unknown (starting): the store has not answered yet\n"}},
		{"the store fell silent later", false, []Election{election(elector.Unknown, elector.Unanswered, failing)},
			Judgement{true, "jobs: unknown (no-answer)\n"}},
		{"draining", false, []Election{election(elector.Leader, elector.Acquired, func(e *Election) { e.Draining = true })},
			Judgement{true, "jobs: leader (acquired), draining\n"}},
		{"stopped as planned", false, []Election{election(elector.Standby, elector.Stopped, fence)},
			Judgement{true, "jobs: standby (stopped)\n"}},
		{"the app was never well", false, []Election{election(elector.Standby, elector.Unhealthy, nil)},
			Judgement{true, "jobs: standby (unhealthy): waiting for the app\n"}},
		{"nor could it be asked for", false, []Election{election(elector.Standby, elector.Silent, failing)},
			Judgement{false, "jobs: standby (silent): the store has not answered yet\n"}},
		{"the app fell ill", false, []Election{election(elector.Standby, elector.Unhealthy, func(e *Election) { fence(e); failing(e) })},
			Judgement{true, "jobs: standby (unhealthy)\n"}},
		{"refused from the start", false, []Election{election(elector.Standby, elector.Refused, nil)},
			Judgement{false, "jobs: standby (refused): the store refuses this candidate, see the log\n"}},
		{"refused later", false, []Election{election(elector.Standby, elector.Refused, fence)},
			Judgement{true, "jobs: standby (refused)\n"}},
		{"every election must have been answered", false,
			[]Election{election(elector.Leader, elector.Acquired, nil), election(elector.Unknown, elector.Starting, func(e *Election) { e.Lock = "b" })},
			Judgement{false, "jobs: leader (acquired)\nb: unknown (starting): the store has not answered yet\n"}},

		{"leader alone: a leader", true, []Election{election(elector.Leader, elector.Acquired, nil)},
			Judgement{true, "jobs: leader (acquired)\n"}},
		{"leader alone: one that drains", true, []Election{election(elector.Leader, elector.Acquired, func(e *Election) { e.Draining = true })},
			Judgement{true, "jobs: leader (acquired), draining\n"}},
		{"leader alone: a standby", true, []Election{election(elector.Standby, elector.HeldByPeer, nil)},
			Judgement{false, "jobs: standby (held)\nready on the leader alone, and this is not it\n"}},
		{"leader alone: not verified", true, []Election{election(elector.Unknown, elector.Unverified, nil)},
			Judgement{false, "jobs: unknown (clock-jump)\nready on the leader alone, and this is not it\n"}},
		{"leader alone: of one of two", true,
			[]Election{election(elector.Standby, elector.HeldByPeer, nil), election(elector.Leader, elector.Acquired, nil)},
			Judgement{true, "jobs: standby (held)\njobs: leader (acquired)\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Ready(tt.all, tt.onLeader); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// Each reason is judged on purpose.
func TestReasons(t *testing.T) {
	want := map[elector.Reason]bool{
		elector.Starting: false, elector.Ending: false, elector.Stopped: false, elector.Refused: false,
		elector.Unhealthy: true, elector.Silent: true,
		// These follow only from an answer.
		elector.Acquired: true, elector.Reclaimed: true, elector.Failover: true, elector.Verified: true, elector.HeldByPeer: true,
		elector.Unverified: true, elector.Lost: true, elector.Expired: true, elector.Resigned: true,
		elector.Unanswered: true, elector.DrainOver: true,
	}
	for _, reason := range reasons(t) {
		ok, judged := want[reason]
		if !judged {
			t.Errorf("reason %q: whether it says that the store has answered is not decided yet", reason)
		} else if got, _ := reached(&elector.State{Reason: reason}); got != ok {
			t.Errorf("reason %q: %v, want %v", reason, got, ok)
		}
		if got, _ := reached(&elector.State{Reason: reason, Fence: 1, StoreError: "x"}); !got {
			t.Errorf("reason %q with a fence: the store has answered", reason)
		}
	}
}

// reasons reads the closed set where it is declared.
func reasons(t *testing.T) (all []elector.Reason) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../elector/state.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Reason" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, elector.Reason(text))
		}
		return false
	})
	if len(all) == 0 {
		t.Fatal("no reasons found")
	}
	return all
}
