package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/e2e/internal/image"
)

func loadBeat(t *testing.T, d *demo) {
	t.Helper()
	tar := filepath.Join(t.TempDir(), "beat.tar")
	if err := image.Go(t.Context(), tar, beatImage, ".", "./internal/beat"); err != nil {
		t.Fatal(err)
	}
	d.Load(tar)
}

// marked waits until so many pods that ask have the role, and returns them.
func (d *demo) marked(role string, n int) []string {
	d.t.Helper()
	var names []string
	d.Eventually(fmt.Sprintf("%d pods marked %s", n, role), time.Minute, func() error {
		var pods struct {
			Items []struct{ Metadata struct{ Name string } }
		}
		d.list("/api/v1/namespaces/"+d.ns+"/pods?labelSelector=e2e=workload,soloist.dev/role="+role, &pods)
		names = nil
		for _, p := range pods.Items {
			names = append(names, p.Metadata.Name)
		}
		if len(names) != n {
			return fmt.Errorf("%q", names)
		}
		return nil
	})
	return names
}

// events are the notes of Events of a reason about a pod.
func (d *demo) events(pod, reason string) (notes []string) {
	d.t.Helper()
	var events struct{ Items []struct{ Note string } }
	d.list("/apis/events.k8s.io/v1/namespaces/"+d.ns+"/events?fieldSelector=regarding.name="+pod+",reason="+reason, &events)
	for _, e := range events.Items {
		notes = append(notes, e.Note)
	}
	return notes
}

// TestJobs runs a Job and a CronJob to their ends with the sidecar in their pods: a native sidecar does not keep them.
func TestJobs(t *testing.T) {
	d := install(t)
	job := func(name string) object {
		return object{"template": object{
			"metadata": asks("lock", name),
			"spec":     podSpec("OnFailure", container("app", sidecarImage+":e2e", "wait")),
		}}
	}
	named := func(name string) object { return object{"name": name, "namespace": d.ns} }
	d.Apply(manifest(object{"apiVersion": "batch/v1", "kind": "Job", "metadata": named("once"), "spec": job("once")}))
	d.Apply(manifest(object{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": named("nightly"), "spec": object{
		"schedule": "* * * * *", "jobTemplate": object{"spec": job("nightly")},
	}}))
	d.Kubectl("wait", "--for=condition=Complete", "job/once", "--namespace", d.ns, "--timeout=90s")
	d.Eventually("a run of the CronJob", 150*time.Second, func() error {
		if got := d.Kubectl("get", "cronjob", "nightly", "--namespace", d.ns, "--output=jsonpath={.status.lastSuccessfulTime}"); got == "" {
			return errors.New("none succeeded yet")
		}
		return nil
	})
	out := d.Kubectl("get", "pods", "--namespace", d.ns, "--selector=job-name=once",
		"--output=jsonpath={.items[*].spec.initContainers[*].name} {.items[*].status.phase}")
	if out != "soloist Succeeded" {
		t.Errorf("the Job's pod: %q", out)
	}
}

