package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/e2e/internal/cluster"
	"github.com/soloist-dev/soloist/e2e/internal/image"
)

const injectorImage = "docker.io/soloist-e2e/injector"

// injector installs the chart without what else it has, and with what adds sidecars.
func injector(t *testing.T, c *cluster.Cluster, mode string, set ...string) (namespace string) {
	t.Helper()
	load := func(ref, command string) {
		tar := filepath.Join(t.TempDir(), filepath.Base(command)+".tar")
		if err := image.Go(t.Context(), tar, ref+":e2e", "..", command); err != nil {
			t.Fatal(err)
		}
		c.Load(tar)
	}
	load(sidecarImage, "./cmd/sidecar")
	load(injectorImage, "./cmd/injector")
	ns := c.Namespace("soloist-" + mode)
	args := []string{
		"install", "soloist", chartDir, "--namespace", ns, "--wait", "--timeout=5m",
		"--set", "image.repository=" + sidecarImage, "--set", "image.tag=e2e",
		"--set", "injector.mode=" + mode, "--set", "injector.replicas=1",
		"--set", "injector.image.repository=" + injectorImage, "--set", "injector.image.tag=e2e",
		"--set", "redis.enabled=false", "--set", "store.url=redis://redis.shop.svc:6379",
	}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	c.Cleanup(func() {
		c.TryHelm("uninstall", "soloist", "--namespace", ns, "--wait", "--timeout=1m")
		left, err := c.Try("get", "mutatingwebhookconfigurations,mutatingadmissionpolicies,mutatingadmissionpolicybindings,"+
			"validatingadmissionpolicies,validatingadmissionpolicybindings,clusterroles,clusterrolebindings",
			"--selector=app.kubernetes.io/part-of=soloist", "--output=name")
		if err != nil || left != "" {
			t.Errorf("after uninstall: %v %s", err, left)
		}
	})
	c.Helm(args...)
	return ns
}

// asking is a pod with these annotations, as JSON.
func asking(namespace, name string, annotations map[string]string) string {
	app := func(name string) object { return container(name, sidecarImage+":e2e", "version") }
	first := app("app")
	first["env"] = []object{{"name": "SOLOIST_URL", "value": "mine"}}
	spec := podSpec("Always", first, app("other"))
	spec["initContainers"] = []object{app("prepare")}
	spec["automountServiceAccountToken"] = false // its volume has a random name
	return manifest(object{
		"apiVersion": "v1", "kind": "Pod", "spec": spec,
		"metadata": object{"name": name, "namespace": namespace, "annotations": annotations},
	})
}

// admit returns the spec with which the API server would take a pod.
func admit(c *cluster.Cluster, pod string) (map[string]any, error) {
	out, err := c.TryCreate(pod, "--dry-run=server", "--output=json")
	if err != nil {
		return nil, err
	}
	var made struct{ Spec map[string]any }
	err = json.Unmarshal([]byte(out), &made)
	return made.Spec, err
}

// wellFormed are pods that get a sidecar, or are left alone, by name.
func wellFormed(namespace string) map[string]string {
	pods := map[string]map[string]string{
		"plain":    enabled("lock", "city-ids"),
		"every":    enabled("lock", "a/b.c-d", "store", "redis://x:1/2", "slots", "3", "lease-duration", "30s", "renew-deadline", "20s", "retry-period", "3s", "key-prefix", `it's "ours"`, "store-check", "warn", "delayed-restart", "off", "readiness", "leader", "app-health-url", "http://127.0.0.1:8080/healthz", "app-health-period", "3s", "app-health-timeout", "2s", "app-health-failures", "2", "require-heartbeat", "10s", "drain-timeout", "5s", "on-lost", "exit", "annotate", "auto", "fast-failover", "pod", "readiness-gate", "true", "log-level", "debug", "log-format", "text"),
		"not":      {"soloist.dev/inject": "disabled", "config.soloist.dev/lock": "city-ids"},
		"not-said": {"config.soloist.dev/lock": "city-ids"},
	}
	out := map[string]string{}
	for name, annotations := range pods {
		out[name] = asking(namespace, name, annotations)
	}
	return out
}

// malformed are annotations that are refused, by a part of what is said of them.
var malformed = map[string]map[string]string{
	"config.soloist.dev/lock is required": enabled(),
	"lock must be one name":               enabled("lock", "Not A Name"),
	"unknown annotation":                  enabled("lock", "x", "nosuch", "1"),
	"on-lost must be one of":              enabled("lock", "x", "on-lost", "explode"),
	"fast-failover must be one of":        enabled("lock", "x", "fast-failover", "node"),
	"slots must be 0 to 1000":             enabled("lock", "x", "slots", "many"),
	"password":                            enabled("lock", "x", "store", "redis://u:p@h:1"),
	"lease-duration":                      enabled("lock", "x", "lease-duration", "1 hour"),
	"renew-deadline":                      enabled("lock", "x", "renew-deadline", "20s"),
	"http-address must end in":            enabled("lock", "x", "http-address", "localhost:80"),
}

