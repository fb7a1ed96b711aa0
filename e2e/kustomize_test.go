package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

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
