package agent

import (
	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// metrics publishes an agent's context and whether it is parked.
type metrics struct{ context, window, parked prometheus.Gauge }

func newMetrics(reg prometheus.Registerer) metrics {
	gauge := func(o prometheus.GaugeOpts) prometheus.Gauge { return telemetry.Register(reg, prometheus.NewGauge(o)) }
	return metrics{
		context: gauge(prometheus.GaugeOpts{Name: "agentteam_agent_context_tokens", Help: "Tokens of the agent's next request, about."}),
		window:  gauge(prometheus.GaugeOpts{Name: "agentteam_agent_context_window", Help: "Tokens that the agent's model takes; 0 if unknown."}),
		parked:  gauge(prometheus.GaugeOpts{Name: "agentteam_agent_parked", Help: "1 while the agent's model endpoint refuses it, else 0."}),
	}
}

func (m metrics) show(b team.Heartbeat) {
	m.context.Set(float64(b.Context))
	m.window.Set(float64(b.Window))
	m.parked.Set(0)
	if b.Parked() {
		m.parked.Set(1)
	}
}
