package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/redistest"
)

// job is one "sidecar run".
type job struct {
	t   *testing.T
	cmd *exec.Cmd
	out *os.File // both streams: a file, which no process that is left behind keeps open for us
}

// runs starts a job on a store or via a sidecar, as where says.
func runs(t *testing.T, where string, args ...string) *job {
	t.Helper()
	j := &job{t: t, cmd: exec.Command(binary, append([]string{"run", "--delayed-restart=off", where}, args...)...)}
	var err error
	if j.out, err = os.Create(filepath.Join(t.TempDir(), "out")); err != nil {
		t.Fatal(err)
	}
	j.cmd.Stdout, j.cmd.Stderr = j.out, j.out
	j.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "SOLOIST_NAME=me"}
	if err := j.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = j.cmd.Process.Kill()
		j.out.Close()
	})
	return j
}

// String returns what it has written.
func (j *job) String() string {
	b, err := os.ReadFile(j.out.Name())
	if err != nil {
		j.t.Error(err)
	}
	return string(b)
}

// ends waits for its end, and returns the exit code; minus the signal's number if one
// killed it.
func (j *job) ends() int {
	_ = j.cmd.Wait() // the state says it
	return code(j.cmd.ProcessState)
}

// until waits until a file has content, and returns it.
func until(t *testing.T, file string) string {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); tick() {
		if b, err := os.ReadFile(file); err == nil && len(b) > 0 && b[len(b)-1] == '\n' {
			return strings.TrimSpace(string(b))
		}
	}
	t.Fatalf("%s stays empty", file)
	return ""
}

// alive reports whether a process runs: a zombie does not.
func alive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// dies waits until a process is gone.
func dies(t *testing.T, pid string) {
	t.Helper()
	for deadline := time.Now().Add(patience); alive(pid); tick() {
		if time.Now().After(deadline) {
			t.Fatalf("process %s is alive", pid)
		}
	}
}

// anywhere runs f with a job straight on the store, and with one via a sidecar.
func anywhere(t *testing.T, f func(t *testing.T, s *redistest.Server, where string)) {
	t.Parallel()
	t.Run("store", func(t *testing.T) {
		s := redistest.Start(t)
		f(t, s, "--store="+s.URL())
	})
	t.Run("via", func(t *testing.T) {
		s := redistest.Start(t)
		f(t, s, "--via=http://"+start(t, s, "pod-a").addr)
	})
}

func missing(file string) error {
	_, err := os.Stat(file)
	return err
}

func appears(file string) {
	for missing(file) != nil {
		tick()
	}
}

// tick keeps a loop that looks at files from taking the time of what it waits for.
func tick() { time.Sleep(time.Millisecond) } // real time: for other processes
