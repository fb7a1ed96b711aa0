// Package runner runs a command while a lock is held. When the lock is lost the command's
// process group is ended before the lease can end; when the command has ended the lock is
// released, and the caller learns whether it was held to the end.
package runner
