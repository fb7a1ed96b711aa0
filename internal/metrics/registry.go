// Package metrics shows elections and the store to Prometheus. The elections count
// nothing for it: what it shows of them is read off their snapshots at each scrape.
//
// Labels come only from closed sets: the locks that are configured, and what the code
// names. The table of all metrics is docs/metrics.md, which a test keeps equal to the code.
package metrics

import (
	"log/slog"
	"net/http"
	"regexp"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/soloist-dev/soloist/internal/lease"
)

// maxScrapes at the same time; the others get 503. Anybody in the cluster can ask.
const maxScrapes = 4

// Registry holds the metrics of one process. Its methods are safe for concurrent use.
type Registry struct {
	all   *prometheus.Registry
	store *storeMetrics
}

// New returns a Registry that describes the process. It panics if a metric is not well
// formed, which no input can cause.
func New(version string) *Registry {
	r := bare()
	info := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "soloist_info",
		Help:        "1, labelled with the sidecar's version and Go's.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
	}, func() float64 { return 1 })
	r.all.MustRegister(
		info,
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector( // a handful of its 30 and more
			collectors.WithGoCollectorMemStatsMetricsDisabled(),
			collectors.WithoutGoCollectorRuntimeMetrics(regexp.MustCompile(`.*`)),
			collectors.WithGoCollectorRuntimeMetrics(
				collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/gc/heap/live:bytes$`)}),
		),
	)
	return r
}

// bare returns a Registry of the store alone.
func bare() *Registry {
	r := &Registry{all: prometheus.NewRegistry(), store: newStoreMetrics()}
	r.all.MustRegister(r.store.seconds, r.store.errors, r.store.refusals)
	return r
}

// Elections shows these elections, judged by clock (nil: [lease.SystemClock]), which is
// the one that they go by. Call it once.
func (r *Registry) Elections(clock lease.Clock, all ...Election) {
	if clock == nil {
		clock = lease.SystemClock
	}
	r.all.MustRegister(&elections{clock, all})
}

// Handler answers scrapes. What goes wrong in one is logged, and the rest is shown.
func (r *Registry) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(r.all, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		DisableCompression:  true, // a compressor takes more memory than all that there is to compress
	})
}
