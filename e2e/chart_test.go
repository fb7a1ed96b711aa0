package e2e

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// These tests are of the chart and of config/ as text. They need helm and kubectl, but no cluster.

var chartUpdate = flag.Bool("update", false, "write the golden files of the chart, and config/, anew")

const (
	chartDir  = "../charts/soloist"
	configDir = "../config"
)

func TestChartLint(t *testing.T) {
	for _, name := range chartValues(t) {
		t.Run(name, func(t *testing.T) {
			_, err := chartRun(t, "helm", "lint", "--strict", "--kube-version=1.36.0", "--namespace=soloist-system",
				"--values", chartFile(name+".values.yaml"), chartDir)
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// chartPassword is what differs from one rendering to the next.
var chartPassword = regexp.MustCompile(`(?m)^  (password|redis\.conf): .*`)

func TestChartGolden(t *testing.T) {
	for _, name := range chartValues(t) {
		t.Run(name, func(t *testing.T) {
			objects, err := chartRender(t, "--values", chartFile(name+".values.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if name != "all" { // which gives a password
				for key, doc := range objects.kinds("Secret") {
					objects[key] = chartPassword.ReplaceAllString(doc, "  $1: GENERATED")
				}
			}
			chartGolden(t, chartFile(name+".golden.yaml"), objects.String())
		})
	}
}

func TestChartRefuses(t *testing.T) {
	bare := []string{"redis.enabled=false", "injector.mode=none", "policies.enabled=false"}
	for _, c := range []struct {
		name string
		set  []string
		kube string
		says string
	}{
		{"unknown value", []string{"replicas=3"}, "", "replicas"},
		{"unknown nested value", []string{"redis.lasting.enabled=false"}, "", "lasting"},
		{"unknown flag", []string{"sidecar.defaults.lease=15s"}, "", "lease"},
		{"lock for all", []string{"sidecar.defaults.lock=a"}, "", "lock"},
		{"name for all", []string{"sidecar.defaults.name=a"}, "", "name"},
		{"duration", []string{"sidecar.defaults.lease-duration=15"}, "", "lease-duration"},
		{"choice", []string{"sidecar.defaults.on-lost=restart"}, "", "on-lost"},
		{"bool for a choice", []string{"sidecar.defaults.delayed-restart=true"}, "", "delayed-restart"},
		{"slots", []string{"sidecar.defaults.slots=1001"}, "", "slots"},
		{"port", []string{"sidecar.defaults.http-address=localhost:8080"}, "", "http-address"},
		{"mode", []string{"injector.mode=hook"}, "", "mode"},
		{"failure policy", []string{"injector.failurePolicy=fail"}, "", "failurePolicy"},
		{"no replicas", []string{"injector.replicas=0"}, "", "replicas"},
		{"pull policy", []string{"image.pullPolicy=Sometimes"}, "", "pullPolicy"},
		{"image without a name", []string{"image.repository="}, "", "repository"},
		{"workload without accounts", []string{"workloads[0].namespace=shop"}, "", "serviceAccounts"},
		{"workload with an unknown value", []string{
			"workloads[0].namespace=shop", "workloads[0].serviceAccounts={default}", "workloads[0].lock=a",
		}, "", "lock"},
		{"workload as a name", []string{"workloads={shop}"}, "", "workloads"},
		{"resource", []string{"redis.resources.limits.gpu=1"}, "", "gpu"},
		{"memory", []string{"redis.maxmemory=48"}, "", "maxmemory"},
		{"no store", []string{"redis.enabled=false"}, "", "there is no store"},
		{"Redis and URL", []string{"store.url=redis://r:6379"}, "", "there are two stores"},
		{"Redis and Secret", []string{"store.existingSecret.name=r"}, "", "there are two stores"},
		{"URL and Secret", append(bare, "store.url=redis://r:6379", "store.existingSecret.name=r"), "", "there are two stores"},
		{"no URL", append(bare, "store.url=redis:6379"), "", "url"},
		{"password in the URL", append(bare, "store.url=redis://:secret@r:6379"), "", "store.url holds a password"},
		{"readiness gate without permission", []string{"sidecar.defaults.readiness-gate=true"}, "", "sidecar.readinessGate.enabled=true"},
		{"policy before 1.36", nil, "1.35.2", "injector.mode=policy needs Kubernetes 1.36, and this is v1.35.2: set injector.mode=webhook"},
		{"policies before 1.30", []string{"injector.mode=webhook"}, "1.29.1", "policies.enabled=true needs Kubernetes 1.30"},
		{"kube-system", []string{}, "", "install into another namespace"},
		{"before 1.29", bare, "1.28.9", "kubeVersion"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var args []string
			if c.name == "kube-system" {
				args = append(args, "--namespace=kube-system")
			}
			if c.kube != "" {
				args = append(args, "--kube-version="+c.kube)
			}
			for _, set := range c.set {
				args = append(args, "--set="+set)
			}
			if _, err := chartRender(t, args...); err == nil {
				t.Errorf("%v is accepted", c.set)
			} else if !strings.Contains(err.Error(), c.says) {
				t.Errorf("does not say %q: %v", c.says, err)
			}
		})
	}
}

// What the oldest cluster lacks is not rendered for it.
func TestChartOldCluster(t *testing.T) {
	objects, err := chartRender(t, "--kube-version=1.29.1", "--set=policies.enabled=false,injector.mode=webhook,demo.enabled=true",
		"--set=sidecar.defaults.on-lost=exit")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"AdmissionPolicy", "restartPolicyRules"} {
		if strings.Contains(objects.String(), word) {
			t.Errorf("%s is there", word)
		}
	}
}

// Nothing is left where everything is switched off.
func TestChartNothing(t *testing.T) {
	objects, err := chartRender(t, "--set=redis.enabled=false,injector.mode=none,policies.enabled=false,store.url=redis://r:6379",
		"--skip-tests")
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) > 0 {
		t.Errorf("there is\n%v", objects)
	}
}

// The library template judges what it is given.
func TestChartTemplate(t *testing.T) {
	dir := t.TempDir()
	abs, err := filepath.Abs(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 9.9.9\nappVersion: 9.9.9\n"+
		"dependencies:\n- {name: soloist, version: '*', repository: ''}\n")
	write("values.yaml", "soloist:\n  injector: {mode: none}\n  policies: {enabled: false}\n"+
		"  redis: {enabled: false}\n  store: {url: 'redis://r:6379'}\n")
	if err := os.CopyFS(filepath.Join(dir, "charts", "soloist"), os.DirFS(abs)); err != nil {
		t.Fatal(err)
	}
	render := func(call string) (string, error) {
		write("templates/pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: shop\nspec:\n  initContainers:\n"+
			`    - {{- include "soloist.sidecar" (dict "root" $.Subcharts.soloist `+call+") | nindent 6 }}\n")
		return chartRun(t, "helm", "template", "shop", dir, "--kube-version=1.36.0", "--show-only=templates/pod.yaml")
	}

	out, err := render(`"lock" "tills=2" "config" (dict "on-lost" "exit" "slots" 0) "volumeMounts" (list (dict "name" "ca" "mountPath" "/ca"))`)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"- elect\n      - --lock=tills=2\n      - --store=redis://r:6379\n      - --slots=0\n      - --on-lost=exit\n",
		"ghcr.io/soloist-dev/soloist:0.1.0", "action: RestartAllContainers", "mountPath: /ca",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for call, says := range map[string]string{
		``: "lock is required",
		`"lock" "a" "config" (dict "lease" "15s")`: "unknown flag lease in config",
	} {
		if _, err := render(call); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: does not say %q: %v", call, says, err)
		}
	}
}

// The chart knows each flag of the sidecar, in its policies and in its schema.
func TestChartFlags(t *testing.T) {
	help, err := os.ReadFile("../internal/config/testdata/help-elect.golden")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^  --([a-z-]+) `).FindAllSubmatch(help, -1) {
		if name := string(m[1]); name != "name" { // POD_NAME: no two replicas are one
			want = append(want, name)
		}
	}
	if len(want) < 25 {
		t.Fatalf("help lists %v only", want)
	}
	slices.Sort(want)

	var schema struct {
		Properties struct {
			Sidecar struct {
				Properties struct {
					Defaults struct{ Properties map[string]any }
				}
			}
		}
	}
	file, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err == nil {
		err = json.Unmarshal(file, &schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	inSchema := []string{"lock", "store"} // which are not for all pods, and store.url
	for name := range schema.Properties.Sidecar.Properties.Defaults.Properties {
		inSchema = append(inSchema, name)
	}
	slices.Sort(inSchema)
	if !slices.Equal(inSchema, want) {
		t.Errorf("the schema has\n%v, not\n%v", inSchema, want)
	}

	objects, err := chartRender(t)
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?s)- name: flags\n\s+expression: \|-\n\s+(\[.*?\])\n`)
	for _, kind := range []string{"MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"} {
		m := list.FindStringSubmatch(objects.kinds(kind).String())
		if m == nil {
			t.Fatalf("no flags in a %s", kind)
		}
		var flags []string
		if err := json.Unmarshal([]byte(m[1]), &flags); err != nil {
			t.Fatal(err)
		}
		slices.Sort(flags)
		if !slices.Equal(flags, want) {
			t.Errorf("the %s has\n%v, not\n%v", kind, flags, want)
		}
	}
}

