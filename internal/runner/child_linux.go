package runner

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// child is a command at work, in a process group of its own.
type child struct {
	group int
	ended chan int // receives its exit code, once
}

// start starts a command with our standard files. If this process dies it is killed. What
// it leaves to a process 1 is buried.
func start(path string, args, env []string) (*child, error) {
	c := &child{ended: make(chan int, 1)}
	started := make(chan error)
	go func() { // ends when the command has
		// The kernel kills it when the thread that started it ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd := exec.Cmd{
			Path: path, Args: args, Env: env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
			SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
		}
		if terminal(os.Stdin) {
			cmd.SysProcAttr.Foreground = true // so that it can read from it
			cmd.SysProcAttr.Ctty = int(os.Stdin.Fd())
		}
		err := cmd.Start()
		if err == nil {
			c.group = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			c.ended <- wait(c.group)
		}
	}()
	return c, <-started
}

func terminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// wait buries whatever ends, until pid does, and returns its exit code.
func wait(pid int) int {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR || err == nil && ended != pid:
		case err != nil: // somebody else has waited for it
			return 1
		case status.Signaled():
			return 128 + int(status.Signal())
		default:
			return status.ExitStatus()
		}
	}
}

// signal sends s to all of the command's process group. That nobody is left is no error.
func (c *child) signal(s syscall.Signal) { _ = syscall.Kill(-c.group, s) }