// TestFastFailover kills all processes of a leader's pod that is not restarted. Another takes over long before the lease
// of 15 s ends.
func TestFastFailover(t *testing.T) {
	d := install(t, "sidecar.fastFailover.enabled=true", "sidecar.defaults.fast-failover=pod")
	loadBeat(t, d)
	for _, name := range []string{"a", "b"} {
		d.Apply(beating(d.ns, name, "Never", "lock", "solo"))
	}
	leader, standby := d.marked("leader", 1)[0], d.marked("standby", 1)[0]
	d.Eventually("the standby waits in line", soon, func() error { // it has read who leads
		out, err := d.Try("get", "pod", standby, "--namespace", d.ns, `--output=jsonpath={.metadata.annotations.soloist\.dev/leader}`)
		if err == nil && out != leader {
			err = fmt.Errorf("annotated leader %q", out)
		}
		return err
	})
	d.Signal(d.ns, leader, "KILL", "soloist", "app")
	killed := time.Now()
	var note string
	d.Eventually("a leader", leaseRunsOut+soon, func() error {
		notes := d.events(standby, "Leading")
		if len(notes) == 0 {
			return errors.New("none yet")
		}
		note = notes[0]
		return nil
	})
	at, err := time.Parse(time.RFC3339Nano, d.Kubectl("get", "events.events.k8s.io", "--namespace", d.ns,
		"--field-selector=regarding.name="+standby+",reason=Leading", "--output=jsonpath={.items[0].eventTime}"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.2f s after the death: %s", at.Sub(killed).Seconds(), note)
	if !strings.Contains(note, "failover") || at.Sub(killed) > 8*time.Second {
		t.Errorf("%v after the death: %s; want a failover, at once", at.Sub(killed), note)
	}
}

// TestOnLost cuts a leader off, which restarts all containers of its pod in place.
func TestOnLost(t *testing.T) {
	d := install(t)
	loadBeat(t, d)
	d.Apply(beating(d.ns, "a", "Always",
		"lock", "solo", "on-lost", "exit", "lease-duration", "6s", "renew-deadline", "2s", "retry-period", "500ms"))
	pod := d.marked("leader", 1)[0]
	get := func(path string) string {
		return d.Kubectl("get", "pod", pod, "--namespace", d.ns, "--output=jsonpath="+path)
	}
	uid := get("{.metadata.uid}")
	service := d.Kubectl("get", "service", "soloist-redis", "--namespace", d.ns, "--output=jsonpath={.spec.clusterIP}")
	redis := d.Kubectl("get", "pods", "--namespace", d.ns, "--selector=app.kubernetes.io/component=redis",
		"--output=jsonpath={.items[0].status.podIP}")
	heal := d.Cut(d.ns, pod, service, redis)
	began := time.Now()
	d.Eventually("the app is restarted", soon, func() error {
		if got := get("{.status.containerStatuses[0].restartCount}"); got == "0" {
			return errors.New("not yet")
		}
		return nil
	})
	t.Logf("restarted %.1f s after the cut", time.Since(began).Seconds())
	heal()
	d.Eventually("it leads again", time.Minute, func() error {
		if n := len(d.events(pod, "Leading")); n < 2 {
			return fmt.Errorf("%d terms", n)
		}
		return nil
	})
	if got := get("{.metadata.uid}"); got != uid {
		t.Errorf("the pod was replaced: %s, not %s", got, uid)
	}
	if notes := d.events(pod, "NotLeading"); !strings.Contains(strings.Join(notes, ""), "expired") {
		t.Errorf("why it ended is not said: %q", notes)
	}
}

// TestUpgradeAndUninstall demands that an upgrade keeps the password, and that nothing is left after all is gone.
func TestUpgradeAndUninstall(t *testing.T) {
	d := install(t)
	d.settled()
	password := func() string {
		return d.Kubectl("get", "secret", "soloist-store", "--namespace", d.ns, "--output=jsonpath={.data.password}")
	}
	before, led := password(), d.leader()
	d.Helm(append(append([]string{"upgrade"}, d.args...), "--set", "sidecar.resources.requests.memory=25Mi")...)
	d.settled()
	if after := password(); after != before || after == "" {
		t.Errorf("the password was %q, is %q", before, after)
	}
	if now := d.leader(); now.pod == led.pod {
		t.Errorf("%s was not replaced", led.pod)
	}
	d.judge()
	d.Helm("uninstall", "soloist", "--namespace", d.ns, "--wait", "--timeout=1m")
	d.Eventually("nothing is left", soon, func() error {
		left, err := d.Try("get", "all,secrets,configmaps,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets,persistentvolumeclaims,leases",
			"--namespace", d.ns, "--output=name")
		if err != nil {
			return err
		}
		var names []string
		for _, name := range strings.Fields(left) {
			if name != "configmap/kube-root-ca.crt" && name != "serviceaccount/default" {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			return fmt.Errorf("%q", names)
		}
		return nil
	})
}
