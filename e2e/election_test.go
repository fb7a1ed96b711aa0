package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/e2e/internal/cluster"
	"github.com/soloist-dev/soloist/e2e/internal/image"
)

const (
	sidecarImage = "docker.io/soloist-e2e/sidecar"
	cityImage    = "docker.io/soloist-e2e/city-ids"
	leaseLasts   = 15 * time.Second // the default
)

// A demo is the chart with its example: Redis, three workers with sidecars, the task store.
type demo struct {
	*cluster.Cluster
	t    *testing.T
	ns   string
	args []string // of helm, after install or upgrade

	tasks string // the task store's pod, once known
}

// install installs everything with one command into a namespace of its own.
func install(t *testing.T, set ...string) *demo {
	t.Helper()
	c := cluster.Up(t)
	dir := t.TempDir()
	load := func(name string, write func(tar string) error) {
		tar := filepath.Join(dir, name+".tar")
		if err := write(tar); err != nil {
			t.Fatal(err)
		}
		c.Load(tar)
	}
	load("redis", func(tar string) error { return image.Redis(t.Context(), tar, redisImage) })
	load("sidecar", func(tar string) error { return image.Go(t.Context(), tar, sidecarImage+":e2e", "..", "./cmd/sidecar") })
	load("city", func(tar string) error {
		return image.Go(t.Context(), tar, cityImage+":e2e", "../examples/city-ids", "./cmd/worker", "./cmd/tasks")
	})
	d := &demo{Cluster: c, t: t, ns: c.Namespace("demo")}
	d.args = []string{
		"soloist", chartDir, "--namespace", d.ns, "--wait", "--timeout=5m",
		"--set", "image.repository=" + sidecarImage, "--set", "image.tag=e2e",
		"--set", "demo.enabled=true", "--set", "demo.image.repository=" + cityImage, "--set", "demo.image.tag=e2e",
		"--set", "redis.image.repository=" + strings.Split(redisImage, ":")[0], "--set", "redis.image.tag=installed",
		"--set", "redis.persistence.enabled=false",
	}
	for _, s := range set {
		d.args = append(d.args, "--set", s)
	}
	began := time.Now()
	c.Cleanup(func() { c.TryHelm("uninstall", "soloist", "--namespace", d.ns, "--wait", "--timeout=1m") })
	c.Helm(append([]string{"install"}, d.args...)...)
	t.Logf("helm install took %.1f s", time.Since(began).Seconds())
	return d
}

// A term is one Leading event, and the NotLeading that ended it, if there was one.
type term struct {
	pod, fence string
	from, to   time.Time
	why        string
}

// terms reads what the sidecars said in events, in the order of their fences.
func (d *demo) terms() []term {
	d.t.Helper()
	var list struct {
		Items []struct {
			EventTime           time.Time
			Reason, Note        string
			ReportingController string
			Regarding           struct{ Name string }
		}
	}
	d.list("/apis/events.k8s.io/v1/namespaces/"+d.ns+"/events", &list)
	var terms []term
	ended := map[string]time.Time{}
	why := map[string]string{}
	for _, e := range list.Items {
		if e.ReportingController != "soloist.dev/sidecar" {
			continue
		}
		words := strings.Fields(e.Note)
		switch e.Reason {
		case "Leading": // leads "city-ids" with fence F (reason)
			terms = append(terms, term{pod: e.Regarding.Name, fence: words[4], from: e.EventTime})
		case "NotLeading": // … its fence was F
			fence := words[len(words)-1]
			ended[fence], why[fence] = e.EventTime, e.Note
		}
	}
	for i := range terms {
		terms[i].to, terms[i].why = ended[terms[i].fence], why[terms[i].fence]
	}
	slices.SortFunc(terms, func(a, b term) int { return strings.Compare(a.fence, b.fence) })
	return terms
}

