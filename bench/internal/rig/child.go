package rig

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// A Child is this program again, in another role. It ends when its standard input
// does, so that it never outlives its parent.
type Child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	lines *bufio.Reader
}

// StartChild starts this program with the given arguments.
func StartChild(args ...string) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	c := &Child{cmd: exec.Command(self, args...)}
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	c.stdin, c.lines = in, bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	return c, nil
}

// PID is the process's.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Line returns the next line that the child writes.
func (c *Child) Line() (string, error) {
	line, err := c.lines.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("child %v: %w", c.cmd.Args[1:], err)
	}
	return strings.TrimSpace(line), nil
}

// Kill is kill -9. It returns when the process is gone.
func (c *Child) Kill() {
	_ = c.cmd.Process.Signal(syscall.SIGKILL)
	_ = c.cmd.Wait()
	c.stdin.Close()
}

// UntilOrphaned waits in a child until its parent has gone or ctx is done.
func UntilOrphaned(ctx context.Context) {
	gone := make(chan struct{})
	go func() { // ends with the process at the latest
		defer close(gone)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	select {
	case <-gone:
	case <-ctx.Done():
	}
}
