package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const evidenceLimit = 2 * time.Minute

// collect writes what the cluster can tell about a failed test into a directory, which it logs. What cannot be
// had is left out: a cluster that breaks in the middle of a test is evidence as well.
func (c *Cluster) collect() {
	dir, err := evidenceDir(c.t.Name())
	if err != nil {
		c.t.Logf("no evidence: %v", err)
		return
	}
	c.t.Logf("evidence: %s", dir)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), evidenceLimit)
	defer cancel()
	save := func(file string, args ...string) string {
		out, err := run(ctx, c.p.env(), "", c.p.kubectl, args...)
		if err != nil {
			out += err.Error()
		}
		if out != "" {
			err = os.WriteFile(filepath.Join(dir, file), []byte(out), 0o600)
		}
		if err != nil {
			c.t.Logf("evidence: %s: %v", file, err)
		}
		return out
	}
	save("all.txt", "get", "all", "--all-namespaces", "--output=wide")
	save("pods.txt", "describe", "pods", "--all-namespaces")
	save("pods.yaml", "get", "pods", "--all-namespaces", "--output=yaml", "--show-managed-fields")
	save("events.txt", "get", "events", "--all-namespaces", "--sort-by=.metadata.creationTimestamp", "--output=wide")
	save("nodes.txt", "describe", "nodes")

	containers, err := run(ctx, c.p.env(), "", c.p.kubectl, "get", "pods", "--all-namespaces", "--output=jsonpath="+
		`{range .items[*]}{.metadata.namespace} {.metadata.name}{range .status.initContainerStatuses[*]} {.name}={.restartCount}{end}`+
		`{range .status.containerStatuses[*]} {.name}={.restartCount}{end}{"\n"}{end}`)
	if err != nil {
		c.t.Logf("evidence: %v", err)
	}
	for line := range strings.Lines(containers) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue // no container has begun
		}
		for _, status := range f[2:] {
			name, restarts, _ := strings.Cut(status, "=")
			file := strings.Join([]string{f[0], f[1], name}, "_")
			args := []string{"logs", "--timestamps", "--namespace", f[0], f[1], "--container", name}
			save(file+".log", args...)
			if restarts != "0" {
				save(file+".previous.log", append(args, "--previous")...)
			}
		}
	}
	if c.p.logs != nil {
		if err := c.p.logs(ctx, dir); err != nil {
			c.t.Logf("evidence: %v", err)
		}
	}
}

// evidenceDir makes a directory for a test: in $E2E_EVIDENCE, by default e2e/evidence, which git ignores.
func evidenceDir(test string) (string, error) {
	parent := os.Getenv("E2E_EVIDENCE")
	if parent == "" {
		e2e, err := root()
		if err != nil {
			return "", err
		}
		parent = filepath.Join(e2e, "evidence")
	}
	dir := filepath.Join(parent, strings.ReplaceAll(test, "/", "_")+time.Now().UTC().Format("-20060102T150405Z"))
	return dir, os.MkdirAll(dir, 0o755)
}
