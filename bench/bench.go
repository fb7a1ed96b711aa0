package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/soloist-dev/soloist/bench/internal/rig"
	"github.com/soloist-dev/soloist/bench/internal/systems"
)

// A row measures one row of the budget, or a few that share their set-up.
type row struct {
	name    string
	measure func(b *bench, ctx context.Context) ([]*rig.Table, error)
}

var rows = []row{
	{"handover", (*bench).handover},
	{"sse", (*bench).sse},
	{"takeover", (*bench).takeover},
	{"standbys", (*bench).standbys},
	{"many", (*bench).many},
	{"pairs", (*bench).pairs},
	{"jobs", (*bench).jobs},
	{"idle", (*bench).idle},
	{"leader", (*bench).leaderLoad},
	{"start", (*bench).start},
}

// bench holds the settings of a run.
type bench struct {
	only     *regexp.Regexp
	beside   *regexp.Regexp
	runs     int
	quick    bool
	markdown string
	server   string // redis-server's path
	sidecar  string // the binary's path; built if empty
	stderr   io.Writer

	dir   string // for the binary
	begun time.Time
}

// newBench reads the flags. It returns nil and the exit code if there is nothing to do.
func newBench(args []string, stderr io.Writer) (*bench, int) {
	b := &bench{stderr: stderr, begun: time.Now()}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	var names []string
	for _, r := range rows {
		names = append(names, r.name)
	}
	only := fs.String("only", "", "measure the rows that match this `regexp`, of: "+strings.Join(names, " "))
	beside := fs.String("beside", "", "measure beside ours the systems that match this `regexp`")
	fs.IntVar(&b.runs, "runs", 3, "repeat each measurement `N` times, systems alternating")
	fs.BoolVar(&b.quick, "quick", false, "fewer samples, shorter windows: about 3 minutes instead of 15")
	fs.StringVar(&b.markdown, "markdown", "", "write the tables to this `file` too")
	fs.StringVar(&b.server, "redis-server", "redis-server", "the server's `binary`")
	fs.StringVar(&b.sidecar, "sidecar", "", "the sidecar's `binary`; without it, it is built")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, 0
		}
		return nil, 2
	}
	var err, err2 error
	b.only, err = regexp.Compile(*only)
	b.beside, err2 = regexp.Compile(*beside)
	if err := errors.Join(err, err2); err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return nil, 2
	}
	if b.runs < 1 || fs.NArg() > 0 {
		fmt.Fprintln(stderr, "bench: -runs must be at least 1, and there are no arguments")
		return nil, 2
	}
	systems.Quiet()
	return b, 0
}

func (b *bench) close() {
	if b.dir != "" {
		os.RemoveAll(b.dir)
	}
}

// systems lists ours and those chosen to be measured beside it; waiting says that
// they must be able to wait.
func (b *bench) systems(waiting bool) []systems.System {
	var list []systems.System
	for i, s := range systems.All() {
		if (s.Waits || !waiting) && (i == 0 || b.beside.MatchString(s.Name)) {
			list = append(list, s)
		}
	}
	return list
}

// logf tells of progress.
func (b *bench) logf(format string, args ...any) {
	fmt.Fprintf(b.stderr, "%5.0fs  %s\n", time.Since(b.begun).Seconds(), fmt.Sprintf(format, args...))
}

// pick returns the one or the other number, for a full or a quick run.
func pick[T any](b *bench, full, quick T) T {
	if b.quick {
		return quick
	}
	return full
}

// all measures the chosen rows and prints each when it is done. A row that fails is
// reported, and the others are measured all the same.
func (b *bench) all(ctx context.Context, stdout io.Writer) error {
	head, err := b.environment(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, strings.Join(head, "\n"))
	page := &strings.Builder{}
	fmt.Fprintf(page, "%s\n", strings.Join(head, "  \n"))
	var failures error
	for _, r := range rows {
		if !b.only.MatchString(r.name) {
			continue
		}
		b.logf("%s", r.name)
		tables, err := r.measure(b, ctx)
		for _, t := range tables {
			t.Text(stdout)
			t.Markdown(page)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", r.name, err)
			b.logf("FAILED: %v", err)
			failures = errors.Join(failures, err)
		}
	}
	b.logf("done")
	if b.markdown != "" {
		if err := os.WriteFile(b.markdown, []byte(page.String()), 0o644); err != nil {
			return errors.Join(failures, fmt.Errorf("write -markdown: %w", err))
		}
	}
	return failures
}

// environment describes the machine and the versions.
func (b *bench) environment(ctx context.Context) ([]string, error) {
	r, err := rig.StartRedis(ctx, b.server)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	info, _ := debug.ReadBuildInfo()
	var peers []string
	for _, dep := range info.Deps {
		for _, peer := range []string{"redislock", "redsync/v4", "rueidis", "go-redis/v9"} {
			if strings.HasSuffix(dep.Path, "/"+peer) {
				peers = append(peers, peer+" "+dep.Version)
			}
		}
	}
	return []string{
		fmt.Sprintf("machine: %d × %s, %s/%s, %s", runtime.NumCPU(), cpuModel(), runtime.GOOS, runtime.GOARCH, kernel()),
		fmt.Sprintf("versions: %s, Redis %s, %s", runtime.Version(), r.Version(ctx), strings.Join(peers, ", ")),
		fmt.Sprintf("%d runs, alternating; clients, servers and load share the machine; loopback", b.runs),
	}, nil
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown kernel"
	}
	return "kernel " + strings.TrimSpace(string(text))
}

// binary returns the path of the sidecar, which it builds once, as a release is built.
func (b *bench) binary(ctx context.Context) (string, error) {
	if b.sidecar != "" {
		return b.sidecar, nil
	}
	dir, err := os.MkdirTemp("", "soloist-bench-")
	if err != nil {
		return "", fmt.Errorf("build sidecar: %w", err)
	}
	b.dir = dir
	path := filepath.Join(dir, "sidecar")
	b.logf("building the sidecar")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./cmd/sidecar")
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build sidecar (run from bench/, or pass -sidecar): %w\n%s", err, out)
	}
	b.sidecar = path
	return path, nil
}
