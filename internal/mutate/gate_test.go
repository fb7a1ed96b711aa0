package main

import (
	"regexp"
	"strings"
	"testing"
)

// The gate itself, on a module made for it: what must be a kill is one, and nothing else.
func TestGate(t *testing.T) {
	if testing.Short() {
		t.Skip("runs go test a dozen times")
	}
	var stdout, stderr strings.Builder
	code := run(t.Context(), []string{"-C", "testdata/fixture", "testdata/fixture/mutants.txt"}, &stdout, &stderr)
	if code != 1 || stderr.Len() > 0 {
		t.Errorf("exit code %d, want 1; stderr: %s", code, stderr.String())
	}
	want := []string{
		`ok    killed: killed by TestHalf/even in [0-9.]+s`,
		`ok    killed-embedded: killed by TestRelease in .*`,
		`ok    killed-by-death: killed by TestStart in .*`,
		`ok    killed-two-edits: killed by TestHalf/even in .*`,
		`FAIL  survivor: survived: \. \^TestTwice\$ passes, yet twice would be thrice`,
		`FAIL  broken: does not build:`,
		`FAIL  stale: its text occurs 0 times in lock\.go, not once: .*`,
		`FAIL  ambiguous: its text occurs 2 times in lock\.go, not once: .*`,
		`FAIL  red: TestRed does not pass without the mutant, either:`,
		`FAIL  untested: \. \^TestNothing\$ runs no test`,
		`FAIL  skipped: survived: .*`,
		`4 passed, 7 failed`,
	}
	var got []string
	for line := range strings.Lines(stdout.String()) {
		if regexp.MustCompile(`^(ok  |FAIL) {2}|passed, `).MatchString(line) {
			got = append(got, strings.TrimSuffix(line, "\n"))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(got), len(want), stdout.String())
	}
	for i := range want {
		if !regexp.MustCompile(`^` + want[i] + `$`).MatchString(got[i]) {
			t.Errorf("line %d:\n have %s\n want %s", i+1, got[i], want[i])
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want int
		says string
	}{
		{"all killed", []string{"-run", "^killed$"}, 0, "1 passed, 0 failed\n"},
		{"none selected", []string{"-run", "nothing"}, 2, `no mutant in testdata/fixture/mutants.txt matches "nothing"`},
		{"bad flag", []string{"-what"}, 2, "not defined"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == 0 && testing.Short() {
				t.Skip("runs go test")
			}
			var out strings.Builder
			args := append([]string{"-C", "testdata/fixture"}, append(tt.args, "testdata/fixture/mutants.txt")...)
			if got := run(t.Context(), args, &out, &out); got != tt.want || !strings.Contains(out.String(), tt.says) {
				t.Errorf("exit code %d, want %d and %q; output:\n%s", got, tt.want, tt.says, out.String())
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ name, table, want string }{
		{"no mutant", "why x\n", "1: the table must begin with a mutant"},
		{"no name", "mutant\n", "1: a mutant needs a name of its own"},
		{"same name", "mutant a\nwhy b\nfile c\n-d\ntest . T\nmutant a\n", "6: a mutant needs a name of its own"},
		{"no why", "mutant a\nfile c\n-d\ntest . T\nmutant b\n", `5: before this line: a has no "why"`},
		{"no edit", "mutant a\nwhy b\nfile c\ntest . T\n", "0: at the end: a changes nothing"},
		{"no test", "mutant a\nwhy b\nfile c\n-d\n", `0: at the end: a has no "test"`},
		{"no file", "mutant a\n-d\n", "2: in which file?"},
		{"no old text", "mutant a\nfile c\n+d\n", `3: "+" without "-"`},
		{"no regexp", "mutant a\ntest .\n", "2: want: test [flags] package regexp"},
		{"unknown", "mutant a\nwhat b\n", `2: want mutant, why, file, -, + or test, have "what"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := parse(strings.NewReader(tt.table)); err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}
