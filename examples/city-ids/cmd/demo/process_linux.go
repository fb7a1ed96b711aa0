package main

import (
	"runtime"
	"syscall"
)

// The kernel counts a child's parent by thread, so the main goroutine, which starts the
// processes, stays on the main thread, which lives as long as the program.
func init() { runtime.LockOSThread() }

// attributes make the kernel kill the process when this program dies without a chance
// to do so itself; nobody else would end a frozen one.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
