package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const beat = "./internal/beat" // below e2e

func TestSameInputSameBytes(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.tar"), filepath.Join(dir, "b.tar")
	for _, out := range []string{a, b} {
		if err := Go(t.Context(), out, "docker.io/x/beat:1", "../..", beat); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(read(t, a), read(t, b)) {
		t.Error("two images of the same program differ")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".image-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestStatic(t *testing.T) {
	out := filepath.Join(t.TempDir(), "image.tar")
	if err := Go(t.Context(), out, "docker.io/x/beat:1", "../..", beat); err != nil {
		t.Fatal(err)
	}
	tags, cfg, files := unpack(t, out)
	if want := []string{"docker.io/x/beat:1"}; !slices.Equal(tags, want) {
		t.Errorf("tags %q, not %q", tags, want)
	}
	if want := []string{"/beat"}; cfg.Config.User != "65532:65532" || !slices.Equal(cfg.Config.Entrypoint, want) {
		t.Errorf("runs %q as %q", cfg.Config.Entrypoint, cfg.Config.User)
	}
	if want := []string{"beat"}; !slices.Equal(files, want) {
		t.Errorf("files %q, not %q", files, want)
	}
}

func TestRedis(t *testing.T) {
	out := filepath.Join(t.TempDir(), "image.tar")
	if err := Redis(t.Context(), out, "docker.io/x/redis:1"); err != nil {
		t.Fatal(err)
	}
	_, cfg, files := unpack(t, out)
	if cfg.Config.User != "999:999" {
		t.Errorf("runs as %q", cfg.Config.User)
	}
	for _, want := range []string{"usr/local/bin/redis-server", "usr/local/bin/redis-cli", "data/", "tmp/"} {
		if !slices.Contains(files, want) {
			t.Errorf("no %s in %q", want, files)
		}
	}
	if !slices.ContainsFunc(files, func(f string) bool { return strings.Contains(f, "/libc.so") }) {
		t.Errorf("no C library in %q", files)
	}
}

func TestDynamicProgramIsRefused(t *testing.T) {
	err := Static(filepath.Join(t.TempDir(), "image.tar"), "docker.io/x/sh:1", "/bin/sh")
	if err == nil || !strings.Contains(err.Error(), "not a static program") {
		t.Errorf("an image of the dynamic /bin/sh: %v", err)
	}
}

// unpack returns the tags, the configuration and the names in the layer of an image.
func unpack(t *testing.T, path string) (tags []string, cfg config, files []string) {
	t.Helper()
	content := make(map[string][]byte)
	each(t, read(t, path), func(name string, data []byte) { content[name] = data })
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(content["manifest.json"], &manifest); err != nil || len(manifest) != 1 {
		t.Fatalf("manifest %s: %v", content["manifest.json"], err)
	}
	if err := json.Unmarshal(content[manifest[0].Config], &cfg); err != nil {
		t.Fatal(err)
	}
	data := content[manifest[0].Layers[0]]
	if want := []string{"sha256:" + sum(data)}; !slices.Equal(cfg.RootFS.DiffIDs, want) {
		t.Errorf("digests %q, not %q", cfg.RootFS.DiffIDs, want)
	}
	each(t, data, func(name string, _ []byte) { files = append(files, name) })
	return manifest[0].RepoTags, cfg, files
}

func each(t *testing.T, archive []byte, visit func(name string, data []byte)) {
	t.Helper()
	for tr := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		visit(h.Name, data)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
