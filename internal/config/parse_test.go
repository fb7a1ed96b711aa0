package config

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-dev/soloist/internal/lease"
)

// least is an environment that elect runs with.
var least = []string{"SOLOIST_STORE=redis://r:6379", "SOLOIST_LOCK=city-ids", "SOLOIST_NAME=pod-a"}

func mustParse(t *testing.T, verb string, args, env []string) *Config {
	t.Helper()
	c, warnings, err := Parse(verb, args, env)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) > 0 {
		t.Errorf("warnings: %q", warnings)
	}
	return c
}

func TestDefaults(t *testing.T) {
	got := mustParse(t, Elect, []string{"--store=redis://r", "--lock=city-ids"}, []string{"POD_NAME=pod-a"})
	want := &Config{
		Verb:      Elect,
		Elections: []Election{{Lock: "city-ids"}},
		Identity:  Identity{Name: "pod-a", Pod: "pod-a"},
		Timing:    lease.Timing{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second},
		Store: Store{
			URLs: []StoreURL{NewStoreURL("redis://r")}, KeyPrefix: "soloist", Check: CheckStrict, DelayedRestart: DelayAuto,
		},
		HTTP:  HTTP{Address: "localhost:4040"},
		Probe: Probe{Address: ":4041", Readiness: ReadyStore},
		App: App{
			HealthPeriod: 2 * time.Second, HealthTimeout: time.Second, HealthFailures: 3, OnLost: LostNone,
		},
		Pod: Pod{
			Annotate: AnnotateAuto, FastFailover: FailoverOff, TerminationMessage: "/dev/termination-log",
		},
		Log:     Log{Level: "info", Format: LogJSON},
		Request: Request{Timeout: 5 * time.Second},
		Jobs:    Jobs{Max: 1000},
		Job:     Job{Lease: 30 * time.Second},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// everyFlag has a value of each flag that is not its default, and of what it becomes.
var everyFlag = []struct {
	verb, flag, value string
	got               func(*Config) any
	want              any
}{
	{Elect, "lock", "b=3", func(c *Config) any { return c.Elections }, []Election{{"b", 3}}},
	{Elect, "slots", "2", func(c *Config) any { return c.Elections }, []Election{{"city-ids", 2}}},
	{Elect, "name", "pod-b", func(c *Config) any { return c.Identity.Name }, "pod-b"},
	{Elect, "lease-duration", "20s", func(c *Config) any { return c.Timing.LeaseDuration }, 20 * time.Second},
	{Elect, "renew-deadline", "9s", func(c *Config) any { return c.Timing.RenewDeadline }, 9 * time.Second},
	{Elect, "retry-period", "1s", func(c *Config) any { return c.Timing.RetryPeriod }, time.Second},
	{Elect, "store", "unix:///run/r.sock", func(c *Config) any { return c.Store.URLs[0].Reveal() }, "unix:///run/r.sock"},
	{Elect, "store-username", "u", func(c *Config) any { return c.Store.Username }, "u"},
	{Elect, "store-password-file", "/p", func(c *Config) any { return c.Store.PasswordFile }, "/p"},
	{Elect, "tls-ca-file", "/ca", func(c *Config) any { return c.Store.TLS.CA }, "/ca"},
	{Elect, "tls-cert-file", "/c", func(c *Config) any { return c.Store.TLS.Cert }, "/c"},
	{Elect, "tls-key-file", "/k", func(c *Config) any { return c.Store.TLS.Key }, "/k"},
	{Elect, "tls-server-name", "r", func(c *Config) any { return c.Store.TLS.ServerName }, "r"},
	{Elect, "key-prefix", "x", func(c *Config) any { return c.Store.KeyPrefix }, "x"},
	{Elect, "store-check", "warn", func(c *Config) any { return c.Store.Check }, CheckWarn},
	{Elect, "delayed-restart", "off", func(c *Config) any { return c.Store.DelayedRestart }, DelayOff},
	{Elect, "http-address", "[::1]:0", func(c *Config) any { return c.HTTP.Address }, "[::1]:0"},
	{Elect, "probe-address", "", func(c *Config) any { return c.Probe.Address }, ""},
	{Elect, "readiness", "leader", func(c *Config) any { return c.Probe.Readiness }, ReadyLeader},
	{Elect, "app-health-url", "http://localhost/h", func(c *Config) any { return c.App.HealthURL }, "http://localhost/h"},
	{Elect, "app-health-period", "3s", func(c *Config) any { return c.App.HealthPeriod }, 3 * time.Second},
	{Elect, "app-health-timeout", "20ms", func(c *Config) any { return c.App.HealthTimeout }, 20 * time.Millisecond},
	{Elect, "app-health-failures", "1", func(c *Config) any { return c.App.HealthFailures }, 1},
	{Elect, "require-heartbeat", "1s", func(c *Config) any { return c.App.Heartbeat }, time.Second},
	{Elect, "drain-timeout", "30s", func(c *Config) any { return c.App.DrainTimeout }, 30 * time.Second},
	{Elect, "on-lost", "exit", func(c *Config) any { return c.App.OnLost }, LostExit},
	{Elect, "fast-failover", "pod", func(c *Config) any { return c.Pod.FastFailover }, FailoverPod},
	{Elect, "termination-message-path", "/tmp/m", func(c *Config) any { return c.Pod.TerminationMessage }, "/tmp/m"},
	{Elect, "annotate", "off", func(c *Config) any { return c.Pod.Annotate }, AnnotateOff},
	{Elect, "readiness-gate", "true", func(c *Config) any { return c.Pod.ReadinessGate }, true},
	{Elect, "log-level", "debug", func(c *Config) any { return c.Log.Level }, "debug"},
	{Elect, "log-format", "text", func(c *Config) any { return c.Log.Format }, LogText},
	{Leader, "lock", "b=3", func(c *Config) any { return c.Elections[0].Lock }, "b"},
	{Leader, "http-address", "127.0.0.1:1", func(c *Config) any { return c.HTTP.Address }, "127.0.0.1:1"},
	{Leader, "timeout", "2s", func(c *Config) any { return c.Request.Timeout }, 2 * time.Second},
	{Status, "output", "json", func(c *Config) any { return c.Output }, "json"},
	{Resign, "hold-off", "0", func(c *Config) any { return *c.Request.HoldOff }, time.Duration(0)},
	{Resign, "done", "true", func(c *Config) any { return c.Request.Done }, true},
	{Resign, "fence", "1763683200123456", func(c *Config) any { return c.Request.Fence }, uint64(1763683200123456)},
	{Elect, "max-locks", "7", func(c *Config) any { return c.Jobs.Max }, 7},
	{Elect, "dapr-address", "localhost:3500", func(c *Config) any { return c.Jobs.Dapr }, "localhost:3500"},
	{Elect, "jobs-only", "true", func(c *Config) any { return c.Jobs.Only }, true},
	{Run, "via", "http://127.0.0.1:4040", func(c *Config) any { return c.Job.Via }, "http://127.0.0.1:4040"},
	{Run, "wait", "10s", func(c *Config) any { return c.Job.Wait }, 10 * time.Second},
	{Run, "lease", "1s", func(c *Config) any { return c.Job.Lease }, time.Second},
	{Run, "slots", "3", func(c *Config) any { return c.Elections[0].Slots }, 3},
	{Run, "once", "today", func(c *Config) any { return c.Job.Once }, "today"},
	{Run, "keep", "1h", func(c *Config) any { return c.Job.Keep }, time.Hour},
	{Run, "at-least-for", "1m", func(c *Config) any { return c.Job.AtLeast }, time.Minute},
	{Run, "at-most-for", "1h", func(c *Config) any { return c.Job.AtMost }, time.Hour},
	{Run, "skip-ok", "true", func(c *Config) any { return c.Job.SkipOK }, true},
	{Run, "log-level", "debug", func(c *Config) any { return c.Log.Level }, "debug"},
	{Locks, "output", "json", func(c *Config) any { return c.Output }, "json"},
	{UnlockVerb, "force", "true", func(c *Config) any { return c.Unlock.Force }, true},
	{UnlockVerb, "yes", "true", func(c *Config) any { return c.Unlock.Yes }, true},
	{Version, "output", "json", func(c *Config) any { return c.Output }, "json"},
}

// needs are variables without which some of everyFlag do not validate.
func needs(flag string) []string {
	switch flag {
	case "store-username":
		return []string{"SOLOIST_STORE_PASSWORD=hunter2"}
	case "tls-ca-file", "tls-server-name":
		return []string{"SOLOIST_STORE=rediss://r"}
	case "tls-cert-file":
		return []string{"SOLOIST_STORE=rediss://r", "SOLOIST_TLS_KEY_FILE=/key"}
	case "tls-key-file":
		return []string{"SOLOIST_STORE=rediss://r", "SOLOIST_TLS_CERT_FILE=/cert"}
	}
	if flag == "keep" {
		return []string{"SOLOIST_ONCE=today"}
	}
	return nil
}

// besides returns more arguments that some need, and env without what they do not go with.
func besides(verb, flag string, env []string) ([]string, []string) {
	switch {
	case flag == "jobs-only":
		env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "SOLOIST_LOCK=") })
	case verb == Run:
		return []string{"--", "true"}, env
	case flag == "force":
		return []string{"--yes"}, env
	}
	return nil, env
}

