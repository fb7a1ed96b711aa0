package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
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

// chartTool returns the path of a program: that of its variable (HELM, KUBECTL), of PATH, or of the harness.
func chartTool(t *testing.T, name string) string {
	t.Helper()
	if path := os.Getenv(strings.ToUpper(name)); path != "" {
		return path
	}
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	home := os.Getenv("SOLOIST_E2E_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		home = filepath.Join(user, ".cache", "soloist-e2e")
	}
	path := filepath.Join(home, "bin", name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	message := fmt.Sprintf("no %s in PATH and none at %s: run e2e/node/node build, or set %s", name, path, strings.ToUpper(name))
	if os.Getenv("E2E") == "1" {
		t.Fatal(message)
	}
	t.Skip(message)
	return ""
}

// chartRun returns the output of a program, with what it says on stderr if it fails.
func chartRun(t *testing.T, tool string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), chartTool(t, tool), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", tool, strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out), err
}

// chartObjects are YAML documents, by source (for helm), kind, namespace and name.
type chartObjects map[string]string

var (
	chartSource    = regexp.MustCompile(`(?m)^# Source: \S+?/(templates/\S+)\n`)
	chartKind      = regexp.MustCompile(`(?m)^kind: (\S+)`)
	chartName      = regexp.MustCompile(`(?m)^  name: (\S+)`)
	chartNamespace = regexp.MustCompile(`(?m)^  namespace: (\S+)`)
)

func chartSplit(t *testing.T, yaml string) chartObjects {
	t.Helper()
	objects := make(chartObjects)
	for doc := range strings.SplitSeq("\n"+yaml, "\n---\n") {
		if !chartKind.MatchString(doc) {
			continue
		}
		var key []string
		for _, part := range []*regexp.Regexp{chartSource, chartKind, chartNamespace, chartName} {
			m := part.FindStringSubmatch(doc)
			if m == nil {
				m = []string{"", "-"}
			}
			key = append(key, m[1])
		}
		k := strings.Join(key, " ")
		if _, twice := objects[k]; twice {
			t.Errorf("%s is there twice", k)
		}
		objects[k] = strings.TrimSpace(doc) + "\n"
	}
	return objects
}

func (o chartObjects) String() string {
	var keys, docs []string
	for key := range o {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		docs = append(docs, o[key])
	}
	return strings.Join(docs, "---\n")
}

// kinds returns what is of one of these kinds.
func (o chartObjects) kinds(kinds ...string) chartObjects {
	some := make(chartObjects)
	for key, doc := range o {
		if slices.Contains(kinds, chartKind.FindStringSubmatch(doc)[1]) {
			some[key] = doc
		}
	}
	return some
}

// chartRender renders the chart for Kubernetes 1.36 with more flags of helm template, those of Kubernetes included.
func chartRender(t *testing.T, args ...string) (chartObjects, error) {
	t.Helper()
	args = append([]string{"template", "soloist", chartDir, "--namespace=soloist-system", "--kube-version=1.36.0"}, args...)
	out, err := chartRun(t, "helm", args...)
	if err != nil {
		return nil, err
	}
	return chartSplit(t, out), nil
}

func chartValues(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chartDir, "testdata", "*.values.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".values.yaml"))
	}
	return names
}

func chartFile(name string) string { return filepath.Join(chartDir, "testdata", name) }

// chartGolden compares got with a file, or writes it.
func chartGolden(t *testing.T, file, got string) {
	t.Helper()
	if *chartUpdate {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: write it with -update", err)
	}
	if string(want) == got {
		return
	}
	path := filepath.Join(t.TempDir(), "got.yaml")
	if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
	diff, _ := exec.CommandContext(t.Context(), "diff", "-u", file, path).Output() // it exits with 1
	t.Errorf("%s differs; if that is meant: -update\n%s", file, diff)
}

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

// chartNormal brings YAML into kustomize's form, with sorted keys and without comments, and takes away the labels that
// name a release.
func chartNormal(t *testing.T, objects chartObjects) chartObjects {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"all.yaml": objects.String(), "kustomization.yaml": "resources: [all.yaml]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return chartSplit(t, chartReleased.ReplaceAllString(chartKustomize(t, dir), ""))
}

var chartReleased = regexp.MustCompile(`(?m)^    (helm\.sh/chart|app\.kubernetes\.io/(instance|version|managed-by)): .*\n`)

