package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func flagNames(verb string) []string {
	var names []string
	flagsOf(verb).VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// serviceVariables makes what Kubernetes makes of a Service (see makeEnvVariableName,
// FromServices and makeLinkVariables in its pkg/kubelet/envvars).
func serviceVariables(service string, port string, portNames ...string) []string {
	p := strings.ToUpper(strings.ReplaceAll(service, "-", "_"))
	names := []string{p + "_SERVICE_HOST", p + "_SERVICE_PORT", p + "_PORT"}
	for _, n := range portNames {
		names = append(names, p+"_SERVICE_PORT_"+strings.ToUpper(strings.ReplaceAll(n, "-", "_")))
	}
	for _, proto := range []string{"TCP", "UDP", "SCTP"} {
		link := p + "_PORT_" + port + "_" + proto
		names = append(names, link, link+"_PROTO", link+"_PORT", link+"_ADDR")
	}
	return names
}

// No Service, whatever its name, makes a variable that sets a flag or secret. Its name is
// free, so what counts is how its variables end.
func TestNoServiceSetsAFlag(t *testing.T) {
	variables := []string{passwordEnv}
	for _, v := range verbs {
		for _, flag := range flagNames(v.name) {
			if name := EnvName(flag); name != "" {
				variables = append(variables, name)
			}
		}
	}
	for _, name := range variables {
		words := strings.Split(name, "_")
		last := func(i int) string { return words[max(len(words)-i, 0)] }
		switch {
		case last(1) == "PORT",
			last(2) == "SERVICE" && last(1) == "HOST",
			strings.Contains(name, "_SERVICE_PORT_"),
			slices.Contains(words, "PORT") && slices.ContainsFunc(words, func(w string) bool { return strings.Trim(w, "0123456789") == "" }):
			t.Errorf("%s could be made from a Service", name)
		}
		if serviceVariable.MatchString(name) {
			t.Errorf("%s is ignored as if it were made from a Service", name)
		}
	}
}

func TestEnvironment(t *testing.T) {
	env := slices.Clone(least)
	env = append(env, "SOLOIST_URL=x", "SOLOIST_HELD=x", "SOLOIST_FENCE=x", "SOLOIST_TOKEN=x", "SOLOIST_SLOT=x", "PATH=x",
		"SOLOIST=x", "=SOLOIST_X=1", "SOLOIST_STORE_PASSWORD=", "SOLOIST_TIMEOUT=of another verb", "SOLOIST_HOLD_OFF=1s")
	for _, service := range []string{"soloist", "soloist-redis", "soloist-store", "soloist-lock", "soloist-http-address"} {
		for _, name := range serviceVariables(service, "6379", "redis", "http-web") {
			env = append(env, name+"=tcp://10.0.0.1:6379")
		}
	}
	if c := mustParse(t, Elect, nil, env); c.Elections[0].Lock != "city-ids" || c.HTTP.Address != "localhost:4040" {
		t.Errorf("a Service's variables were read: %+v", c)
	}

	_, warnings, err := Parse(Elect, nil, append(env,
		"SOLOIST_LEASE_DURATON=5s", "SOLOIST_DONE=true", "SOLOIST_HELP=true", "SOLOIST_PORT_A=x", "SOLOIST_ZZZ=x"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"unknown variable SOLOIST_DONE is ignored",
		"unknown variable SOLOIST_HELP is ignored",
		"unknown variable SOLOIST_LEASE_DURATON is ignored; did you mean SOLOIST_LEASE_DURATION?",
		"unknown variable SOLOIST_PORT_A is ignored",
		"unknown variable SOLOIST_ZZZ is ignored",
	}
	if !slices.Equal(warnings, want) {
		t.Errorf("warnings:\n%s\nwant:\n%s", strings.Join(warnings, "\n"), strings.Join(want, "\n"))
	}
}

func TestWarningLoopbackProbes(t *testing.T) {
	env := append([]string{"KUBERNETES_SERVICE_HOST=10.0.0.1", "SOLOIST_PROBE_ADDRESS=localhost:4041"}, least...)
	_, warnings, err := Parse(Elect, nil, env)
	want := "--probe-address (SOLOIST_PROBE_ADDRESS) is a loopback address, which the kubelet can't reach: probes will fail"
	if err != nil || !slices.Equal(warnings, []string{want}) {
		t.Errorf("%q %v, want %q", warnings, err, want)
	}
	mustParse(t, Elect, nil, env[1:]) // not in a cluster
	mustParse(t, Elect, []string{"--probe-address="}, env)
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"abc", "abd", 1}, {"abcd", "acd", 1}, {"ab", "ba", 2}, {"kitten", "sitting", 3}, {"a", "abcdef", 4}} {
		if got := distance(tt.a, tt.b, 4); got != tt.want {
			t.Errorf("%q %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
