package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Kill ends the server with SIGKILL and returns when it is gone. It does nothing
// if the server is down.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		s.proc.kill()
	}
	s.admin.close()
}

// Stop ends the server with SIGTERM and returns when it is gone. It fails the
// test, and kills, if that takes longer than 10 s. It does nothing if the server
// is down.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.proc.signal(syscall.SIGTERM) // These fail only when it is gone.
	_ = s.proc.signal(syscall.SIGCONT)
	select {
	case <-s.proc.done:
	case <-time.After(10 * time.Second):
		s.t.Errorf("redistest: server still runs 10s after SIGTERM")
		s.proc.kill()
	}
	s.admin.close()
}

// Restart kills the server if it runs, starts it again with the same port and
// data directory, and returns when it answers. Its data is gone unless it has
// been saved, as AppendOnly does. It fails the test if the server does not start.
func (s *Server) Restart() {
	s.Kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	deadline := time.Now().Add(startLimit)
	err := s.launch()
	for errors.Is(err, errPortTaken) && time.Now().Before(deadline) {
		<-time.After(20 * time.Millisecond)
		err = s.launch()
	}
	if err != nil {
		s.t.Errorf("redistest: restart: %v", err)
	}
}

// Pause stops the server with SIGSTOP and returns when it has stopped: it keeps
// its connections and data, and answers nothing until Resume. It fails the test
// if the server is down.
func (s *Server) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.proc.pause(); err != nil {
		s.t.Errorf("redistest: pause: %v", err)
	}
}

// Resume lets a paused server go on. It does not wait. It fails the test if the
// server is down.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.proc.signal(syscall.SIGCONT); err != nil {
		s.t.Errorf("redistest: resume: %v", err)
	}
}

// A process is a child that has been started, and that is waited for.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has been waited for
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = dieWithParent()
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel's "parent" is the thread that forks: keep it alive.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // How it ended is in its log.
			close(p.done)
		}
	}()
	return p, <-started
}

// signal returns os.ErrProcessDone if the process has been waited for, so that a
// process id used anew is never hit.
func (p *process) signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

func (p *process) kill() {
	_ = p.signal(syscall.SIGKILL) // Fails only when it is gone.
	<-p.done
}

func (p *process) pause() error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	// The signal takes effect some time after kill(2) has returned.
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
		if errors.Is(err, os.ErrNotExist) { // gone, or this is not Linux
			return p.signal(0)
		}
		if err != nil {
			return err
		}
		// pid (name) state …
		if bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T")) {
			return nil
		}
		select {
		case <-p.done:
			return os.ErrProcessDone
		case <-time.After(100 * time.Microsecond):
		}
	}
}