func chartKustomize(t *testing.T, dir string) string {
	t.Helper()
	out, err := chartRun(t, "kubectl", "kustomize", dir)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// chartOverlay returns a directory with a kustomization of the given text, in which CONFIG is config/.
func chartOverlay(t *testing.T, text string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	config, err := filepath.Abs(configDir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err == nil {
		config, err = filepath.Rel(dir, config) // kustomize takes no absolute path
	}
	if err != nil {
		t.Fatal(err)
	}
	write := map[string]string{"kustomization.yaml": strings.ReplaceAll(text, "CONFIG", config)}
	for name, content := range files {
		write[name] = content
	}
	for name, content := range write {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// config/ says what the chart says. With -update it is made from the chart.
func TestKustomize(t *testing.T) {
	const made = "# Made from charts/soloist by: cd e2e && go test -run TestKustomize -update .\n"
	rendered, err := chartRender(t, "--set=workloads[0].namespace=shop,workloads[0].serviceAccounts={default}", "--set=demo.enabled=true")
	if err != nil {
		t.Fatal(err)
	}
	objects := func(template string, kinds ...string) chartObjects {
		some := make(chartObjects)
		for key, doc := range rendered.kinds(kinds...) {
			if strings.HasPrefix(key, "templates/"+template+" ") {
				some[key] = doc
			}
		}
		return chartNormal(t, some)
	}
	policies := []string{
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	}
	equal := func(t *testing.T, got, want chartObjects) {
		t.Helper()
		if len(want) == 0 {
			t.Fatal("the chart has nothing of the kind")
		}
		file := filepath.Join(t.TempDir(), "chart.yaml")
		if err := os.WriteFile(file, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() {
			diff := exec.CommandContext(t.Context(), "diff", "-u", file, "-")
			diff.Stdin = strings.NewReader(got.String())
			out, _ := diff.Output() // it exits with 1
			t.Errorf("config/ differs from the chart; if the chart is right: -update\n%s", out)
		}
	}
	update := func(t *testing.T, file, content string) {
		t.Helper()
		if *chartUpdate {
			if err := os.WriteFile(filepath.Join(configDir, file), []byte(made+content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}

	t.Run("policies", func(t *testing.T) {
		want := objects("policies.yaml", policies...)
		update(t, "policies/policies.yaml", want.String())
		equal(t, chartSplit(t, chartKustomize(t, configDir+"/policies")), want)
	})
	t.Run("injector", func(t *testing.T) {
		want := objects("injector-policy.yaml", policies...)
		update(t, "injector/injector.yaml", want.String())
		equal(t, chartSplit(t, chartKustomize(t, configDir+"/injector")), want)
	})
	t.Run("rbac", func(t *testing.T) {
		want := make(chartObjects)
		for key, doc := range objects("rbac.yaml", "Role", "RoleBinding") {
			if strings.Contains(key, " shop ") {
				want[key] = doc
			}
		}
		update(t, "rbac/rbac.yaml", strings.ReplaceAll(strings.ReplaceAll(want.String(),
			"  name: soloist-sidecar\n  namespace: shop\n", "  name: soloist-sidecar\n"), "namespace: shop", "namespace: default"))
		dir := chartOverlay(t, "namespace: shop\nresources: [CONFIG/rbac]\n", nil)
		equal(t, chartSplit(t, chartKustomize(t, dir)), want)
	})
	t.Run("component", func(t *testing.T) {
		var demo string
		for key, doc := range objects("demo.yaml", "Deployment") {
			if strings.HasSuffix(key, " city-ids") {
				demo = doc
			}
		}
		// The component learns from annotations what the chart writes into arguments.
		want := chartSidecarArgs.ReplaceAllString(chartSidecar(t, demo), "${1}env:\n"+
			"${1}- name: SOLOIST_LOCK\n${1}  valueFrom:\n${1}    fieldRef:\n"+
			"${1}      fieldPath: metadata.annotations['config.soloist.dev/lock']\n"+
			"${1}- name: SOLOIST_STORE\n${1}  valueFrom:\n${1}    fieldRef:\n"+
			"${1}      fieldPath: metadata.annotations['config.soloist.dev/store']\n")
		update(t, "components/sidecar/sidecar.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: any\n"+
			"spec:\n  template:\n    spec:\n"+want)
		const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: %s\n  labels: {soloist.dev/sidecar: %s}\n" +
			"spec:\n  template:\n    spec:\n      initContainers: [{name: other, image: other}]\n      containers: [{name: app, image: app}]\n"
		dir := chartOverlay(t, "resources: [with.yaml, without.yaml]\ncomponents: [CONFIG/components/sidecar]\n", map[string]string{
			"with.yaml":    fmt.Sprintf(deployment, "with", "enabled"),
			"without.yaml": fmt.Sprintf(deployment, "without", "disabled"),
		})
		for key, doc := range chartSplit(t, chartKustomize(t, dir)) {
			switch {
			case strings.HasSuffix(key, " without"):
				if strings.Contains(doc, "name: soloist\n") {
					t.Errorf("did not ask for a sidecar:\n%s", doc)
				}
			case !strings.Contains(doc, strings.TrimSuffix(want, "\n")+"\n      - image: other\n        name: other\n"):
				t.Errorf("want first\n%sgot\n%s", want, doc)
			}
		}
	})
	t.Run("samples", func(t *testing.T) {
		chartGolden(t, chartFile("kustomize-samples.golden.yaml"), chartSplit(t, chartKustomize(t, configDir+"/samples")).String())
	})
}

var chartSidecarArgs = regexp.MustCompile(`(?m)^ +- --lock=.*\n +- --store=.*\n( +)env:\n`)

// chartSidecar returns the init containers of a Deployment in kustomize's form.
func chartSidecar(t *testing.T, doc string) string {
	t.Helper()
	var block []string
	for line := range strings.SplitAfterSeq(doc, "\n") {
		switch {
		case line == "      initContainers:\n":
			block = []string{line}
		case len(block) > 0 && !strings.HasPrefix(line, "       ") && !strings.HasPrefix(line, "      -"):
			return strings.Join(block, "")
		case len(block) > 0:
			block = append(block, line)
		}
	}
	t.Fatalf("no init containers in\n%s", doc)
	return ""
}
