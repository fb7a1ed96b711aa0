package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; if that is meant: go test -run %s -update\ngot:\n%s", file, t.Name(), got)
	}
}

func helpText(t *testing.T, err error) string {
	t.Helper()
	var help *HelpError
	if !errors.As(err, &help) {
		t.Fatalf("got error %v, want help", err)
	}
	return help.Text
}

func TestHelpGolden(t *testing.T) {
	_, _, err := Verb([]string{"--help"})
	texts := map[string]string{"help": helpText(t, err)}
	for _, v := range verbs {
		// Neither the environment nor a mistake changes what is printed.
		_, _, err := Parse(v.name, []string{"--bogus", "--help"}, []string{"SOLOIST_STORE=redis://:hunter2@r", "SOLOIST_LOCK=a"})
		texts["help-"+v.name] = helpText(t, err)
	}
	for name, text := range texts {
		golden(t, name, text)
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("%s: %d columns, more than %d: %s", name, n, width, line)
			}
			if strings.TrimRight(line, " \n") != strings.TrimRight(line, "\n") {
				t.Errorf("%s: white space at the end of: %q", name, line)
			}
		}
	}
}

func TestHelpBudget(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"given", []string{"--lease-duration=1m", "-h", "--renew-deadline=40s"}, `
With --lease-duration 1m, --renew-deadline 40s, --retry-period 2s
  belief lasts       39.598s   after the last confirmed renewal; then the answer is "not leader"
  others take over   1m        after it, not earlier
  the app can use    20s       at least, between the two, to stop
`},
		{"refused", []string{"--renew-deadline=15s", "--help"}, `
With --lease-duration 15s, --renew-deadline 15s, --retry-period 2s
  refused: --renew-deadline (SOLOIST_RENEW_DEADLINE) × 1.02 + 10ms must be ≤ --lease-duration
  (SOLOIST_LEASE_DURATION): 15s × 1.02 + 10ms = 15.31s > 15s
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Parse(Elect, tt.args, nil)
			if got := helpText(t, err); !strings.HasSuffix(got, tt.want) {
				t.Errorf("help ends with\n%s\nwant\n%s", got[max(0, len(got)-400):], tt.want)
			}
		})
	}
}