// TestInjection demands the same pods, and the same refusals, of the policy and of the webhook.
func TestInjection(t *testing.T) {
	c := cluster.Up(t)
	shop := c.Namespace("shop")
	pods := map[string]map[string]map[string]any{}
	for _, mode := range []string{"policy", "webhook"} {
		t.Run(mode, func(t *testing.T) {
			c := cluster.Up(t)
			injector(t, c, mode)
			pods[mode] = map[string]map[string]any{}
			for name, pod := range wellFormed(shop) {
				spec, err := admit(c, pod)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				pods[mode][name] = spec
			}
			for said, annotations := range malformed {
				if _, err := admit(c, asking(shop, "refused", annotations)); err == nil || !strings.Contains(err.Error(), said) {
					t.Errorf("refusal of %v: %v; want %q in it", annotations, err, said)
				}
			}
		})
	}
	for name, spec := range pods["policy"] {
		if !reflect.DeepEqual(spec, pods["webhook"][name]) {
			a, _ := json.MarshalIndent(spec, "", " ")
			b, _ := json.MarshalIndent(pods["webhook"][name], "", " ")
			t.Errorf("%s: the policy makes\n%s\nthe webhook\n%s", name, a, b)
		}
		sidecars := strings.Count(fmt.Sprint(spec["initContainers"]), "name:soloist ")
		if want := map[string]int{"plain": 1, "every": 1}[name]; sidecars != want {
			t.Errorf("%s: %d sidecars, want %d", name, sidecars, want)
		}
	}
}

// TestWebhookDown demands that without a webhook nobody is hindered who did not ask for it, and that nobody who did runs
// without a sidecar unawares.
func TestWebhookDown(t *testing.T) {
	c := cluster.Up(t)
	shop := c.Namespace("shop")
	ns := injector(t, c, "webhook")
	c.Kubectl("scale", "deployment/soloist-injector", "--namespace", ns, "--replicas=0")
	c.Eventually("a refusal", soon, func() error {
		if _, err := admit(c, asking(shop, "asks", enabled("lock", "x"))); err == nil {
			return errors.New("it was taken")
		} else if !strings.Contains(err.Error(), "inject.soloist.dev") {
			return err
		}
		return nil
	})
	if _, err := admit(c, asking(shop, "does-not", nil)); err != nil {
		t.Errorf("a pod that does not ask: %v", err)
	}
	c.Kubectl("scale", "deployment/soloist-injector", "--namespace", ns, "--replicas=1")
	c.Eventually("a webhook", soon, func() error {
		_, err := admit(c, asking(shop, "asks", enabled("lock", "x")))
		return err
	})
}

// TestCertificateRotation lets two certificates follow the first, and demands that no call fails meanwhile.
func TestCertificateRotation(t *testing.T) {
	c := cluster.Up(t)
	shop := c.Namespace("shop")
	ns := injector(t, c, "webhook", "injector.certificateLifetime=1m")
	certificate := func() string {
		return c.Kubectl("get", "secret", "soloist-injector-cert", "--namespace", ns, `--output=jsonpath={.data.tls\.crt}`)
	}
	seen := map[string]bool{certificate(): true}
	calls := 0
	for end := time.Now().Add(4 * time.Minute); len(seen) < 3 && time.Now().Before(end); {
		if _, err := admit(c, asking(shop, "asks", enabled("lock", "x"))); err != nil {
			t.Fatalf("call %d, with certificate %d: %v", calls, len(seen), err)
		}
		calls++
		seen[certificate()] = true
	}
	if len(seen) < 3 {
		t.Errorf("%d certificates in 4 minutes, want 3", len(seen))
	}
	t.Logf("%d calls, %d certificates", calls, len(seen))
}

// TestOwnPodOnly lets the token of one sidecar's pod try what it may not.
func TestOwnPodOnly(t *testing.T) {
	c := cluster.Up(t)
	shop := c.Namespace("shop")
	injector(t, c, "policy", "workloads[0].namespace="+shop, "workloads[0].serviceAccounts[0]=default",
		"sidecar.readinessGate.enabled=true", "sidecar.fastFailover.enabled=true")
	for _, name := range []string{"mine", "other"} {
		c.Create("/api/v1/namespaces/"+shop+"/pods", asking(shop, name, nil))
	}
	uid := c.Kubectl("get", "pod", "mine", "--namespace", shop, "--output=jsonpath={.metadata.uid}")
	token := c.Kubectl("create", "token", "default", "--namespace", shop,
		"--bound-object-kind=Pod", "--bound-object-name=mine", "--bound-object-uid="+uid)
	unbound := c.Kubectl("create", "token", "default", "--namespace", shop)
	patch := func(token, pod, body string, more ...string) error {
		args := append([]string{"patch", "pod", pod, "--namespace", shop, "--type=merge", "--patch=" + body, "--token=" + token}, more...)
		_, err := c.As(args...)
		return err
	}
	const leader = `{"metadata":{"labels":{"soloist.dev/role":"leader"},"annotations":{"soloist.dev/fence":"1"}}}`
	c.Eventually("the policies count", soon, func() error {
		if err := patch(token, "other", leader); err == nil {
			return errors.New("another pod was patched")
		}
		return nil
	})
	if err := patch(token, "mine", leader); err != nil {
		t.Errorf("its own pod: %v", err)
	}
	for what, err := range map[string]error{
		"another pod":          patch(token, "other", leader),
		"a token of no pod":    patch(unbound, "mine", leader),
		"another label":        patch(token, "mine", `{"metadata":{"labels":{"app":"x"}}}`),
		"another annotation":   patch(token, "mine", `{"metadata":{"annotations":{"x":"y"}}}`),
		"a finalizer":          patch(token, "mine", `{"metadata":{"finalizers":["x.example/y"]}}`),
		"the image":            patch(token, "mine", `{"spec":{"containers":[{"name":"app","image":"x"}]}}`),
		"the phase":            patch(token, "mine", `{"status":{"phase":"Failed"}}`, "--subresource=status"),
		"another pod's status": patch(token, "other", `{"status":{"message":"x"}}`, "--subresource=status"),
	} {
		if err == nil {
			t.Errorf("%s may be changed", what)
		}
	}
	for _, verb := range []string{"delete", "update", "list", "create"} {
		if got, err := c.As("auth", "can-i", verb, "pods", "--namespace", shop, "--token="+token); err == nil && got == "yes" {
			t.Errorf("a sidecar may %s pods", verb)
		}
	}
}
