package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/soloist-dev/soloist/internal/redistest"
)

// verb runs a verb in this process.
func verb(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, nil, &out, &errs)
	return code, out.String(), errs.String()
}

func TestVerbs(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b := start(t, s, "pod-a"), start(t, s, "pod-b")
	leader, first := leads(t, a, b)
	standby := others(leader, []*process{a, b})[0]

	if code, out, errs := verb(t, "leader", "--http-address="+leader.addr); code != 0 || !strings.Contains(out, `"leader":true`) {
		t.Errorf("leader of the leader: %d %s%s", code, out, errs)
	}
	if code, out, errs := verb(t, "leader", "--http-address="+standby.addr, "--lock=city-ids"); code != 1 || !strings.Contains(out, `"leader":false`) {
		t.Errorf("leader of the standby: %d %s%s", code, out, errs)
	}
	if code, _, errs := verb(t, "leader", "--http-address=127.0.0.1:1"); code != 1 || !strings.Contains(errs, "no answer from the sidecar") {
		t.Errorf("leader of nobody: %d %s", code, errs)
	}

	code, out, errs := verb(t, "status", "--store="+s.URL(), "--lock=city-ids", "--lock=nobody", "--output=json")
	var lines []slotStatus
	if err := json.Unmarshal([]byte(out), &lines); code != 0 || err != nil || len(lines) != 2 {
		t.Fatalf("status: %d %v %s%s", code, err, out, errs)
	}
	if l := lines[0]; l.Holder != leader.name || l.Fence != first.Fence || l.LeftMS <= 0 || l.Since == nil {
		t.Errorf("status: %+v", l)
	}
	if l := lines[1]; l.Holder != "" || l.LeftMS != 0 {
		t.Errorf("status of a free lock: %+v", l)
	}
	if code, out, _ := verb(t, "status", "--store="+s.URL(), "--lock=city-ids"); code != 0 || !strings.Contains(out, "HOLDER") || !strings.Contains(out, leader.name) {
		t.Errorf("status: %d\n%s", code, out)
	}
	if code, _, errs := verb(t, "status", "--store=redis://127.0.0.1:1", "--lock=city-ids"); code != 1 || !strings.Contains(errs, "refused") {
		t.Errorf("status without a store: %d %s", code, errs)
	}

	if code, _, errs := verb(t, "resign", "--http-address="+standby.addr); code != 1 || !strings.Contains(errs, "not_leading") {
		t.Errorf("resign of the standby: %d %s", code, errs)
	}
	if code, _, errs := verb(t, "resign", "--http-address="+leader.addr, "--done"); code != 0 {
		t.Errorf("resign: %d %s", code, errs)
	}
	if now, second := leads(t, standby); now != standby || second.Fence <= first.Fence {
		t.Errorf("after resign: %+v", second)
	}

	for _, p := range []*process{leader, standby} {
		if code, _, errs := verb(t, "wait", "--http-address="+p.addr); code != 0 {
			t.Errorf("wait for %s: %d %s", p.name, code, errs)
		}
		if code, _, errs := verb(t, "drain", "--http-address="+p.addr); code != 0 {
			t.Errorf("drain %s: %d %s", p.name, code, errs)
		}
	}
	leader.await("ending") // the one that resigned
	if code, out, _ := verb(t, "leader", "--http-address="+standby.addr); code != 0 || !strings.Contains(out, `"draining":true`) {
		t.Errorf("the leader after drain: %d %s", code, out)
	}
	for _, v := range []string{"wait", "drain"} {
		if code, _, errs := verb(t, v, "--http-address=127.0.0.1:1", "--timeout=50ms"); code != 1 || !strings.Contains(errs, "no answer from the sidecar") {
			t.Errorf("%s of nobody: %d %s", v, code, errs)
		}
	}

	if code, out, _ := verb(t, "version"); code != 0 || !strings.HasPrefix(out, "sidecar ") {
		t.Errorf("version: %d %s", code, out)
	}
	if code, out, _ := verb(t, "--help"); code != 0 || !strings.Contains(out, "elect") {
		t.Errorf("help: %d %s", code, out)
	}
	if code, _, errs := verb(t, "elekt"); code != 2 || !strings.Contains(errs, "unknown verb") {
		t.Errorf("unknown verb: %d %s", code, errs)
	}
}
