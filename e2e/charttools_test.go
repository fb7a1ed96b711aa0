package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// chartTool returns the path of a program: that of its variable (HELM, KUBECTL), of PATH, or of the harness.
func chartTool(t *testing.T, name string) string {
	t.Helper()
	if path := os.Getenv(strings.ToUpper(name)); path != "" {
		return path
	}
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	home := os.Getenv("SOLOIST_E2E_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		home = filepath.Join(user, ".cache", "soloist-e2e")
	}
	path := filepath.Join(home, "bin", name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	message := fmt.Sprintf("no %s in PATH and none at %s: run e2e/node/node build, or set %s", name, path, strings.ToUpper(name))
	if os.Getenv("E2E") == "1" {
		t.Fatal(message)
	}
	t.Skip(message)
	return ""
}

// chartRun returns the output of a program, with what it says on stderr if it fails.
func chartRun(t *testing.T, tool string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), chartTool(t, tool), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", tool, strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out), err
}

// chartObjects are YAML documents, by source (for helm), kind, namespace and name.
type chartObjects map[string]string

var (
	chartSource    = regexp.MustCompile(`(?m)^# Source: \S+?/(templates/\S+)\n`)
	chartKind      = regexp.MustCompile(`(?m)^kind: (\S+)`)
	chartName      = regexp.MustCompile(`(?m)^  name: (\S+)`)
	chartNamespace = regexp.MustCompile(`(?m)^  namespace: (\S+)`)
)

func chartSplit(t *testing.T, yaml string) chartObjects {
	t.Helper()
	objects := make(chartObjects)
	for doc := range strings.SplitSeq("\n"+yaml, "\n---\n") {
		if !chartKind.MatchString(doc) {
			continue
		}
		var key []string
		for _, part := range []*regexp.Regexp{chartSource, chartKind, chartNamespace, chartName} {
			m := part.FindStringSubmatch(doc)
			if m == nil {
				m = []string{"", "-"}
			}
			key = append(key, m[1])
		}
		k := strings.Join(key, " ")
		if _, twice := objects[k]; twice {
			t.Errorf("%s is there twice", k)
		}
		objects[k] = strings.TrimSpace(doc) + "\n"
	}
	return objects
}

func (o chartObjects) String() string {
	var keys, docs []string
	for key := range o {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		docs = append(docs, o[key])
	}
	return strings.Join(docs, "---\n")
}

// kinds returns what is of one of these kinds.
func (o chartObjects) kinds(kinds ...string) chartObjects {
	some := make(chartObjects)
	for key, doc := range o {
		if slices.Contains(kinds, chartKind.FindStringSubmatch(doc)[1]) {
			some[key] = doc
		}
	}
	return some
}

// chartRender renders the chart for Kubernetes 1.36 with more flags of helm template, those of Kubernetes included.
func chartRender(t *testing.T, args ...string) (chartObjects, error) {
	t.Helper()
	args = append([]string{"template", "soloist", chartDir, "--namespace=soloist-system", "--kube-version=1.36.0"}, args...)
	out, err := chartRun(t, "helm", args...)
	if err != nil {
		return nil, err
	}
	return chartSplit(t, out), nil
}

func chartValues(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chartDir, "testdata", "*.values.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".values.yaml"))
	}
	return names
}

func chartFile(name string) string { return filepath.Join(chartDir, "testdata", name) }

// chartGolden compares got with a file, or writes it.
func chartGolden(t *testing.T, file, got string) {
	t.Helper()
	if *chartUpdate {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: write it with -update", err)
	}
	if string(want) == got {
		return
	}
	path := filepath.Join(t.TempDir(), "got.yaml")
	if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
	diff, _ := exec.CommandContext(t.Context(), "diff", "-u", file, path).Output() // it exits with 1
	t.Errorf("%s differs; if that is meant: -update\n%s", file, diff)
}
