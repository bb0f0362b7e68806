package telemetry

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// NewRegistry returns a registry that already holds what every process tells:
// go_*, process_*, and agentteam_build_info, whose value is always 1 and whose
// labels are version and goversion.
func NewRegistry() *prometheus.Registry {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "agentteam_build_info",
		Help:        "Always 1; the labels say which version of agentteam runs and which Go built it.",
		ConstLabels: prometheus.Labels{"version": Version(), "goversion": runtime.Version()},
	})
	build.Set(1)

	reg := prometheus.NewRegistry()
	reg.MustRegister(
		build,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return reg
}