func TestEveryFlagAndVariable(t *testing.T) {
	for _, tt := range everyFlag {
		t.Run(tt.verb+" "+tt.flag, func(t *testing.T) {
			rest, env := besides(tt.verb, tt.flag, slices.Concat(needs(tt.flag), least))
			check := func(how string, args, env []string) {
				if got := tt.got(mustParse(t, tt.verb, append(args, rest...), env)); !reflect.DeepEqual(got, tt.want) {
					t.Errorf("by %s: got %v, want %v", how, got, tt.want)
				}
			}
			check("flag", []string{"--" + tt.flag + "=" + tt.value}, env)
			name := EnvName(tt.flag)
			if name == "" {
				return
			}
			check("variable", nil, append([]string{name + "=" + tt.value}, env...))
			// The flag wins, also over a value that would not pass.
			other := name + "=redis://other"
			if f := flagsOf(tt.verb).Lookup(tt.flag); f.Value.Type() == "stringArray" || f.Value.Type() == "string" {
				check("flag over variable", []string{"--" + tt.flag, tt.value}, append([]string{other}, env...))
			}
		})
	}
}

func TestEveryFlagIsTested(t *testing.T) {
	tested := map[string]bool{"help": true}
	for _, tt := range everyFlag {
		tested[tt.flag] = true
	}
	for _, v := range verbs {
		for _, name := range flagNames(v.name) {
			if !tested[name] {
				t.Errorf("everyFlag lacks --%s of %s", name, v.name)
			}
		}
	}
}

