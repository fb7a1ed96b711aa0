package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/config"
	"github.com/soloist-dev/soloist/internal/redistest"
)

func TestRunPassesTheExitCodeOn(t *testing.T) {
	anywhere(t, func(t *testing.T, s *redistest.Server, where string) {
		for _, c := range []struct {
			args []string
			code int
			out  string
		}{
			{[]string{"--", "true"}, 0, ""},
			{[]string{"sh", "-c", "exit 7", "--no-flag-of-ours"}, 7, ""},
			{[]string{"--", "sh", "-c", "kill -9 $$"}, 128 + 9, ""},
			{[]string{"--", "sh", "-c", "echo $SOLOIST_HELD ${#SOLOIST_FENCE} ${#SOLOIST_TOKEN}"}, 0, "x 16 32\n"},
			{[]string{"--", "no-such-command"}, 127, "not found"},
			{[]string{"--", "/etc/passwd"}, 126, "permission denied"},
			{[]string{"--once=today", "--", "false"}, 1, ""},
			{[]string{"--once=today", "--", "true"}, 0, ""},
			{[]string{"--once=today", "--", "true"}, config.ExitDone, "done by"},
			{[]string{"--once=today", "--skip-ok", "--", "false"}, 0, ""},
			{[]string{"--once=today", "--skip-ok", "--log-level=info", "--", "false"}, 0, `msg=skipped lock=x reason="done by`},
		} {
			j := runs(t, where, append([]string{"--lock=x"}, c.args...)...)
			if code := j.ends(); code != c.code || !strings.Contains(j.String(), c.out) {
				t.Errorf("%v: %d %s, want %d %q", c.args, code, j, c.code, c.out)
			}
		}
		if _, out, _ := verb(t, "status", "--store="+s.URL(), "--lock=x"); !strings.Contains(out, "x     0     -") {
			t.Errorf("it is held in the end: %s", out)
		}
	})
}

func TestRunOfWhatIsHeld(t *testing.T) {
	anywhere(t, func(t *testing.T, s *redistest.Server, where string) {
		ready := filepath.Join(t.TempDir(), "ready")
		first := runs(t, where, "--lock=x", "--", "sh", "-c", `trap "exit 9" TERM; echo >`+ready+`; while :; do sleep 0.1; done`)
		appears(ready)
		j := runs(t, where, "--lock=x", "--", "true")
		if code := j.ends(); code != config.ExitHeld || !strings.Contains(j.String(), "held by") {
			t.Errorf("%d %s, want %d", code, j, config.ExitHeld)
		}
		waiter := runs(t, where, "--lock=x", "--wait=1m", "--", "true")
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
			if n, _ := s.Must("ZCARD", "soloist:{x}:q").(int64); n == 1 {
				break
			}
		}
		// SIGTERM goes to the command, which ends as it likes; then the next has it.
		if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := first.ends(); code != 9 {
			t.Errorf("after SIGTERM: %d %s, want 9", code, first)
		}
		if code := waiter.ends(); code != 0 {
			t.Errorf("the next: %d %s", code, waiter)
		}
	})
}

// A stop while it waits in line: nothing is run, and nobody is in line any more.
func TestRunIsStoppedInLine(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	ready := filepath.Join(t.TempDir(), "ready")
	runs(t, "--store="+s.URL(), "--lock=x", "--", "sh", "-c", "echo >"+ready+"; sleep 100")
	appears(ready)
	waiter := runs(t, "--store="+s.URL(), "--lock=x", "--wait=1m", "--", "touch", ready+"2")
	for s.Must("ZCARD", "soloist:{x}:q").(int64) != 1 {
	}
	if err := waiter.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := waiter.ends(); code != 128+int(syscall.SIGINT) || missing(ready+"2") == nil {
		t.Errorf("%d %s, want 130 and nothing run", code, waiter)
	}
	if n := s.Must("ZCARD", "soloist:{x}:q").(int64); n != 0 {
		t.Errorf("%d in line", n)
	}
}

