package config

import (
	"io"

	"github.com/spf13/pflag"
)

// Annotations of a flag, for help.
const (
	groupKey   = "group"
	metaKey    = "meta"
	defaultKey = "default" // what to show in place of the value
)

var shorthands = map[string]string{"help": "h", "output": "o"}

// noVariable lists the flags that state a fact about one request.
var noVariable = []string{"help", "done", "fence", "force", "yes"}

// raw is what flags set that is not a field of Config as it stands.
type raw struct {
	stores []string
	locks  []string
	slots  int
	help   bool
}

// declare puts the flags of c.Verb on fs, which then set c and r, whose values are their
// defaults. What can't be parsed goes to bad.
func declare(fs *pflag.FlagSet, c *Config, r *raw, bad func(error)) {
	fs.SortFlags = false
	fs.Usage = func() {}
	fs.SetOutput(io.Discard)
	d := &declarer{fs: fs, bad: bad}
	switch c.Verb {
	case Elect:
		d.elections(c, r)
		d.timing(c)
		d.store(&c.Store, r)
		d.trust(&c.Store)
		d.running(c)
		d.jobs(&c.Jobs)
		d.app(&c.App)
		d.pod(&c.Pod)
		d.log(&c.Log)
	case Leader:
		d.ask(c, r)
	case Status:
		d.group = "Request"
		d.list("lock", "NAME", "required", &r.locks, "A lock to show. Repeat it for several.")
		d.output(c, "table|json")
		d.timeout(c)
		d.store(&c.Store, r)
	case Resign:
		d.ask(c, r)
		d.add("done", "", "false", boolValue(&c.Request.Done),
			"The app has finished: hand over now, not when the last validity handed out has run out.")
		d.add("hold-off", "DURATION", "until another has led", optionalValue(&c.Request.HoldOff),
			"How long this pod then stays out of the race. The default lasts at most a lease duration.")
		d.add("fence", "N", "any", fenceValue(&c.Request.Fence),
			"End only the term with this fence, so that a late retry ends no later one.")
	case Wait, Drain:
		d.group = "Request"
		d.address(c, "Where the sidecar listens for the app.")
		d.timeout(c)
	case Check:
		d.group = "Request"
		d.timeout(c)
	case Run:
		fs.SetInterspersed(false) // from CMD on nothing is ours
		d.job(c, r)
		d.store(&c.Store, r)
		d.trust(&c.Store)
		d.log(&c.Log)
	case Locks:
		d.group = "Request"
		d.output(c, "table|json")
		d.timeout(c)
		d.store(&c.Store, r)
	case UnlockVerb:
		d.group = "Request"
		d.list("lock", "NAME", "required", &r.locks, "A lock to revoke. Repeat it for several.")
		d.add("force", "", "false", boolValue(&c.Unlock.Force),
			"Delete what is held at once. This breaks the promise that one holds; needs --yes.")
		d.add("yes", "", "false", boolValue(&c.Unlock.Yes), "The holder's work has ended, or its writes are fenced.")
		d.timeout(c)
		d.store(&c.Store, r)
	case Install:
	case Version:
		d.group = "Output"
		d.output(c, "text|json")
	}
	d.add("help", "", "", boolValue(&r.help), "Print this help.")
}

// declarer adds flags to fs.
type declarer struct {
	fs    *pflag.FlagSet
	group string
	bad   func(error)
}

// add declares one flag. shown replaces the default in help.
func (d *declarer) add(name, meta, shown string, v *value, usage string) {
	v.flag, v.bad = name, d.bad
	f := &pflag.Flag{
		Name: name, Shorthand: shorthands[name], Usage: usage, Value: v, DefValue: v.String(),
		Annotations: map[string][]string{groupKey: {d.group}, metaKey: {meta}},
	}
	if shown != "" {
		f.Annotations[defaultKey] = []string{shown}
	}
	if v.kind == "bool" {
		f.NoOptDefVal = "true"
	}
	d.fs.AddFlag(f)
}

func (d *declarer) list(name, meta, shown string, p *[]string, usage string) {
	d.add(name, meta, shown, listValue(p), usage)
}

func (d *declarer) elections(c *Config, r *raw) {
	d.group = "Elections"
	d.list("lock", "NAME[=SLOTS]", "required without --jobs-only", &r.locks,
		"A lock to compete for: 1 to 200 of a-z 0-9 - . _ / of which the first and the last are a letter or "+
			"digit. With =SLOTS as many pods lead at once, each with a slot number of its own. Repeat it for several.")
	d.add("slots", "N", "0", intValue(&r.slots),
		"Slots of each --lock without =SLOTS, up to 1000. 0 is a plain lock, which can't be mixed with a slotted "+
			"one of the same name.")
	d.add("name", "NAME", "POD_NAME, else hostname", textValue(&c.Identity.Name),
		"Who competes, as people and the other pods see it. Give each replica another.")
}

