package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/soloist-dev/soloist/internal/config"
)

// install copies this program to DIR/sidecar. It is there whole or not at all.
func install(_ context.Context, p program) int {
	target := filepath.Join(p.Args[0], "sidecar")
	if err := copySelf(target); err != nil {
		return p.fail(err)
	}
	fmt.Fprintln(p.stdout, target)
	return config.ExitOK
}

func copySelf(target string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was only read
	to, err := os.CreateTemp(filepath.Dir(target), ".sidecar-*")
	if err != nil {
		return err
	}
	defer os.Remove(to.Name()) // fails once it has been renamed
	_, err = io.Copy(to, from)
	if err == nil {
		err = to.Chmod(0o755) // whoever runs the app's container
	}
	if closed := to.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(to.Name(), target)
}
