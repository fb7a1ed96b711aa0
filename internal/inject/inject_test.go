package inject

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/soloist-dev/soloist/internal/config"
)

var update = flag.Bool("update", false, "rewrite testdata")

func options() Options {
	return Options{
		Image: "ghcr.io/soloist-dev/soloist:0.1.0", PullPolicy: corev1.PullIfNotPresent,
		Defaults:       map[string]string{"store": "redis://soloist-redis.soloist:6379", "lease-duration": "15s"},
		PasswordSecret: "soloist-store", Resources: DefaultResources(), RestartRules: true,
	}
}

func asking(config map[string]string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name = "pod-a"
	p.Annotations = map[string]string{Ask: "enabled", "other": "x"}
	for flag, v := range config {
		p.Annotations[Config+flag] = v
	}
	p.Spec.InitContainers = []corev1.Container{{Name: "migrate"}}
	p.Spec.Containers = []corev1.Container{
		{Name: "app", Env: []corev1.EnvVar{{Name: "ELECTOR_PATH", Value: "mine"}}}, {Name: "helper"},
	}
	return p
}

func TestPods(t *testing.T) {
	for name, conf := range map[string]map[string]string{
		"plain": {"lock": "city-ids"},
		"all": {
			"lock": "city-ids=3", "lease-duration": "20s", "on-lost": "exit", "readiness-gate": "true",
			"app-health-url": "http://localhost:8080/healthz", "log-format": "text",
		},
	} {
		p := asking(conf)
		if err := Pod(p, options()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, '\n')
		file := "testdata/" + name + ".json"
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s differs; if that is meant: go test ./internal/inject -update\n%s", file, got)
		}

		again := p.DeepCopy()
		if err := Pod(again, options()); err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%s: a second time changes it (%v)", name, err)
		}
	}
}

// A pod that did not ask is not looked at.
func TestOthers(t *testing.T) {
	for _, ask := range []string{"", "disabled", "true"} {
		p := asking(nil)
		p.Annotations[Ask] = ask
		p.Annotations[Config+"nonsense"] = "x"
		before := p.DeepCopy()
		if err := Pod(p, options()); err != nil || !reflect.DeepEqual(p, before) {
			t.Errorf("%q: changed (%v)", ask, err)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		conf map[string]string
		want string // "": nothing wrong
	}{
		{map[string]string{"lock": "team/nightly"}, ""},
		{map[string]string{"lock": "x", "lease-duration": "1m30s", "renew-deadline": "1m"}, ""},
		{nil, "config.soloist.dev/lock is required"},
		{map[string]string{"lock": "City"}, "a-z 0-9"},
		{map[string]string{"lock": "x", "lok": "y"}, "unknown annotation config.soloist.dev/lok"},
		{map[string]string{"lock": "x", "name": "y"}, "unknown annotation config.soloist.dev/name"},
		{map[string]string{"lock": "x", "readiness": "always"}, "must be one of store, leader"},
		{map[string]string{"lock": "x", "lease-duration": "15"}, "must be a duration"},
		{map[string]string{"lock": "x", "lease-duration": "5s"}, "renew-deadline × 1.02 + 10ms must be ≤ lease-duration"},
		{map[string]string{"lock": "x", "retry-period": "6s"}, "retry-period × 2"},
		{map[string]string{"lock": "x", "on-lost": "exit", "lease-duration": "13s"}, "4s or more"},
		{map[string]string{"lock": "x", "slots": "1001"}, "0 to 1000"},
		{map[string]string{"lock": "x", "slots": "-1"}, "0 to 1000"},
		{map[string]string{"lock": "x", "probe-address": ":9000"}, "must end in :4041"},
		{map[string]string{"lock": "x", "store": "redis://user:pass@r:6379"}, "must not hold a password"},
		{map[string]string{"lock": "x", "app-health-timeout": "3s"}, "app-health-timeout must be ≤"},
	} {
		p := asking(c.conf)
		before := p.DeepCopy()
		err := Pod(p, options())
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%v: %v", c.conf, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v: %v, want %q", c.conf, err, c.want)
		case err != nil && !reflect.DeepEqual(p, before):
			t.Errorf("%v: refused, and changed", c.conf)
		}
	}
	many := asking(map[string]string{"lok": "y", "readiness": "always", "slots": "x"})
	if err := Pod(many, options()); strings.Count(err.Error(), "soloist: ") != 4 {
		t.Errorf("not all problems at once: %v", err)
	}
}

// Every flag of elect can be set by an annotation, but the name, which is the pod's.
func TestFlagsAreThoseOfElect(t *testing.T) {
	ours := map[string]bool{"name": true, "help": true}
	for _, f := range Flags {
		ours[f] = true
	}
	for _, f := range config.FlagNames(config.Elect) {
		if !ours[f] {
			t.Errorf("flag %s can't be set by an annotation", f)
		}
		delete(ours, f)
	}
	for f := range ours {
		if f != "name" && f != "help" {
			t.Errorf("elect has no flag %s", f)
		}
	}
}

// What is put into a pod starts.
func TestArgumentsAreValid(t *testing.T) {
	p := asking(map[string]string{"lock": "city-ids", "lease-duration": "20s", "on-lost": "exit", "readiness-gate": "true"})
	if err := Pod(p, options()); err != nil {
		t.Fatal(err)
	}
	verb, rest, err := config.Verb(p.Spec.InitContainers[0].Args)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"POD_NAME=a", "POD_NAMESPACE=b", "POD_UID=c"}
	if _, warnings, err := config.Parse(verb, rest, env); err != nil || len(warnings) > 0 {
		t.Errorf("%v, %q", err, warnings)
	}
	if exitLost != config.ExitLost {
		t.Errorf("exit code %d, not %d", exitLost, config.ExitLost)
	}
}
