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
		connected:  telemetry.Gauges(reg, "agentteam_nats_connected", "1 while the process is connected to NATS, else 0.").WithLabelValues(),
		reconnects: telemetry.Counters(reg, "agentteam_nats_reconnects_total", "Connections to NATS lost and restored.").WithLabelValues(),
		repeated:   telemetry.Counters(reg, "agentteam_repeated_writes_total", "Writes sent again without an answer.").WithLabelValues(),
	}
}
