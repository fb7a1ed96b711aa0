package config

import (
	"net/url"
	"time"
)

// maxLocks is far above what one process has a use for.
const maxLocks = 100_000

func (j *Jobs) validate(p *problems, r Readiness) {
	if j.Max < 0 || j.Max > maxLocks {
		p.flag("max-locks", "must be 0 to %d, is %d", maxLocks, j.Max)
	}
	if j.Only && j.Max == 0 {
		p.flag("jobs-only", "leaves nothing to do with --max-locks=0")
	}
	if j.Dapr != "" {
		host, _, reason := splitAddress(j.Dapr, 0)
		if reason == "" && !isLoopback(host) {
			reason = "host must be localhost or a loopback address: who reaches it may unlock"
		}
		if reason == "" && j.Max == 0 {
			reason = "needs job locks, and --max-locks=0 allows none"
		}
		if reason != "" {
			p.flag("dapr-address", "%s, is %q", reason, j.Dapr)
		}
	}
	if j.Only && r == ReadyLeader {
		p.flag("readiness", "can't be %s with --jobs-only: nobody leads", r)
	}
}

// validateJob judges what run is asked for. The rest is judged where it is asked.
func (c *Config) validateJob(p *problems) {
	if len(c.Args) == 0 {
		p.add("CMD", "must follow --")
	}
	c.Identity.validate(p)
	j := &c.Job
	if j.Lease < 500*time.Millisecond || j.Lease > maxDuration {
		p.flag("lease", "must be 500ms to %s, is %s", brief(maxDuration), brief(j.Lease))
	}
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"wait", j.Wait}, {"keep", j.Keep}, {"at-least-for", j.AtLeast}, {"at-most-for", j.AtMost}} {
		if f.d < 0 || f.d > 30*maxDuration {
			p.flag(f.name, "must be 0s to %s, is %s", brief(30*maxDuration), brief(f.d))
		}
	}
	if j.AtMost > 0 && j.AtMost < j.Lease {
		p.flag("at-most-for", "must be at least the lease: %s < %s", brief(j.AtMost), brief(j.Lease))
	}
	if j.Keep != 0 && j.Once == "" {
		p.flag("keep", "goes with --once")
	}
	if j.Via == "" {
		c.Store.validate(p)
		c.validateLeases(p)
		oneOfThese(p, "store-check", c.Store.Check, CheckStrict, CheckWarn)
		oneOfThese(p, "delayed-restart", c.Store.DelayedRestart, DelayAuto, DelayOn, DelayOff)
		return
	}
	if u, err := url.Parse(j.Via); err != nil || u.Scheme != "http" || u.Host == "" || u.User != nil || len(u.Path) > 1 {
		p.flag("via", "must be a sidecar's URL, such as http://127.0.0.1:4040, is %q", j.Via)
	}
}
