package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// perform runs the demo on fake sidecars, and returns its exit code and what it printed.
func perform(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes 12 s")
	}
	worker := filepath.Join(t.TempDir(), "worker")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", worker, module+"/cmd/worker")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), append([]string{
		"--sidecar", self,
		"--worker", worker,
		"--lease-duration", "2s",
		"--renew-deadline", "1500ms",
		"--retry-period", "200ms",
		"--seconds", "1",
		"--slack", "20s", // not a test of the machine
	}, args...), &stdout, &stderr)
	t.Logf("exit code %d\n%s%s", code, &stdout, &stderr)
	return code, stdout.String()
}

func TestDemo(t *testing.T) {
	code, out := perform(t)
	if code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	for _, want := range []string{
		`is killed with -9`, `is stopped with SIGTERM`, `is frozen with SIGSTOP`, `is thawed`,
		`duplicates +0\b`, `gaps +0\b`, `two leaders at once +0\b`, `writes refused by fence +1\b`,
		`of the lease, then`, `for the write in hand, then`, `Nothing was wrong`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %q in the output", want)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("the output has colours, and this is no terminal")
	}
}

// Without the check of the fence the late write of the frozen worker does harm, and the
// verdict says so.
func TestDemoWithoutFence(t *testing.T) {
	code, out := perform(t, "--without-fence")
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	for _, want := range []string{`WRONG: city ID \d+ was handed out twice`, `duplicates +1\b`} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %q in the output", want)
		}
	}
}

func TestWrongFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--nosuch"}, "nosuch"},
		{[]string{"stray"}, "stray"},
		{[]string{"--lease-duration=2s"}, "--lease-duration"},
		{[]string{"--retry-period=1500ms"}, "--retry-period"},
		{[]string{"--pace=0s"}, "--pace"},
	} {
		var stderr bytes.Buffer
		if code := run(t.Context(), c.args, &stderr, &stderr); code != 2 || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("run(%q) = %d, %q; want 2 and a word on %s", c.args, code, &stderr, c.want)
		}
	}
}

func TestEnvironmentIsClean(t *testing.T) {
	t.Setenv("SOLOIST_LOCK", "other")
	t.Setenv("POD_UID", "1")
	t.Setenv("CITY", "2")
	env := environment()
	if slices.Contains(env, "SOLOIST_LOCK=other") || slices.Contains(env, "POD_UID=1") {
		t.Error("the replicas would see this program's SOLOIST_LOCK and POD_UID")
	}
	if !slices.Contains(env, "CITY=2") {
		t.Error("the replicas would not see the rest")
	}
}