func TestRepeatedFlags(t *testing.T) {
	env := []string{"SOLOIST_STORE= redis://r/?db=1 ", "SOLOIST_LOCK=a  b=20\tc/d=0\n", "SOLOIST_SLOTS=4", "SOLOIST_NAME=n"}
	c := mustParse(t, Elect, nil, env)
	if want := []Election{{"a", 4}, {"b", 20}, {"c/d", 0}}; !slices.Equal(c.Elections, want) {
		t.Errorf("variable: %v, want %v", c.Elections, want)
	}
	c = mustParse(t, Elect, []string{"--lock", "x", "--lock=y=2"}, env)
	if want := []Election{{"x", 4}, {"y", 2}}; !slices.Equal(c.Elections, want) {
		t.Errorf("flags: %v, want %v", c.Elections, want)
	}
}

func TestIdentity(t *testing.T) {
	env := []string{
		"SOLOIST_STORE=redis://r", "SOLOIST_LOCK=a",
		"POD_NAME=pod-a", "POD_NAMESPACE=ns", "POD_UID=u-1", "NODE_NAME=node", "POD_NAME=second",
	}
	want := Identity{Name: "pod-a", Pod: "pod-a", Namespace: "ns", PodUID: "u-1", Node: "node"}
	if got := mustParse(t, Elect, nil, env).Identity; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	want.Name = "given"
	if got := mustParse(t, Elect, []string{"--name=given"}, env).Identity; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if got := mustParse(t, Elect, nil, env[:2]).Identity; got != (Identity{Name: host}) {
		t.Errorf("got %+v, want the hostname %q", got, host)
	}
}

func TestVerb(t *testing.T) {
	tests := []struct {
		args string
		verb string
		rest string
	}{
		{"", Elect, ""},
		{"elect", Elect, ""},
		{"--lock a", Elect, "--lock a"},
		{"elect --help", Elect, "--help"},
		{"leader --timeout 1s", Leader, "--timeout 1s"},
		{"help resign", Resign, "--help"},
		{"--version", Version, ""},
	}
	for _, tt := range tests {
		verb, rest, err := Verb(strings.Fields(tt.args))
		if err != nil || verb != tt.verb || strings.Join(rest, " ") != tt.rest {
			t.Errorf("%q: %q %q %v, want %q %q", tt.args, verb, rest, err, tt.verb, tt.rest)
		}
	}
	for _, args := range []string{"help", "--help", "-h"} {
		_, _, err := Verb([]string{args})
		if help := new(HelpError); !errors.As(err, &help) || help.Text != overview() {
			t.Errorf("%s: %v, want the overview", args, err)
		}
	}
	for _, args := range []string{"elekt", "help elekt"} {
		_, _, err := Verb(strings.Fields(args))
		if want := `unknown verb "elekt": must be elect, leader, status, resign, wait, drain, check-injection, run, locks, unlock, install or version`; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	if _, _, err := Parse("elekt", nil, nil); err == nil {
		t.Error("Parse takes an unknown verb")
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"localhost:4040": "127.0.0.1:4040 [::1]:4040",
		"127.0.0.2:80":   "127.0.0.2:80",
		"[::1]:80":       "[::1]:80",
	} {
		if got := strings.Join(HTTP{Address: address}.Addresses(), " "); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
