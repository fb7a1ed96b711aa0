package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// module is this example's; the sidecar's lies two directories above it.
const module = "github.com/soloist-dev/soloist/examples/city-ids"

// build fills in the paths of the binaries that were not named, and makes them in dir
// if they are not found beside this program.
func build(ctx context.Context, dir string, o *options) error {
	for _, b := range []struct {
		name string
		path *string
		from string // the directory of the module, as seen from this example's
		pkg  string
	}{
		{"worker", &o.worker, ".", "./cmd/worker"},
		{"sidecar", &o.sidecar, "../..", "./cmd/sidecar"},
	} {
		if *b.path == "" {
			*b.path = beside(b.name)
		}
		if *b.path == "" {
			*b.path = filepath.Join(dir, b.name)
			root, err := output(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
			if err != nil {
				return fmt.Errorf("build the %s: run this in examples/city-ids, or name the --%s: %w", b.name, b.name, err)
			}
			if _, err := output(ctx, "go", "build", "-C", filepath.Join(root, b.from), "-o", *b.path, b.pkg); err != nil {
				return fmt.Errorf("build the %s: %w", b.name, err)
			}
		}
		path, err := filepath.Abs(*b.path)
		if err != nil {
			return fmt.Errorf("find the %s: %w", b.name, err)
		}
		*b.path = path
		if _, err := exec.LookPath(path); err != nil {
			return fmt.Errorf("find the %s: %w", b.name, err)
		}
	}
	return nil
}

// beside returns the path of a program in this program's directory, or "".
func beside(name string) string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := exec.LookPath(path); err != nil {
		return ""
	}
	return path
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}