// When the lock is lost the command is told, and killed before the lease can end, with all
// that is in its process group.
func TestRunEndsWhatHasLostItsLock(t *testing.T) {
	losses := map[string]func(t *testing.T, s *redistest.Server){
		"revoked": func(t *testing.T, s *redistest.Server) {
			if code, out, errs := verb(t, "unlock", "--store="+s.URL(), "--lock=x"); code != 0 || !strings.Contains(out, "1 revoked") {
				t.Errorf("unlock: %d %s%s", code, out, errs)
			}
		},
		"forced": func(t *testing.T, s *redistest.Server) {
			if code, out, errs := verb(t, "unlock", "--store="+s.URL(), "--lock=x", "--force", "--yes"); code != 0 || !strings.Contains(out, "1 deleted") {
				t.Errorf("unlock: %d %s%s", code, out, errs)
			}
		},
		"flushed": func(t *testing.T, s *redistest.Server) { s.Must("FLUSHALL") },
		"frozen":  func(t *testing.T, s *redistest.Server) { s.Pause() },
	}
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			anywhere(t, func(t *testing.T, s *redistest.Server, where string) {
				defer s.Resume()
				file := filepath.Join(t.TempDir(), "pids")
				// The shell heeds SIGTERM no more than its child does.
				j := runs(t, where, "--lock=x", "--lease=10s", "--", "sh", "-c",
					`trap "" TERM; sleep 100 & echo $$ $! >`+file+`; while :; do wait; done`)
				pids := strings.Fields(until(t, file))
				from := time.Now()
				lose(t, s)
				for _, pid := range pids {
					dies(t, pid)
				}
				// From the last renewal, which was before, the lease lasts for 10 s; the kill is at 9.
				if took := time.Since(from); took > 10*time.Second {
					t.Errorf("the command lived for %v, which is longer than the lease", took)
				}
				if code := j.ends(); code != config.ExitLost {
					t.Errorf("%d: %s, want %d", code, j, config.ExitLost)
				}
			})
		})
	}
}

// What the command leaves behind would go on without the lock.
func TestRunLeavesNothingBehind(t *testing.T) {
	anywhere(t, func(t *testing.T, _ *redistest.Server, where string) {
		file := filepath.Join(t.TempDir(), "pid")
		if code := runs(t, where, "--lock=x", "--", "sh", "-c", "sleep 100 & echo $! >"+file).ends(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		dies(t, until(t, file))
	})
}

// If the program that holds the lock is killed, so is the command: nobody renews for it.
func TestRunKilled(t *testing.T) {
	anywhere(t, func(t *testing.T, _ *redistest.Server, where string) {
		file := filepath.Join(t.TempDir(), "pid")
		j := runs(t, where, "--lock=x", "--lease=3s", "--", "sh", "-c", "echo $$ >"+file+"; exec sleep 100")
		pid := until(t, file)
		if err := j.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		dies(t, pid)
		j.ends()
		// Another has it when the lease has run out: via a sidecar, which renews it for as long as
		// it was asked to, after twice that.
		next := runs(t, where, "--lock=x", "--wait=1m", "--", "true")
		if code := next.ends(); code != 0 {
			t.Errorf("the next: %d %s", code, next)
		}
	})
}

func TestRunAtMostFor(t *testing.T) {
	anywhere(t, func(t *testing.T, _ *redistest.Server, where string) {
		from := time.Now()
		j := runs(t, where, "--lock=x", "--lease=1s", "--at-most-for=3s", "--", "sleep", "100")
		if code, took := j.ends(), time.Since(from); code != config.ExitLost || took < 2*time.Second {
			t.Errorf("%d after %v: %s, want %d after 2.6 s", code, took, j, config.ExitLost)
		}
	})
}

// As process 1 it buries what its command has orphaned.
func TestRunAsProcessOne(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "--fork", "--pid", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("no PID namespace may be made here: %v %s", err, out)
	}
	s := redistest.Start(t)
	script := `for i in 1 2 3 4 5; do (sh -c 'true & true' &); done
		i=0; while [ $i -lt 1000 ]; do
			n=$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z 1 '); [ "$n" = 0 ] && [ $i -gt 5 ] && { echo none; exit; }
			i=$((i+1)); sleep 0.02
		done; echo zombies`
	cmd := exec.Command("unshare", "--fork", "--pid", "--mount-proc", binary, "run", "--delayed-restart=off",
		"--store="+s.URL(), "--lock=x", "--", "sh", "-c", script)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "none") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestRunWithoutAStore(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"--store=redis://127.0.0.1:1", "--via=http://127.0.0.1:1"} {
		j := runs(t, where, "--lock=x", "--lease=1s", "--", "true")
		if code := j.ends(); code != config.ExitFailed || !strings.Contains(j.String(), "refused") {
			t.Errorf("%s: %d %s", where, code, j)
		}
	}
}
