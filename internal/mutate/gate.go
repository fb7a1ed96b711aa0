package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A gate judges the mutants of the module at root.
type gate struct {
	root    string
	timeout time.Duration
	trials  map[suite]func() (result, error)
}

// A verdict is the outcome of one mutant; err is nil if a test killed it.
type verdict struct {
	mutant mutant
	killer string
	took   time.Duration
	err    error
}

// judge runs the mutants, at most jobs at a time, and yields the verdicts in the order of
// the mutants. A range over it may not be left early.
func (g *gate) judge(ctx context.Context, mutants []mutant, jobs int) iter.Seq[verdict] {
	g.plan(ctx, mutants)
	return func(yield func(verdict) bool) {
		verdicts := make([]chan verdict, len(mutants))
		for i := range verdicts {
			verdicts[i] = make(chan verdict, 1)
		}
		next := make(chan int)
		var workers sync.WaitGroup
		for range jobs {
			workers.Go(func() {
				for i := range next {
					start := time.Now()
					killer, err := g.kill(ctx, mutants[i])
					verdicts[i] <- verdict{mutants[i], killer, time.Since(start), err}
				}
			})
		}
		workers.Go(func() {
			for i := range mutants {
				next <- i
			}
			close(next)
		})
		for _, v := range verdicts {
			yield(<-v)
		}
		workers.Wait()
	}
}

// plan prepares one trial run for each package, of all the tests of it that are named,
// without any change: a test must pass there for its failure to mean something.
func (g *gate) plan(ctx context.Context, mutants []mutant) {
	named := make(map[suite][]string)
	for _, m := range mutants {
		named[m.test.suite] = append(named[m.test.suite], m.test.run)
	}
	g.trials = make(map[suite]func() (result, error))
	for s, runs := range named {
		g.trials[s] = sync.OnceValues(func() (result, error) {
			slices.Sort(runs)
			return g.test(ctx, test{s, strings.Join(slices.Compact(runs), "|")}, "")
		})
	}
}

// kill returns the name of the test that failed because of the mutant.
func (g *gate) kill(ctx context.Context, m mutant) (string, error) {
	changed, err := m.apply(g.root)
	if err != nil {
		return "", err
	}
	trial, err := g.trials[m.test.suite]()
	if err != nil {
		return "", err
	}
	if trial.broken {
		return "", fmt.Errorf("does not build without the mutant, either:\n%s", trial.output)
	}
	tmp, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	overlay, err := writeOverlay(tmp, g.root, changed)
	if err != nil {
		return "", err
	}
	r, err := g.test(ctx, m.test, overlay)
	switch {
	case err != nil:
		return "", err
	case r.broken:
		return "", fmt.Errorf("does not build:\n%s", r.output)
	case !r.failed && r.ran == 0:
		return "", fmt.Errorf("%s %s runs no test", m.test.pkg, m.test.run)
	case !r.failed:
		return "", fmt.Errorf("survived: %s %s passes, yet %s", m.test.pkg, m.test.run, m.why)
	case r.killer == "":
		return "", fmt.Errorf("%s failed outside of any test:\n%s", m.test.pkg, r.output)
	case !trial.passed[r.killer]:
		return "", fmt.Errorf("%s does not pass without the mutant, either:\n%s", r.killer, trial.output)
	}
	return r.killer, nil
}

// writeOverlay writes the changed files to dir, and the list of them for the go command.
func writeOverlay(dir, root string, changed map[string]string) (string, error) {
	replace := make(map[string]string)
	for file, text := range changed {
		copied := filepath.Join(dir, fmt.Sprintf("%d%s", len(replace), filepath.Ext(file)))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = copied
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}

// A result is what one run of go test said.
type result struct {
	ran    int
	passed map[string]bool
	failed bool   // anything went wrong
	broken bool   // it did not build
	killer string // the first test that failed, or that was running when the process died
	output string // last lines, for a person
}

func (g *gate) test(ctx context.Context, t test, overlay string) (result, error) {
	timeout := g.timeout * time.Duration(1+strings.Count(t.run, "|"))
	args := []string{"test", "-json", "-vet=off", "-count=1", "-timeout=" + timeout.String()}
	args = append(args, strings.Fields(t.flags)...)
	cmd := exec.CommandContext(ctx, "go", append(args, "-run", t.run, t.pkg)...)
	cmd.Dir = g.root
	cmd.WaitDelay = 5 * time.Second
	if overlay != "" {
		cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	runErr := cmd.Run()
	if ctx.Err() != nil {
		return result{}, ctx.Err()
	}
	if exit := (*exec.ExitError)(nil); runErr != nil && !errors.As(runErr, &exit) {
		return result{}, runErr
	}
	r, err := read(&stdout)
	if err != nil {
		return result{}, fmt.Errorf("%w\n%s", err, stderr.String())
	}
	r.failed = runErr != nil
	r.output = tail(r.output+stderr.String(), 20)
	return r, nil
}

// read understands the output of go test -json. Subtests end before the test that they
// are part of, so the first that failed is the one that says most.
func read(stream io.Reader) (result, error) {
	r := result{passed: make(map[string]bool)}
	var output strings.Builder
	var running []string
	for dec := json.NewDecoder(stream); ; {
		var e struct{ Action, Test, Output, FailedBuild string }
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return r, fmt.Errorf("output of go test: %w", err)
		}
		output.WriteString(e.Output)
		if e.Action == "build-fail" || e.FailedBuild != "" {
			r.broken = true
		}
		if e.Test == "" {
			continue
		}
		switch e.Action {
		case "run":
			r.ran++
			running = append(running, e.Test)
		case "pass", "fail", "skip":
			running = slices.DeleteFunc(running, func(name string) bool { return name == e.Test })
			r.passed[e.Test] = e.Action == "pass"
			if e.Action == "fail" && r.killer == "" {
				r.killer = e.Test
			}
		}
	}
	if r.killer == "" && len(running) > 0 {
		r.killer = running[len(running)-1]
	}
	r.output = output.String()
	return r, nil
}

func tail(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
