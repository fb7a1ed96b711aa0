// Package cluster gives tests a Kubernetes cluster, the means to break it, and evidence when a test fails.
//
// The first test that calls Up starts the cluster; the tests of a package share it; Main stops it. Test binaries
// that run at the same time wait for each other. Which cluster it is depends on the machine, see start.
package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	commandLimit = 3 * time.Minute        // for one kubectl, unless it has a limit of its own
	pollPeriod   = 700 * time.Millisecond // each kubectl costs a third of a second of processor
)

// A Cluster is a running cluster, as one test sees it. Methods without an error end the test if they fail, so
// they belong in the test's own goroutine and in its cleanups; Try may be called from anywhere.
type Cluster struct {
	t        testing.TB
	p        *platform
	evidence sync.Once
	proxy    string // where kubectl proxy serves; "": nowhere yet
}

// shared is the cluster of this process.
var shared struct {
	sync.Mutex
	p   *platform
	err error
}

// Up returns the cluster, which it starts if no test has done so. It skips the test unless E2E=1 is set, since
// that takes time and rights that a plain go test should not ask for.
func Up(t testing.TB) *Cluster {
	t.Helper()
	if os.Getenv("E2E") != "1" {
		t.Skip("needs a cluster: set E2E=1 (see e2e/README.md)")
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.p == nil && shared.err == nil {
		began := time.Now()
		shared.p, shared.err = start(t.Context())
		if shared.err == nil {
			t.Logf("cluster: %s, up after %.1f s", shared.p.name, time.Since(began).Seconds())
		}
	}
	if shared.err != nil {
		err := shared.err
		shared.err = errors.New("not up; the first test says why") // which may be long
		t.Fatalf("cluster: %v", err)
	}
	c := &Cluster{t: t, p: shared.p}
	c.Cleanup(func() {}) // for the evidence
	return c
}

// Main runs the tests, stops the cluster and returns the exit code: func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }.
// With E2E_KEEP=1 the cluster stays, and the next run uses it.
func Main(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.p == nil {
		return code
	}
	if keep() {
		fmt.Fprintf(os.Stderr, "cluster: kept; export KUBECONFIG=%s\n", shared.p.kubeconfig)
		return code
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	if err := shared.p.stop(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return max(code, 1)
	}
	return code
}

// Kubeconfig returns the path of the cluster's kubeconfig. Its user may do everything.
func (c *Cluster) Kubeconfig() string { return c.p.kubeconfig }

// Kubectl returns what kubectl writes to its standard output, without the space around it.
func (c *Cluster) Kubectl(args ...string) string {
	c.t.Helper()
	return c.must(c.Try(args...))
}

// Try is Kubectl with an error, which has what kubectl writes to its standard error.
func (c *Cluster) Try(args ...string) (string, error) {
	return c.command("", c.p.kubectl, args...)
}

// Helm runs helm, for all that Kubectl says.
func (c *Cluster) Helm(args ...string) string {
	c.t.Helper()
	return c.must(c.TryHelm(args...))
}

// TryHelm is Helm with an error.
func (c *Cluster) TryHelm(args ...string) (string, error) {
	return c.command("", tool("helm"), args...)
}

// Apply applies manifests, as kubectl apply does. They stay, unless they are in a namespace that goes.
func (c *Cluster) Apply(yaml string) {
	c.t.Helper()
	c.must(c.command(yaml, c.p.kubectl, "apply", "-f", "-"))
}

// Load gives the cluster an image, from a file as package image writes it.
func (c *Cluster) Load(tar string) {
	c.t.Helper()
	ctx, cancel := c.context()
	defer cancel()
	if err := c.p.load(ctx, tar); err != nil {
		c.t.Fatal(err)
	}
}

// Namespace makes a namespace, under the strictest Pod Security, for the time of the test, and returns its name,
// which begins with the prefix.
func (c *Cluster) Namespace(prefix string) string {
	c.t.Helper()
	ns := fmt.Sprintf("%s-%x", prefix, time.Now().UnixNano()&0xffffff)
	c.Kubectl("create", "namespace", ns)
	c.Cleanup(func() {
		// In this order no controller makes new pods, and no pod uses up its grace period.
		c.Kubectl("delete", "namespace", ns, "--wait=false")
		c.Kubectl("delete", "pods", "--all", "--namespace", ns, "--now", "--wait=false")
		c.Kubectl("wait", "--for=delete", "namespace/"+ns, "--timeout=90s")
	})
	c.Kubectl("label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted")
	c.Kubectl("wait", "--for=create", "serviceaccount/default", "--namespace", ns, "--timeout=30s") // no pod before it
	return ns
}

// Cleanup is the test's, but if the test has failed it collects the evidence before f destroys it.
func (c *Cluster) Cleanup(f func()) {
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.evidence.Do(c.collect)
		}
		f()
	})
}

// Eventually calls check until it returns nil. When the limit is over it fails the test with the last error.
func (c *Cluster) Eventually(what string, limit time.Duration, check func() error) {
	c.t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(pollPeriod)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			c.t.Fatalf("%s: not within %v: %v", what, limit, err)
		}
	}
}

// context is the test's. In a cleanup that is cancelled already.
func (c *Cluster) context() (context.Context, context.CancelFunc) {
	ctx := c.t.Context()
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	return context.WithTimeout(ctx, commandLimit)
}

func (c *Cluster) command(stdin, name string, args ...string) (string, error) {
	ctx, cancel := c.context()
	defer cancel()
	out, err := run(ctx, c.p.env(), stdin, name, args...)
	return strings.TrimSpace(out), err
}

func (c *Cluster) must(out string, err error) string {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// Create posts a JSON body to a path of the API server.
func (c *Cluster) Create(path, body string) {
	c.t.Helper()
	c.must(c.command(body, c.p.kubectl, "create", "--raw", path, "-f", "-"))
}

// TryCreate is kubectl create of a manifest, with more arguments.
func (c *Cluster) TryCreate(manifest string, args ...string) (string, error) {
	return c.command(manifest, c.p.kubectl, append([]string{"create", "--filename=-"}, args...)...)
}

// As runs kubectl as the owner of the token that is among the arguments, and not as the cluster's admin, whose
// certificate would count for more.
func (c *Cluster) As(args ...string) (string, error) {
	c.t.Helper()
	var config map[string]any
	if err := json.Unmarshal([]byte(c.Kubectl("config", "view", "--raw", "--minify", "--output=json")), &config); err != nil {
		c.t.Fatal(err)
	}
	users, _ := config["users"].([]any)
	for _, u := range users {
		if u, ok := u.(map[string]any); ok {
			u["user"] = map[string]any{}
		}
	}
	b, err := json.Marshal(config)
	if err != nil {
		c.t.Fatal(err)
	}
	path := filepath.Join(c.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return c.command("", c.p.kubectl, append([]string{"--kubeconfig=" + path}, args...)...)
}
