package image

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Static writes to the file out an image ref with static programs, and nothing else, in its root directory. The
// first is the entrypoint; they run as user 65532. Give ref in full, as in "docker.io/soloist-e2e/sidecar:e2e":
// the kubelet does, and with another tag than latest, which it would try to pull.
func Static(out, ref string, programs ...string) error {
	if len(programs) == 0 {
		return errors.New("image: no programs")
	}
	var arch string
	l := newLayer()
	for _, p := range programs {
		a, err := static(p)
		if err != nil {
			return fmt.Errorf("image: %s: %w", p, err)
		}
		if arch != "" && a != arch {
			return fmt.Errorf("image: %s is for %s, the others are for %s", p, a, arch)
		}
		arch = a
		if err := l.file(filepath.Base(p), p); err != nil {
			return fmt.Errorf("image: %w", err)
		}
	}
	err := l.write(out, ref, arch, runConfig{
		User:       "65532:65532",
		Entrypoint: []string{"/" + filepath.Base(programs[0])},
		Env:        []string{"PATH=/"},
	})
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	return nil
}

// Go builds Go commands without cgo, for this machine's architecture, and writes an image of them as Static
// does. The packages are relative to dir, a directory of their module; each gives a program of its own name.
func Go(ctx context.Context, out, ref, dir string, packages ...string) error {
	tmp, err := os.MkdirTemp("", "soloist-image-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", tmp + "/"}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOWORK=off", "GOFLAGS=")
	if msg, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("image: go build %v in %s: %w\n%s", packages, dir, err, msg)
	}
	var programs []string
	for _, p := range packages {
		abs, err := filepath.Abs(filepath.Join(dir, p))
		if err != nil {
			return err
		}
		programs = append(programs, filepath.Join(tmp, filepath.Base(abs)))
	}
	return Static(out, ref, programs...)
}

var architectures = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}

// static returns the architecture of a program, in Go's words. A program that asks for an interpreter is refused:
// in an image without libraries it ends with "no such file or directory", which is hard to understand.
func static(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return "", errors.New("not a static program (CGO_ENABLED=0 go build makes one)")
	}
	return architecture(f)
}

func architecture(f *elf.File) (string, error) {
	arch, ok := architectures[f.Machine]
	if !ok {
		return "", fmt.Errorf("machine %v is not known here", f.Machine)
	}
	return arch, nil
}
