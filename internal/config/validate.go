package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/soloist-dev/soloist/internal/lease"
)

// Limits that are ours, and what they are for.
const (
	// MaxSlots keeps one try at a lock cheap: it looks at each slot.
	MaxSlots = 1000
	// maxDuration is far above any use, and far below what overflows.
	maxDuration = 24 * time.Hour
	// minHeartbeat is above the pauses of healthy programs.
	minHeartbeat = time.Second
	// RestartTakes is what a restart of all containers takes to stop the app, as measured.
	RestartTakes = 3100 * time.Millisecond
	// minExitClearance is that, and time to say why.
	minExitClearance = 4 * time.Second
	// maxName is the longest name of a pod.
	maxName = 253
)

// problems collects one line for each.
type problems []error

func (p *problems) add(what, format string, args ...any) {
	for i := range args {
		if s, ok := args[i].(string); ok {
			args[i] = harmless(s)
		}
	}
	*p = append(*p, fmt.Errorf("%s: %s", what, fmt.Sprintf(format, args...)))
}

func (p *problems) flag(name, format string, args ...any) { p.add(mention(name), format, args...) }

// span judges a duration that may be off to maxDuration.
func (p *problems) span(name string, d, least time.Duration) {
	if d < least || d > maxDuration {
		p.flag(name, "must be %s to %s, is %s", brief(least), brief(maxDuration), brief(d))
	}
}

func oneOfThese[T ~string](p *problems, name string, v T, allowed ...T) {
	if !slices.Contains(allowed, v) {
		p.flag(name, "must be %s, is %q", oneOf(allowed), string(v))
	}
}

// Validate judges c for its verb, without looking at anything else. It returns nil, or
// one line for each problem, joined; a line names the flag and the variable.
func (c *Config) Validate() error {
	var p problems
	switch c.Verb {
	case Elect:
		c.Identity.validate(&p)
		validateTiming(&p, c.Timing)
		c.Store.validate(&p)
		c.validateLeases(&p)
		oneOfThese(&p, "store-check", c.Store.Check, CheckStrict, CheckWarn)
		oneOfThese(&p, "delayed-restart", c.Store.DelayedRestart, DelayAuto, DelayOn, DelayOff)
		c.validateAddresses(&p)
		oneOfThese(&p, "readiness", c.Probe.Readiness, ReadyStore, ReadyLeader)
		c.App.validate(&p)
		c.validateOnLost(&p)
		c.validatePod(&p)
		c.Jobs.validate(&p, c.Probe.Readiness)
		oneOfThese(&p, "log-level", c.Log.Level, "debug", "info", "warn", "error")
		oneOfThese(&p, "log-format", c.Log.Format, LogJSON, LogText)
	case Leader, Resign, Wait, Drain:
		c.HTTP.validate(&p, 1)
		c.Request.validate(&p)
	case Status:
		c.Store.validate(&p)
		c.validateLeases(&p)
		oneOfThese(&p, "output", c.Output, "table", "json")
		c.Request.validate(&p)
	case Check:
		c.Request.validate(&p)
	case Run:
		c.validateJob(&p)
		oneOfThese(&p, "log-level", c.Log.Level, "debug", "info", "warn", "error")
		oneOfThese(&p, "log-format", c.Log.Format, LogJSON, LogText)
	case Locks:
		c.Store.validate(&p)
		c.validateLeases(&p)
		oneOfThese(&p, "output", c.Output, "table", "json")
		c.Request.validate(&p)
	case UnlockVerb:
		c.Store.validate(&p)
		c.validateLeases(&p)
		c.Request.validate(&p)
		if c.Unlock.Force && !c.Unlock.Yes {
			p.flag("force", "breaks the promise that one holds: it needs --yes")
		}
	case Install:
		if len(c.Args) != 1 {
			p.add("DIR", "must be one directory, are %d", len(c.Args))
		}
	case Version:
		oneOfThese(&p, "output", c.Output, "text", "json")
	default:
		return unknownVerb(c.Verb)
	}
	c.validateElections(&p)
	return errors.Join(p...)
}

func (c *Config) validateElections(p *problems) {
	seen := make(map[string]bool)
	for _, e := range c.Elections {
		if err := lease.CheckName(e.Lock); err != nil {
			p.flag("lock", "name %v, is %q", err, e.Lock)
		} else if seen[e.Lock] {
			p.flag("lock", "%s is given twice", e.Lock)
		}
		seen[e.Lock] = true
		if e.Slots < 0 || e.Slots > MaxSlots {
			p.add(mention("lock")+", "+mention("slots"), "slots of %q must be 0 (a plain lock) to %d, is %d",
				e.Lock, MaxSlots, e.Slots)
		}
	}
	switch n := len(c.Elections); {
	case n == 0 && c.Verb == Elect && !c.Jobs.Only:
		p.flag("lock", "must name at least one lock to compete for")
	case n > 0 && c.Verb == Elect && c.Jobs.Only:
		p.flag("jobs-only", "is for a sidecar without --lock")
	case n == 0 && c.Verb == UnlockVerb:
		p.flag("lock", "must name at least one lock to revoke")
	case n != 1 && c.Verb == Run:
		p.flag("lock", "must name the lock to hold, names %d", n)
	case n == 0 && c.Verb == Status:
		p.flag("lock", "must name at least one lock to show")
	case n > 1 && (c.Verb == Leader || c.Verb == Resign):
		p.flag("lock", "must name one lock, names %d", n)
	}
}

