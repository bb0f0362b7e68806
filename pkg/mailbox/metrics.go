package mailbox

import (
	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/telemetry"
)

type metrics struct {
	sent, received *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) metrics {
	return metrics{
		sent: telemetry.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_messages_sent_total", Help: "Messages stored, by type."}, []string{"type"})),
		received: telemetry.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_messages_received_total", Help: "Messages delivered to this process, by type; redeliveries count again."}, []string{"type"})),
	}
}
