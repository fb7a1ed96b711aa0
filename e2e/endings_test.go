package e2e

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/e2e/internal/cluster"
	"github.com/soloist-dev/soloist/e2e/internal/image"
)

const probeImage = "docker.io/soloist-e2e/probe:e2e"

// runProbe asks the Service of the leader all the time.
func runProbe(t *testing.T, c *cluster.Cluster, namespace string) {
	t.Helper()
	tar := filepath.Join(t.TempDir(), "probe.tar")
	if err := image.Go(t.Context(), tar, probeImage, ".", "./internal/probe"); err != nil {
		t.Fatal(err)
	}
	c.Load(tar)
	ip := c.Kubectl("get", "service", "city-ids-leader", "--namespace", namespace, "--output=jsonpath={.spec.clusterIP}")
	runPod(c, namespace, "probe", probeImage, `args: ["http://`+ip+`/livez"]`)
}

// silent returns for how long in all the leader's Service gave no answer, of the times without one that began since.
func (d *demo) silent(since time.Time) time.Duration {
	d.t.Helper()
	var sum time.Duration
	for line := range strings.Lines(d.Kubectl("logs", "probe", "--namespace", d.ns)) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		from, err1 := strconv.ParseInt(f[0], 10, 64)
		to, err2 := strconv.ParseInt(f[1], 10, 64)
		if err1 == nil && err2 == nil && from >= since.UnixNano() {
			sum += time.Duration(to - from)
		}
	}
	return sum
}

// Of the sidecar's lease: how late another leads, at most, where the leader says nothing.
const leaseRunsOut = leaseLasts + 2*time.Second

// An ending is a way in which the leader ends.
type ending struct {
	name   string
	within time.Duration // another leads, or the same under a new fence
	silent time.Duration // the Service of the leader, at most
	late   bool          // it takes a while until the ending reaches the leader, so only the silence counts
	slow   bool          // the leader ends when do returns, not when it is called
	do     func(leader term) (undo func())
}

func (d *demo) endings() []ending {
	redis := d.Kubectl("get", "service", "soloist-redis", "--namespace", d.ns, "--output=jsonpath={.spec.clusterIP}")
	redisIP := d.Kubectl("get", "pods", "--namespace", d.ns, "--selector=app.kubernetes.io/component=redis",
		"--output=jsonpath={.items[0].status.podIP}")
	api := d.Kubectl("get", "service", "kubernetes", "--namespace=default", "--output=jsonpath={.spec.clusterIP}")
	node := d.Kubectl("get", "nodes", "--output=jsonpath={.items[0].metadata.name}")
	planned, crash := 5*time.Second, leaseRunsOut
	return []ending{
		{name: "the pod is deleted", within: planned, silent: planned, do: func(l term) func() {
			d.Kubectl("delete", "pod", l.pod, "--namespace", d.ns, "--wait=false")
			return nil
		}},
		{name: "rolling update", within: 2 * time.Minute, silent: planned, late: true, do: func(term) func() {
			d.Kubectl("rollout", "restart", "deployment/city-ids", "--namespace", d.ns)
			return nil
		}},
		{name: "eviction", within: planned, silent: planned, do: func(l term) func() {
			body := fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":%q}}`, l.pod, d.ns)
			d.Create("/api/v1/namespaces/"+d.ns+"/pods/"+l.pod+"/eviction", body)
			return nil
		}},
		{name: "the node is drained of it", within: planned, silent: planned, do: func(term) func() {
			d.Kubectl("drain", node, "--pod-selector=app.kubernetes.io/component=city-ids,soloist.dev/role=leader",
				"--ignore-daemonsets", "--delete-emptydir-data")
			return func() { d.Kubectl("uncordon", node) }
		}},
		{name: "scale down", within: planned, silent: planned, do: func(l term) func() {
			d.Kubectl("annotate", "pod", l.pod, "--namespace", d.ns, "controller.kubernetes.io/pod-deletion-cost=-1")
			d.Kubectl("scale", "deployment/city-ids", "--namespace", d.ns, "--replicas=2")
			return func() { d.Kubectl("scale", "deployment/city-ids", "--namespace", d.ns, "--replicas=3") }
		}},
		{name: "deletion by force", within: crash, silent: crash, do: func(l term) func() {
			d.Kubectl("delete", "pod", l.pod, "--namespace", d.ns, "--force", "--grace-period=0")
			return nil
		}},
		{name: "kill -9 of the sidecar", within: crash, silent: crash, do: func(l term) func() {
			d.Signal(d.ns, l.pod, "KILL", "soloist")
			return nil
		}},
		{name: "the sidecar is out of memory", within: crash, silent: crash, slow: true, do: func(l term) func() {
			d.OOM(d.ns, l.pod, "soloist")
			return nil
		}},
		{name: "the sidecar freezes", within: crash, silent: crash + 10*time.Second, do: func(l term) func() {
			d.Signal(d.ns, l.pod, "STOP", "soloist")
			return func() { d.Signal(d.ns, l.pod, "CONT", "soloist") }
		}},
		{name: "cut off from Redis", within: crash, silent: crash, do: func(l term) func() { return d.Cut(d.ns, l.pod, redis, redisIP) }},
		{name: "cut off from Redis and from the API server", within: crash, silent: 2 * crash, do: func(l term) func() {
			return d.Cut(d.ns, l.pod, redis, redisIP, api)
		}},
	}
}

