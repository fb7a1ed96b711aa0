package image

import (
	"context"
	"debug/elf"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
)

// What ldd says of a library: its path, and at the end of the line its address.
var library = regexp.MustCompile(`(?m)(/\S+) \(0x[0-9a-f]+\)$`)

// Redis writes to the file out an image ref of the redis-server and redis-cli that are installed here, with the
// libraries that they link. It runs as user 999, keeps its data in /data and, without arguments, has the server's
// own defaults. It has no shell.
func Redis(ctx context.Context, out, ref string) error {
	if err := redis(ctx, out, ref); err != nil {
		return fmt.Errorf("image: redis: %w", err)
	}
	return nil
}

func redis(ctx context.Context, out, ref string) error {
	const bin, uid = "/usr/local/bin/", 999
	l := newLayer()
	var libraries []string
	var arch string
	for _, name := range []string{"redis-server", "redis-cli"} {
		path, err := exec.LookPath(name)
		if err != nil {
			return err
		}
		f, err := elf.Open(path)
		if err != nil {
			return err
		}
		arch, err = architecture(f)
		f.Close()
		if err != nil {
			return err
		}
		if err := l.file(bin+name, path); err != nil {
			return err
		}
		ldd, err := exec.CommandContext(ctx, "ldd", path).Output()
		if err != nil {
			return fmt.Errorf("ldd %s: %w", path, err)
		}
		for _, m := range library.FindAllSubmatch(ldd, -1) {
			libraries = append(libraries, string(m[1]))
		}
	}
	slices.Sort(libraries)
	for _, path := range slices.Compact(libraries) {
		if err := l.file(path, path); err != nil {
			return err
		}
	}
	if err := l.dir("/data", 0o755, uid); err != nil {
		return err
	}
	if err := l.dir("/tmp", 0o1777, 0); err != nil {
		return err
	}
	return l.write(out, ref, arch, runConfig{
		User:       fmt.Sprintf("%d:%[1]d", uid),
		Entrypoint: []string{bin + "redis-server"},
		Env:        []string{"PATH=/usr/local/bin"},
		WorkingDir: "/data",
	})
}
