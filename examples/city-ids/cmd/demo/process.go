package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// A process is one running program.
type process struct {
	name string // for messages
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended; then err is set
	err  error
	// ending is set before the process is told to end; an end without it is a trouble.
	ending atomic.Bool
}

// spawn starts a program in a process group of its own, so that a Ctrl-C is for this
// program alone, which then ends the others. What it prints goes to logs, and line by
// line to heard, if that isn't nil. ended is called when it has ended of itself.
func spawn(name, logs, path string, args, env []string, heard func([]byte), ended func(error)) (*process, error) {
	file, err := os.OpenFile(filepath.Join(logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	p := &process{name: name, done: make(chan struct{})}
	p.cmd = exec.Command(path, args...) //nolint:noctx // end kills its whole group
	p.cmd.Env = append(environment(), env...)
	p.cmd.SysProcAttr = attributes()
	p.cmd.Stdout, p.cmd.Stderr = file, file
	if heard != nil {
		p.cmd.Stdout = io.MultiWriter(file, &lines{heard: heard})
	}
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), file.Close())
	}
	go func() {
		p.err = p.cmd.Wait() // after what it printed has been heard
		_ = file.Close()     // the log of a process that has ended
		if !p.ending.Load() {
			ended(p.err)
		}
		close(p.done)
	}()
	return p, nil
}

// signal sends s, unless the process has ended.
func (p *process) signal(s os.Signal) {
	_ = p.cmd.Process.Signal(s) // os.ErrProcessDone is no trouble
}

// kill ends the process at once, frozen or not, and waits until it is gone.
func (p *process) kill() {
	p.ending.Store(true)
	p.signal(syscall.SIGKILL)
	<-p.done
}

// stop asks the process to end and waits. The error tells that it didn't in time, or
// that it ended otherwise than with exit code 0.
func (p *process) stop(patience time.Duration) error {
	p.ending.Store(true)
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
		if p.err != nil {
			return fmt.Errorf("%s ended with: %w", p.name, p.err)
		}
		return nil
	case <-time.After(patience):
		p.kill()
		return fmt.Errorf("%s did not end within %v of SIGTERM", p.name, patience)
	}
}

// environment is this program's without what would configure a sidecar or a worker.
func environment() []string {
	var env []string
	for _, kv := range os.Environ() {
		foreign := false
		for _, prefix := range []string{"SOLOIST_", "POD_", "NODE_NAME=", "TASKS_URL=", "KUBERNETES_"} {
			foreign = foreign || strings.HasPrefix(kv, prefix)
		}
		if !foreign {
			env = append(env, kv)
		}
	}
	return env
}

// lines passes on what is written to it, line by line.
type lines struct {
	heard func([]byte)
	rest  []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		l.heard(line)
		l.rest = rest
	}
}