// harmless is what must not cost the leader its term.
func (d *demo) harmless() []ending {
	redis := d.Kubectl("get", "pods", "--namespace", d.ns, "--selector=app.kubernetes.io/component=redis",
		"--output=jsonpath={.items[0].metadata.name}")
	api := d.Kubectl("get", "service", "kubernetes", "--namespace=default", "--output=jsonpath={.spec.clusterIP}")
	return []ending{
		{name: "kill -9 of the app", do: func(l term) func() { d.Signal(d.ns, l.pod, "KILL", "worker"); return nil }},
		{name: "the app is out of memory", do: func(l term) func() { d.OOM(d.ns, l.pod, "worker"); return nil }},
		{name: "cut off from the API server", do: func(l term) func() { return d.Cut(d.ns, l.pod, api) }},
		{name: "the kubelet is restarted", do: func(term) func() { d.RestartKubelet(); return nil }},
		{name: "kill -9 of Redis, which keeps its data", do: func(term) func() { d.Signal(d.ns, redis, "KILL", "redis"); return nil }},
	}
}

// TestEndings lets the leader end in each way that Kubernetes knows, and measures how long
// it takes until another leads, and for how long the Service of the leader is silent.
func TestEndings(t *testing.T) {
	d := install(t)
	d.settled()
	runProbe(t, d.Cluster, d.ns)
	rows := []string{"| ending of the leader | next leader after | its Service is silent |", "|---|---|---|"}
	for _, e := range d.endings() {
		l := d.leader()
		began := time.Now()
		undo := e.do(l)
		if e.slow {
			began = time.Now()
		}
		next := d.next(l.fence, e.within+soon)
		took := next.from.Sub(began)
		if took > e.within {
			t.Errorf("%s: next leader after %v, want %v", e.name, took, e.within)
		}
		if undo != nil {
			undo()
		}
		d.works()
		d.settled()
		silent := d.silent(began)
		if silent > e.silent {
			t.Errorf("%s: the Service was silent for %v, want %v", e.name, silent, e.silent)
		}
		after := fmt.Sprintf("%.1f s", took.Seconds())
		if e.late {
			after = "–"
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %.1f s |", e.name, after, silent.Seconds()))
	}
	for _, e := range d.harmless() {
		l := d.leader()
		began := time.Now()
		undo := e.do(l)
		d.works()
		if undo != nil {
			undo()
		}
		d.settled()
		if now := d.leader(); now != l {
			t.Errorf("%s: %s leads with fence %s, not %s with %s", e.name, now.pod, now.fence, l.pod, l.fence)
		}
		rows = append(rows, fmt.Sprintf("| %s | it leads on | %.1f s |", e.name, d.silent(began).Seconds()))
	}
	d.judge()
	t.Log("\n" + strings.Join(rows, "\n"))
}
