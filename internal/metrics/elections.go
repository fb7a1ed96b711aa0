package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/soloist-dev/soloist/internal/elector"
	"github.com/soloist-dev/soloist/internal/lease"
)

// Election is what is read of an election. Its methods do not block.
type Election interface {
	State() *elector.State
	Stats() elector.Stats
}

var _ Election = (*elector.Elector)(nil)

// Phases and reasons are closed sets. Each is shown from the start, with 0, so that
// rate() and increase() see also the first time.
var (
	phases  = []elector.Phase{elector.Leader, elector.Standby, elector.Unknown}
	reasons = []elector.Reason{ // all but Starting, with which nothing changes
		elector.Acquired, elector.Reclaimed, elector.Failover, elector.Verified, elector.HeldByPeer,
		elector.Unverified, elector.Lost, elector.Expired, elector.Resigned, elector.Unhealthy,
		elector.Silent, elector.Unanswered, elector.Ending, elector.Refused, elector.Stopped, elector.DrainOver,
	}
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"lock"}, labels...), nil)
}

var (
	leaderDesc = desc("soloist_leader",
		"1 if this pod leads now, else 0.")
	stateDesc = desc("soloist_state",
		"1 for the state that this candidate is in now, 0 for the others.", "state")
	transitionsDesc = desc("soloist_transitions_total",
		"Changes of what is said about who leads, by what they came from.", "reason")
	termAgeDesc = desc("soloist_term_age_seconds",
		"How long this term has lasted. Only while leading, or unverified after a clock jump.")
	sinceRenewalDesc = desc("soloist_since_renewal_seconds",
		"Time since the last confirmed renewal was sent. Only while leading, or unverified after a clock jump.")
	validDesc = desc("soloist_valid_seconds",
		"How long this pod leads on if no renewal is confirmed. Only while leading.")
	renewalsDesc = desc("soloist_renewals_total",
		"Confirmed renewals.")
	unansweredDesc = desc("soloist_renewals_unanswered_total",
		"Renewals that brought no answer.")
	jumpsDesc = desc("soloist_clock_jumps_total",
		"Jumps of a clock seen while leading: of this node's wall clock (local), or of the store's, "+
			"where a lease had less left than it should have had.", "where")
	waitersDesc = desc("soloist_waiters",
		"Candidates in line at the last renewal. Only while leading.")
	fenceDesc = desc("soloist_fence",
		"Fence of this term, or the highest that this candidate has heard of. "+
			"Exact until it reaches 2^53, in the year 2255.")
)

// elections is a prometheus.Collector.
type elections struct {
	clock lease.Clock
	all   []Election
}

// Describe implements [prometheus.Collector].
func (c *elections) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		leaderDesc, stateDesc, transitionsDesc, termAgeDesc, sinceRenewalDesc, validDesc,
		renewalsDesc, unansweredDesc, jumpsDesc, waitersDesc, fenceDesc,
	} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector]. It judges each election now.
func (c *elections) Collect(ch chan<- prometheus.Metric) {
	for _, e := range c.all {
		now := c.clock()
		v := e.State().At(now)
		send := func(d *prometheus.Desc, t prometheus.ValueType, value float64, labels []string) {
			ch <- prometheus.MustNewConstMetric(d, t, value, append([]string{v.Lock}, labels...)...)
		}
		gauge := func(d *prometheus.Desc, value float64, labels ...string) {
			send(d, prometheus.GaugeValue, value, labels)
		}
		counter := func(d *prometheus.Desc, value uint64, labels ...string) {
			send(d, prometheus.CounterValue, float64(value), labels)
		}

		gauge(leaderDesc, number(v.Leading))
		for _, p := range phases {
			gauge(stateDesc, number(p == v.Phase), string(p))
		}
		gauge(fenceDesc, float64(v.Fence))
		if v.Leading || v.Reason == elector.Unverified {
			gauge(termAgeDesc, time.Since(v.Since).Seconds())
			gauge(sinceRenewalDesc, now.Since(v.Validity.Stamp).Seconds())
		}
		if v.Leading {
			gauge(validDesc, v.ValidFor.Seconds())
			gauge(waitersDesc, float64(v.Waiting))
		}

		stats := e.Stats()
		for _, r := range reasons {
			counter(transitionsDesc, stats.Transitions[r], string(r))
		}
		counter(renewalsDesc, stats.Renewals)
		counter(unansweredDesc, stats.Unanswered)
		counter(jumpsDesc, stats.ClockJumps, "local")
		counter(jumpsDesc, stats.StoreJumps, "store")
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
