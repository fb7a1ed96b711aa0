// Mutate is the mutation gate: it breaks the code on purpose, one small change at a
// time, and demands that a named test notices.
//
//	go run ./internal/mutate [-C dir] [-run regexp] [-jobs n] [-timeout d] table
//
// The table is a text of entries such as
//
//	mutant stamp-after-reply
//	why    a slow reply would stretch the lease beyond its end in the store
//	file   internal/lease/holder.go
//	-	sent := now()
//	-	err := extend(ctx)
//	+	err := extend(ctx)
//	+	sent := now()
//	test   ./internal/lease ^TestSlowReply$
//
// What follows "-" on its line is text that must occur exactly once in the file, so
// that an entry cannot outlive the code that it is about; what follows "+" takes its
// place. Without "+" the text is removed. An entry may have several such changes, each
// after a "file" line or after the "+" of the one before, and its test may have flags
// of go test before the package. Empty lines and lines that begin with "#" are skipped.
//
// A test that fails without the change, too, proves nothing, and neither does code that
// does not build: both are failures of the gate, like a mutant that no test notices. The
// files themselves are never touched (the changes are an overlay of the go command,
// through GOFLAGS, so that they also reach what a test builds).
//
// One line is printed for each mutant, in the end "N passed, N failed". The exit code is
// 0 if all were noticed, 1 if not, 2 if the gate could not run.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("C", ".", "root of the module; files and packages are named from here")
	pattern := flags.String("run", "", "only the mutants whose names match")
	jobs := flags.Int("jobs", min(2, runtime.NumCPU()), "how many to run at the same time")
	timeout := flags.Duration("timeout", time.Minute, "of one test")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	root, err := filepath.Abs(*dir)
	if err != nil {
		fmt.Fprintln(stderr, "mutate:", err)
		return 2
	}
	mutants, err := selected(flags.Arg(0), *pattern)
	if err != nil {
		fmt.Fprintln(stderr, "mutate:", err)
		return 2
	}

	g := &gate{root: root, timeout: *timeout}
	failed := 0
	for v := range g.judge(ctx, mutants, max(1, *jobs)) {
		if v.err == nil {
			fmt.Fprintf(stdout, "ok    %s: killed by %s in %.1fs\n", v.mutant.name, v.killer, v.took.Seconds())
			continue
		}
		failed++
		fmt.Fprintf(stdout, "FAIL  %s: %v\n", v.mutant.name, v.err)
	}
	if err := ctx.Err(); err != nil {
		fmt.Fprintln(stderr, "mutate:", err)
		return 2
	}
	fmt.Fprintf(stdout, "%d passed, %d failed\n", len(mutants)-failed, failed)
	if failed > 0 {
		return 1
	}
	return 0
}

// selected reads the table and keeps the mutants that match; there must be some.
func selected(table, pattern string) ([]mutant, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(table)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", table, err)
	}
	var some []mutant
	for _, m := range all {
		if re.MatchString(m.name) {
			some = append(some, m)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("no mutant in %s matches %q", table, pattern)
	}
	return some, nil
}
