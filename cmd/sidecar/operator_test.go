package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/soloist-dev/soloist/internal/redistest"
)

func TestInstall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := exec.Command(binary, "install", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command(filepath.Join(dir, "sidecar"), "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "sidecar ") {
		t.Errorf("%v: %s", err, out)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v, %v; want one file", names, err)
	}
	if code, _, errs := verb(t, "install", filepath.Join(dir, "none")); code != 1 || !strings.Contains(errs, "no such file") {
		t.Errorf("%d %s", code, errs)
	}
}

func TestLocksAndUnlock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for i := range 3 {
		file := filepath.Join(t.TempDir(), "ready")
		runs(t, "--store="+s.URL(), "--lock=many", "--slots=3", "--", "sh", "-c", "echo "+strconv.Itoa(i)+" >"+file+"; sleep 100")
		until(t, file)
	}
	if code, out, errs := verb(t, "locks", "--store="+s.URL()); code != 0 || strings.Count(out, "many") != 3 {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, _, errs := verb(t, "unlock", "--store="+s.URL(), "--lock=many", "--force"); code != 2 || !strings.Contains(errs, "--yes") {
		t.Errorf("%d %s", code, errs)
	}
	if code, out, errs := verb(t, "unlock", "--store="+s.URL(), "--lock=many", "--lock=none"); code != 0 ||
		!strings.Contains(out, "many: 3 revoked") || !strings.Contains(out, "none: nobody holds it") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, out, errs := verb(t, "locks", "--store="+s.URL(), "--output=json"); code != 0 || !strings.Contains(out, fmt.Sprintf("%q", "many")) {
		t.Errorf("%d %s%s", code, out, errs)
	}
}
