package broker

import (
	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/telemetry"
)

type metrics struct {
	connected  prometheus.Gauge
	reconnects prometheus.Counter
	repeated   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) metrics {
	return metrics{
		connected: telemetry.Register(reg, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentteam_nats_connected", Help: "1 while the process is connected to NATS, else 0."})),
		reconnects: telemetry.Register(reg, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentteam_nats_reconnects_total", Help: "Connections to NATS that were lost and restored."})),
		repeated: telemetry.Register(reg, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentteam_repeated_writes_total", Help: "Writes that were sent again because they had not been answered."})),
	}
}
