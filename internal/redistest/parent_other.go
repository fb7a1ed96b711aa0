//go:build !linux

package redistest

import "syscall"

// dieWithParent does nothing where the kernel has no such means.
func dieWithParent() *syscall.SysProcAttr { return nil }