// next waits for a term after the one with this fence.
func (d *demo) next(fence string, limit time.Duration) term {
	d.t.Helper()
	var got term
	d.Eventually("a leader after "+fence, limit, func() error {
		terms := d.terms()
		if len(terms) == 0 || terms[len(terms)-1].fence <= fence {
			return fmt.Errorf("the last of %d terms is not later", len(terms))
		}
		got = terms[len(terms)-1]
		return nil
	})
	return got
}

// leader returns the term that lasts.
func (d *demo) leader() term { return d.next("", time.Minute) }

// record is what the task store has recorded.
func (d *demo) record() (r struct {
	Next  int64
	Tasks []struct {
		CityID int64 `json:"city_id"`
		Fence  int64
	}
}) {
	d.t.Helper()
	if d.tasks == "" { // it stays, as Redis does
		d.tasks = d.Kubectl("get", "pods", "--namespace", d.ns, "--selector=app.kubernetes.io/component=city-ids-tasks",
			"--output=jsonpath={.items[0].metadata.name}")
	}
	d.list("/api/v1/namespaces/"+d.ns+"/pods/"+d.tasks+":8080/proxy/tasks", &r)
	return r
}

// list decodes what the API server has at a path.
func (d *demo) list(path string, into any) {
	d.t.Helper()
	body, err := d.Get(path)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// judge demands that no two terms overlapped, that every fence is higher than the one
// before, and that no city ID was lost or handed out twice.
func (d *demo) judge() {
	d.t.Helper()
	terms := d.terms()
	const (
		wake     = 100 * time.Millisecond // between a transition and its event
		handOver = 2 * time.Second        // from the end of a term that was planned to the next
	)
	handed := 0
	for i := 1; i < len(terms); i++ {
		before, after := terms[i-1], terms[i]
		if !before.to.IsZero() && after.from.Add(wake).Before(before.to) {
			d.t.Errorf("%s led until %v, %s from %v", before.pod, before.to, after.pod, after.from)
		}
	}
	for i := 1; i < len(terms); i++ {
		before, after := terms[i-1], terms[i]
		if !strings.Contains(before.why, "(stopped)") {
			continue
		}
		handed++
		if gap := after.from.Sub(before.to); gap > handOver {
			d.t.Errorf("%s stopped, and %s led %v later, want %v", before.pod, after.pod, gap, handOver)
		}
	}
	r := d.record()
	var fence int64
	for i, task := range r.Tasks {
		if task.CityID != int64(i+1) || task.Fence < fence {
			d.t.Errorf("task %d: city ID %d with fence %d after %d", i, task.CityID, task.Fence, fence)
		}
		fence = task.Fence
	}
	if len(r.Tasks) == 0 {
		d.t.Error("no city ID was handed out")
	}
	d.t.Logf("%d terms, of which %d were handed over, %d city IDs in order", len(terms), handed, len(r.Tasks))
}

// works waits until the leader's worker hands out another city ID.
func (d *demo) works() {
	d.t.Helper()
	from := d.record().Next
	d.Eventually("another city ID", soon, func() error {
		if n := d.record().Next; n <= from {
			return fmt.Errorf("next is still %d", n)
		}
		return nil
	})
}

// settled waits until all three replicas are ready and marked, one of them as the leader.
func (d *demo) settled() {
	d.t.Helper()
	d.Kubectl("rollout", "status", "deployment/city-ids", "--namespace", d.ns, "--timeout=90s")
	d.Eventually("three marked pods", soon, func() error {
		var list struct {
			Items []struct {
				Metadata struct {
					DeletionTimestamp string
					Labels            map[string]string
				}
			}
		}
		d.list("/api/v1/namespaces/"+d.ns+"/pods?labelSelector=app.kubernetes.io/component=city-ids", &list)
		var roles []string
		for _, p := range list.Items {
			if p.Metadata.DeletionTimestamp == "" {
				roles = append(roles, p.Metadata.Labels["soloist.dev/role"])
			}
		}
		slices.Sort(roles)
		if !slices.Equal(roles, []string{"leader", "standby", "standby"}) {
			return fmt.Errorf("roles %q", roles)
		}
		return nil
	})
}
