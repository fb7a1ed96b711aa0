package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/soloist-dev/soloist/internal/podmeta"
)

// Pod is what is read of the actor that marks the pod. It does not block.
type Pod interface{ Stats() podmeta.Stats }

var (
	podWritesDesc = prometheus.NewDesc("soloist_pod_writes_total",
		"What was written to the pod, by what it was.", []string{"what"}, nil)
	podErrorsDesc = prometheus.NewDesc("soloist_pod_errors_total",
		"Writes to the pod that failed, by kind. Nobody's lead depends on them.", []string{"kind"}, nil)
	podDroppedDesc = prometheus.NewDesc("soloist_pod_events_dropped_total",
		"Events that waited too long for the API server.", nil, nil)
	podBehindDesc = prometheus.NewDesc("soloist_pod_behind",
		"1 while the pod does not show the newest state, else 0.", nil, nil)
)

type pod struct {
	Pod
	kinds []string
}

// Pod shows the actor that marks the pod; kinds are those that its errors can have. Call
// it at most once.
func (r *Registry) Pod(p Pod, kinds []string) { r.all.MustRegister(&pod{p, kinds}) }

// Describe implements [prometheus.Collector].
func (c *pod) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{podWritesDesc, podErrorsDesc, podDroppedDesc, podBehindDesc} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *pod) Collect(ch chan<- prometheus.Metric) {
	s := c.Stats()
	counter := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	counter(podWritesDesc, s.Marks, "marks")
	counter(podWritesDesc, s.Conditions, "condition")
	counter(podWritesDesc, s.Events, "event")
	for _, kind := range c.kinds {
		counter(podErrorsDesc, s.Errors[kind], kind)
	}
	counter(podDroppedDesc, s.Dropped)
	ch <- prometheus.MustNewConstMetric(podBehindDesc, prometheus.GaugeValue, number(s.Behind))
}