func (d *declarer) timing(c *Config) {
	d.group = "Timing"
	d.add("lease-duration", "DURATION", "", durationValue(&c.Timing.LeaseDuration),
		"Others may take over this long after the last renewal that the store saw. Give all replicas the same.")
	d.add("renew-deadline", "DURATION", "", durationValue(&c.Timing.RenewDeadline),
		"A leader that has not renewed for this long stops leading. At most lease-duration / 1.02 - 10ms. What lies "+
			"between is the time that the app has to stop.")
	d.add("retry-period", "DURATION", "", durationValue(&c.Timing.RetryPeriod),
		"How often a leader renews, and how long it waits for one answer. At most half of the renew deadline.")
}

func (d *declarer) store(s *Store, r *raw) {
	d.group = "Store"
	d.list("store", "URL", "kubernetes:// in a cluster", &r.stores,
		"Where the locks are kept: redis://HOST:6379/0, rediss:// for TLS, unix:///PATH, redis+sentinel://HOST:26379,HOST:26379/MASTER, "+
			"redis+cluster://HOST:6379,HOST:6379, or kubernetes://NAMESPACE for Lease objects (the namespace is the pod's by default). "+
			"A password may stand in it only in SOLOIST_STORE.")
	d.add("store-username", "NAME", "the URL's, if any", textValue(&s.Username), "The user at the store. It needs a password.")
	d.add("store-password-file", "FILE", "none", textValue(&s.PasswordFile),
		"A file with the password. It is read for every new connection, so that the password can change.")
	d.add("tls-ca-file", "FILE", "the system's", textValue(&s.TLS.CA),
		"PEM certificates to trust in place of the system's. Read for every new connection.")
	d.add("tls-cert-file", "FILE", "none", textValue(&s.TLS.Cert),
		"This client's certificate, PEM. Read for every new connection. Needs --tls-key-file.")
	d.add("tls-key-file", "FILE", "none", textValue(&s.TLS.Key), "Its key, PEM. Needs --tls-cert-file.")
	d.add("tls-server-name", "NAME", "the URL's host", textValue(&s.TLS.ServerName),
		"The name that the store's certificate must be for.")
	d.add("key-prefix", "TEXT", "", textValue(&s.KeyPrefix),
		"Begins every key and channel in the store. Sidecars with different prefixes do not see each other.")
}

// trust declares what matters to those who hold leases.
func (d *declarer) trust(s *Store) {
	d.add("store-check", "strict|warn", "", textValue(&s.Check),
		"What to do about a store that may evict locks: strict does not compete there, warn logs it.")
	d.add("delayed-restart", "auto|on|off", "", textValue(&s.DelayedRestart),
		"Whether to wait for a lease duration after the store has restarted, because it may have forgotten who "+
			"holds the locks. auto waits unless it has an append-only file.")
}

func (d *declarer) running(c *Config) {
	d.group = "Interfaces"
	d.address(c, "Where the app asks. localhost is both loopback addresses; other hosts are refused, because who "+
		"reaches it may resign and unlock.")
	d.add("probe-address", "HOST:PORT", "", textValue(&c.Probe.Address),
		"Where the kubelet asks /livez and /readyz, and Prometheus /metrics. Without a host: all addresses. "+
			"Empty: not at all.")
	d.add("readiness", "store|leader", "", textValue(&c.Probe.Readiness),
		"When /readyz is 200: once the store has answered, or on the leader alone. A Deployment's rollout waits for "+
			"ready pods: with leader it may wait for ever.")
}

func (d *declarer) jobs(j *Jobs) {
	d.group = "Job locks"
	d.add("max-locks", "N", "", intValue(&j.Max), "How many locks the app may hold and wait for at a time. 0: none at all.")
	d.add("dapr-address", "HOST:PORT", "off", textValue(&j.Dapr),
		"Where apps written for Dapr's lock API find it, such as localhost:3500.")
	d.add("jobs-only", "", "false", boolValue(&j.Only), "Compete for nothing; keep locks for the app alone.")
}

