package redistest

import "syscall"

// dieWithParent makes the kernel kill the child when the test binary dies without
// running its cleanups, as on a timeout.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
