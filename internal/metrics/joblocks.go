package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/soloist-dev/soloist/internal/joblock"
)

// JobLocks is what is read of the locks that the app asks for. It does not block.
type JobLocks interface{ Stats() joblock.Stats }

var (
	jobsHeldDesc = prometheus.NewDesc("soloist_job_locks_held",
		"Job locks that this sidecar holds for its app.", nil, nil)
	jobsAcquiresDesc = prometheus.NewDesc("soloist_job_lock_acquires_total",
		"Requests for job locks, by what came of them.", []string{"outcome"}, nil)
	jobsReleasesDesc = prometheus.NewDesc("soloist_job_lock_releases_total",
		"Releases of job locks, by what they found.", []string{"outcome"}, nil)
	jobsLostDesc = prometheus.NewDesc("soloist_job_locks_lost_total",
		"Job locks that ended before anybody released them, by reason.", []string{"reason"}, nil)
)

type jobLocks struct{ JobLocks }

// JobLocks shows the locks that the app asks for. Call it at most once.
func (r *Registry) JobLocks(j JobLocks) { r.all.MustRegister(jobLocks{j}) }

// Describe implements [prometheus.Collector].
func (jobLocks) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{jobsHeldDesc, jobsAcquiresDesc, jobsReleasesDesc, jobsLostDesc} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c jobLocks) Collect(ch chan<- prometheus.Metric) {
	s := c.Stats()
	ch <- prometheus.MustNewConstMetric(jobsHeldDesc, prometheus.GaugeValue, float64(s.Held))
	acquires, releases, lost := joblock.Outcomes()
	for _, of := range []struct {
		desc  *prometheus.Desc
		words []string
		n     map[string]uint64
	}{{jobsAcquiresDesc, acquires, s.Acquires}, {jobsReleasesDesc, releases, s.Releases}, {jobsLostDesc, lost, s.Lost}} {
		for _, word := range of.words {
			ch <- prometheus.MustNewConstMetric(of.desc, prometheus.CounterValue, float64(of.n[word]), word)
		}
	}
}
