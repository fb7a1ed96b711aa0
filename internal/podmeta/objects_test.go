package podmeta

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/elector"
)

// silent never answers.
type silent struct{}

func (silent) PatchMarks(ctx context.Context, _ []byte) error  { <-ctx.Done(); return ctx.Err() }
func (silent) PatchStatus(ctx context.Context, _ []byte) error { <-ctx.Done(); return ctx.Err() }
func (silent) CreateEvent(ctx context.Context, _ []byte) error { <-ctx.Done(); return ctx.Err() }

func leading(lock string) elector.View {
	return elector.View{Leading: true, ValidFor: time.Second, State: elector.State{
		Lock: lock, Name: "pod-a", Holder: "pod-a", Phase: elector.Leader, Reason: elector.Acquired,
		Fence: 1763683200123456, Since: time.Date(2026, 11, 21, 3, 0, 0, 5, time.FixedZone("", 3600)), Version: 5,
	}}
}

func TestPatch(t *testing.T) {
	first := marksOf([]elector.View{leading("city-ids")})
	const want = `{"metadata":{"annotations":{"soloist.dev/fence":"1763683200123456","soloist.dev/leader":"pod-a",` +
		`"soloist.dev/lock":"city-ids","soloist.dev/reason":"acquired","soloist.dev/since":"2026-11-21T02:00:00Z"},` +
		`"labels":{"soloist.dev/role":"leader"},"uid":"uid-a"}}`
	if got := string(me.patch(nil, first)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	v := leading("city-ids")
	v.Leading, v.Reason, v.Holder = false, elector.Expired, ""
	const change = `{"metadata":{"annotations":{"soloist.dev/leader":"","soloist.dev/reason":"expired"},` +
		`"labels":{"soloist.dev/role":"standby"},"uid":"uid-a"}}`
	if got := string(me.patch(&first, marksOf([]elector.View{v}))); got != change {
		t.Errorf("%s\nwant %s", got, change)
	}
	gone := marks{map[string]string{}, map[string]string{}}
	if got := string(me.patch(&first, gone)); strings.Count(got, "null") != 6 {
		t.Errorf("%s: want all of them removed", got)
	}
}

// Each further election has keys of its own, where its name can stand in one.
func TestSeveralElections(t *testing.T) {
	other := leading("billing")
	other.Leading = false
	m := marksOf([]elector.View{
		leading("city-ids"), other, leading("team/nightly"), leading(strings.Repeat("x", 57)), leading(strings.Repeat("y", 56)),
	})
	for key, want := range map[string]string{
		"role": RoleLeader, "role.billing": RoleStandby, "role." + strings.Repeat("y", 56): RoleLeader,
	} {
		if got := m.labels[Prefix+key]; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if len(m.labels) != 3 || m.annotations[Prefix+"lock.billing"] != "billing" {
		t.Errorf("%v, %v", m.labels, m.annotations)
	}
	for key := range m.annotations {
		if name := strings.TrimPrefix(key, Prefix); len(name) > 63 {
			t.Errorf("%s has a name of %d characters", key, len(name))
		}
	}
}

func TestCondition(t *testing.T) {
	v := leading("x")
	const want = `{"metadata":{"uid":"uid-a"},"status":{"conditions":[{"lastTransitionTime":"2026-11-21T02:00:00Z",` +
		`"message":"acquired","status":"True","type":"soloist.dev/leader"}]}}`
	if got := string(me.condition(true, v.Reason, v.Since)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestOccasions(t *testing.T) {
	standby := leading("l")
	standby.Leading, standby.Phase, standby.Reason = false, elector.Standby, elector.HeldByPeer
	with := func(r elector.Reason) elector.View { v := standby; v.Reason = r; return v }
	next := leading("l")
	next.Fence++
	for name, c := range map[string]struct {
		before, now elector.View
		reason      string
		warning     bool
	}{
		"leads":             {standby, leading("l"), "Leading", false},
		"leads anew":        {leading("l"), next, "Leading", false},
		"leads on":          {leading("l"), leading("l"), "", false},
		"lost":              {leading("l"), with(elector.Lost), "NotLeading", true},
		"resigned":          {leading("l"), with(elector.Resigned), "NotLeading", false},
		"another elsewhere": {with(elector.HeldByPeer), with(elector.HeldByPeer), "", false},
		"refused":           {with(elector.HeldByPeer), with(elector.Refused), "Refused", true},
		"refused still":     {with(elector.Refused), with(elector.Refused), "", false},
		"no answer":         {with(elector.HeldByPeer), with(elector.Unanswered), "StoreUnanswered", true},
		"the first":         {elector.View{}, with(elector.Starting), "", false},
	} {
		o, ok := occasionOf(c.before, c.now)
		if ok != (c.reason != "") || o.reason != c.reason || o.warning != c.warning {
			t.Errorf("%s: %+v, %v", name, o, ok)
		}
	}
}
