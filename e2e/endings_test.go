package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
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

// leaseRunsOut is when another leads, at most, after a leader that said nothing. How long a node takes to
// carry out what it is told is no part of it: it is measured, and not judged.
const leaseRunsOut = leaseLasts + 2*time.Second

// stopped reports whether a term ended by a planned stop, as its own last event says.
func (d *demo) stopped(l term) bool {
	return slices.ContainsFunc(d.terms(), func(t term) bool { return t.fence == l.fence && strings.Contains(t.why, "(stopped)") })
}

// answers waits until the Service of the leader does.
func (d *demo) answers() {
	d.t.Helper()
	d.Eventually("an answer of the leader's Service", time.Minute, func() error {
		_, err := d.Get("/api/v1/namespaces/" + d.ns + "/services/city-ids-leader:80/proxy/livez")
		return err
	})
}

// An ending is a way in which the leader ends.
type ending struct {
	name string
	// crash is for one that says nothing: its lease runs out. Others hand over, which judge sees to.
	crash bool
	late  bool // it takes a while until the ending reaches the leader, so only the silence is shown
	do    func(leader term) (undo func())
	// excuse says why what must not cost a term may have cost it; nil: nothing does.
	excuse func(began time.Time) string
}

func (d *demo) endings() []ending {
	redis := d.Kubectl("get", "service", "soloist-redis", "--namespace", d.ns, "--output=jsonpath={.spec.clusterIP}")
	redisIP := d.Kubectl("get", "pods", "--namespace", d.ns, "--selector=app.kubernetes.io/component=redis",
		"--output=jsonpath={.items[0].status.podIP}")
	api := d.Kubectl("get", "service", "kubernetes", "--namespace=default", "--output=jsonpath={.spec.clusterIP}")
	node := d.Kubectl("get", "nodes", "--output=jsonpath={.items[0].metadata.name}")
	return []ending{
		{name: "the pod is deleted", do: func(l term) func() {
			d.Kubectl("delete", "pod", l.pod, "--namespace", d.ns, "--wait=false")
			return nil
		}},
		{name: "rolling update", late: true, do: func(term) func() {
			d.Kubectl("rollout", "restart", "deployment/city-ids", "--namespace", d.ns)
			return nil
		}},
		{name: "eviction", do: func(l term) func() {
			body := fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":%q}}`, l.pod, d.ns)
			d.Create("/api/v1/namespaces/"+d.ns+"/pods/"+l.pod+"/eviction", body)
			return nil
		}},
		{name: "the node is drained of it", do: func(term) func() {
			d.Kubectl("drain", node, "--pod-selector=app.kubernetes.io/component=city-ids,soloist.dev/role=leader",
				"--ignore-daemonsets", "--delete-emptydir-data")
			return func() { d.Kubectl("uncordon", node) }
		}},
		{name: "scale down", do: func(l term) func() {
			d.Kubectl("annotate", "pod", l.pod, "--namespace", d.ns, "controller.kubernetes.io/pod-deletion-cost=-1")
			d.Kubectl("scale", "deployment/city-ids", "--namespace", d.ns, "--replicas=2")
			return func() { d.Kubectl("scale", "deployment/city-ids", "--namespace", d.ns, "--replicas=3") }
		}},
		{name: "deletion by force", crash: true, do: func(l term) func() {
			d.Kubectl("delete", "pod", l.pod, "--namespace", d.ns, "--force", "--grace-period=0")
			return nil
		}},
		{name: "kill -9 of the sidecar", crash: true, do: func(l term) func() {
			d.Signal(d.ns, l.pod, "KILL", "soloist")
			return nil
		}},
		{name: "the sidecar is out of memory", crash: true, do: func(l term) func() {
			d.OOM(d.ns, l.pod, "soloist")
			return nil
		}},
		{name: "the sidecar freezes", crash: true, do: func(l term) func() {
			d.Signal(d.ns, l.pod, "STOP", "soloist")
			return func() { d.Signal(d.ns, l.pod, "CONT", "soloist") }
		}},
		{name: "cut off from Redis", crash: true, do: func(l term) func() { return d.Cut(d.ns, l.pod, redis, redisIP) }},
		{name: "cut off from Redis and from the API server", crash: true, do: func(l term) func() {
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
		{
			name: "kill -9 of Redis, which keeps its data",
			do:   func(term) func() { d.Signal(d.ns, redis, "KILL", "redis"); return nil },
			excuse: func(began time.Time) string {
				started := d.Kubectl("get", "pod", redis, "--namespace", d.ns, "--output=jsonpath={.status.containerStatuses[0].state.running.startedAt}")
				at, err := time.Parse(time.RFC3339, started)
				if away := at.Sub(began); err == nil && away > 8*time.Second { // belief lasts for 10 s from the last renewal
					return fmt.Sprintf("Redis was away for %v", away.Round(time.Second))
				}
				return ""
			},
		},
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
		done := time.Now() // by now, at the latest, a crash has happened
		next := d.next(l.fence, time.Minute)
		took := next.from.Sub(began)
		if e.crash {
			if took = next.from.Sub(done); took > leaseRunsOut {
				t.Errorf("%s: next leader after %v, want %v", e.name, took, leaseRunsOut)
			}
		}
		if undo != nil {
			undo()
		}
		d.works()
		d.settled()
		d.answers()
		if !e.crash && !d.stopped(l) {
			t.Errorf("%s: %s did not say that it stopped", e.name, l.pod)
		}
		silent := d.silent(began)
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
		kept := "it leads on"
		if now := d.leader(); now == l {
		} else if e.excuse != nil && e.excuse(began) != "" {
			kept = e.excuse(began)
		} else {
			t.Errorf("%s: %s leads with fence %s, not %s with %s", e.name, now.pod, now.fence, l.pod, l.fence)
		}
		d.answers()
		rows = append(rows, fmt.Sprintf("| %s | %s | %.1f s |", e.name, kept, d.silent(began).Seconds()))
	}
	d.judge()
	t.Log("\n" + strings.Join(rows, "\n"))
}