func (i Identity) validate(p *problems) {
	if n := i.Name; n == "" || n == "-" || len(n) > maxName || hasSpace(n) {
		p.add("--name (SOLOIST_NAME, else POD_NAME, else the hostname)",
			"must be 1 to %d bytes without white space, and not -, is %q", maxName, n)
	}
	for _, v := range []struct{ env, value string }{
		{"POD_NAME", i.Pod}, {"POD_NAMESPACE", i.Namespace}, {"POD_UID", i.PodUID}, {"NODE_NAME", i.Node},
	} {
		if v.value == "-" || len(v.value) > maxName || hasSpace(v.value) {
			p.add(v.env, "must be at most %d bytes without white space, and not -, is %q", maxName, v.value)
		}
	}
}

// hasSpace reports whether s holds white space, or what does not print.
func hasSpace(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
}

var timingFlags = []string{"lease-duration", "renew-deadline", "retry-period"}

// naming gives the durations that lease names their flags and variables.
var naming = func() *strings.Replacer {
	var pairs []string
	for _, f := range timingFlags {
		pairs = append(pairs, f, mention(f))
	}
	return strings.NewReplacer(pairs...)
}()

func validateTiming(p *problems, t lease.Timing) {
	n := len(*p)
	for i, d := range []time.Duration{t.LeaseDuration, t.RenewDeadline, t.RetryPeriod} {
		if d > maxDuration || d < -maxDuration {
			p.flag(timingFlags[i], "must be at most %s, is %s", brief(maxDuration), brief(d))
		}
	}
	if len(*p) > n {
		return // the sums below could overflow
	}
	err := t.Validate()
	var each interface{ Unwrap() []error }
	if errors.As(err, &each) {
		for _, e := range each.Unwrap() {
			*p = append(*p, errors.New(naming.Replace(e.Error())))
		}
	}
}

func (c *Config) validateOnLost(p *problems) {
	oneOfThese(p, "on-lost", c.App.OnLost, LostNone, LostExit)
	if left := c.Timing.LeaseDuration - c.Timing.RenewDeadline; c.App.OnLost == LostExit && left < minExitClearance {
		p.flag("on-lost", "exit needs %s - %s ≥ %s, is %s: a restart of all containers takes up to about 3.1s to stop "+
			"the app, and others take over meanwhile", mention("lease-duration"), mention("renew-deadline"),
			brief(minExitClearance), brief(left))
	}
}

func (c *Config) validatePod(p *problems) {
	oneOfThese(p, "annotate", c.Pod.Annotate, AnnotateAuto, AnnotateOff)
	oneOfThese(p, "fast-failover", c.Pod.FastFailover, FailoverOff, FailoverPod)
	if c.Pod.FastFailover == FailoverPod && c.Pod.TerminationMessage == "" {
		p.flag("fast-failover", "pod needs %s: without, no death can be proven", mention("termination-message-path"))
	}
	if c.Pod.ReadinessGate && c.Pod.Annotate == AnnotateOff {
		p.flag("readiness-gate", "needs %s auto: without, nothing is written to the pod", mention("annotate"))
	}
}

func (a App) validate(p *problems) {
	if a.HealthURL != "" {
		if reason := judgeHealthURL(a.HealthURL); reason != "" {
			p.flag("app-health-url", "%s", reason)
		}
	}
	p.span("app-health-period", a.HealthPeriod, 100*time.Millisecond)
	p.span("app-health-timeout", a.HealthTimeout, time.Millisecond)
	if a.HealthTimeout > a.HealthPeriod {
		p.flag("app-health-timeout", "must be ≤ %s: %s > %s",
			mention("app-health-period"), brief(a.HealthTimeout), brief(a.HealthPeriod))
	}
	if a.HealthFailures < 1 {
		p.flag("app-health-failures", "must be at least 1, is %d", a.HealthFailures)
	}
	if a.Heartbeat != 0 && (a.Heartbeat < minHeartbeat || a.Heartbeat > maxDuration) {
		p.flag("require-heartbeat", "must be 0 (off) or %s to %s, is %s",
			brief(minHeartbeat), brief(maxDuration), brief(a.Heartbeat))
	}
	p.span("drain-timeout", a.DrainTimeout, 0)
}

// judgeHealthURL does not quote the URL: it may hold a password.
func judgeHealthURL(s string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		return "must be a URL such as http://localhost:8080/healthz"
	case u.User != nil:
		return "must not hold a user or password"
	}
	return ""
}

func (r Request) validate(p *problems) {
	p.span("timeout", r.Timeout, time.Millisecond)
	if r.HoldOff != nil {
		p.span("hold-off", *r.HoldOff, 0)
	}
}