func (d *declarer) app(a *App) {
	d.group = "App"
	d.add("app-health-url", "URL", "off", textValue(&a.HealthURL),
		"Ask the app here whether it is well (2xx). An app that is not does not lead.")
	d.add("app-health-period", "DURATION", "", durationValue(&a.HealthPeriod), "How often to ask, 100ms or more.")
	d.add("app-health-timeout", "DURATION", "", durationValue(&a.HealthTimeout),
		"How long to wait for an answer. At most the period.")
	d.add("app-health-failures", "N", "", intValue(&a.HealthFailures),
		"As many failures in a row make the app unhealthy; one success makes it well.")
	d.add("require-heartbeat", "DURATION", "off", durationValue(&a.Heartbeat),
		"A term ends when the app has sent no POST /heartbeat for this long, 1s or more.")
	d.add("drain-timeout", "DURATION", "", durationValue(&a.DrainTimeout),
		"How long after SIGTERM the app may go on leading until it says that it is done. A native sidecar gets "+
			"SIGTERM when the app has ended, so 0 is right for it.")
	d.add("on-lost", "none|exit", "", textValue(&a.OnLost),
		"After a term that was lost: compete again, or exit with 42, so that the pod's containers restart. exit "+
			"needs lease-duration - renew-deadline of 4s or more.")
}

func (d *declarer) pod(p *Pod) {
	d.group = "Pod"
	d.add("annotate", "auto|off", "", textValue(&p.Annotate),
		"Show who leads on this pod: the label soloist.dev/role, annotations, and Events. auto does so in a cluster, if "+
			"the pod is known; it needs leave to patch pods and create events. Nobody's lead depends on it.")
	d.add("fast-failover", "off|pod", "", textValue(&p.FastFailover),
		"pod: the first in line takes over as soon as the API server shows that all containers of the leader's pod have "+
			"ended, instead of when the lease does. It needs leave to get and watch pods; all candidates should have it on.")
	d.add("termination-message-path", "FILE", "", textValue(&p.TerminationMessage),
		"Where the terms of this container are noted, as proof of their end for fast failover; left alone if it does not "+
			"exist.")
	d.add("readiness-gate", "", "false", boolValue(&p.ReadinessGate),
		"Keep the pod's condition soloist.dev/leader for a readiness gate. It needs leave to patch pods/status.")
}

func (d *declarer) job(c *Config, r *raw) {
	d.group = "Job"
	d.list("lock", "NAME", "required", &r.locks, "The lock to hold while CMD runs.")
	d.add("via", "URL", "straight on the store", textValue(&c.Job.Via),
		"The sidecar to get it from, such as http://127.0.0.1:4040. No flag of the store is needed then.")
	d.add("wait", "DURATION", "", durationValue(&c.Job.Wait), "How long to wait in line for it. 0: not at all.")
	d.add("lease", "DURATION", "", durationValue(&c.Job.Lease),
		"For how long others are kept out if this process dies, 500ms or more. It is renewed while CMD runs.")
	d.add("slots", "N", "0", intValue(&r.slots), "As many may hold it at once. 0 is a plain lock.")
	d.add("once", "RUN", "off", textValue(&c.Job.Once),
		"Names this run, such as a date. When CMD has ended with 0 it is recorded as done, and not run again by anybody.")
	d.add("keep", "DURATION", "168h with --once", durationValue(&c.Job.Keep), "How long that is remembered.")
	d.add("at-least-for", "DURATION", "0s", durationValue(&c.Job.AtLeast),
		"Keep others out for this long even if CMD has ended before, so that a clock that is late does not run it again.")
	d.add("at-most-for", "DURATION", "no limit", durationValue(&c.Job.AtMost),
		"Others may have the lock after this long: CMD is ended before.")
	d.add("skip-ok", "", "false", boolValue(&c.Job.SkipOK),
		"Exit with 0, not with 40 or 41, where CMD did not run because another runs it, or has.")
	d.add("name", "NAME", "POD_NAME, else hostname", textValue(&c.Identity.Name), "Who holds it, as people see it.")
}

func (d *declarer) log(l *Log) {
	d.group = "Log"
	d.add("log-level", "debug|info|warn|error", "", textValue(&l.Level), "The least level that is logged.")
	d.add("log-format", "json|text", "", textValue(&l.Format), "How a line looks.")
}

// ask declares what a request to this pod's sidecar needs.
func (d *declarer) ask(c *Config, r *raw) {
	d.group = "Request"
	d.list("lock", "NAME", "the only one", &r.locks, "The election that is meant, if the sidecar has several.")
	d.address(c, "Where the sidecar listens for the app.")
	d.timeout(c)
}

func (d *declarer) address(c *Config, usage string) {
	d.add("http-address", "HOST:PORT", "", textValue(&c.HTTP.Address), usage)
}

func (d *declarer) timeout(c *Config) {
	d.add("timeout", "DURATION", "", durationValue(&c.Request.Timeout), "How long the whole request may take.")
}

func (d *declarer) output(c *Config, meta string) {
	d.add("output", meta, "", textValue(&c.Output), "How the answer looks.")
}