// Alerts and the dashboard name metrics that are documented.
func TestChartMetrics(t *testing.T) {
	doc, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"templates/monitoring.yaml", "files/dashboard.json"} {
		file, err := os.ReadFile(filepath.Join(chartDir, name))
		if err != nil {
			t.Fatal(err)
		}
		metrics := regexp.MustCompile(`soloist_[a-z_]+`).FindAllString(string(file), -1)
		if len(metrics) < 5 {
			t.Errorf("%s names %v only", name, metrics)
		}
		for _, metric := range metrics {
			if !strings.Contains(string(doc), "`"+strings.TrimSuffix(metric, "_bucket")+"`") {
				t.Errorf("%s: docs/metrics.md has no %s", name, metric)
			}
		}
	}
}

// No value is without a comment, since there is no other reference.
func TestChartComments(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(file), "\n")
	resources := regexp.MustCompile(`^ +(requests|limits|cpu|memory|grafana_dashboard):`)
	for i, line := range lines {
		if line == "" || strings.HasPrefix(strings.TrimSpace(line), "#") || resources.MatchString(line) {
			continue
		}
		if i == 0 || !strings.HasPrefix(strings.TrimSpace(lines[i-1]), "#") {
			t.Errorf("values.yaml:%d: no comment above %q", i+1, line)
		}
	}
}
