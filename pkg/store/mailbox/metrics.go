package mailbox

import (
	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// types are the valid message types. A received message states its own type, which could be anything.
var types = team.MessageTypes()

// unreadable is the type under which dead letters are counted.
const unreadable = "dead"

type metrics struct {
	sent, received *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		sent:     telemetry.Counters(reg, "agentteam_messages_sent_total", "Messages stored, by type.", "type"),
		received: telemetry.Counters(reg, "agentteam_messages_received_total", "Messages delivered to this process, repetitions included.", "type"),
	}
	for _, t := range types { // at 0, so that the first one is seen as an increase
		m.sent.WithLabelValues(string(t))
		m.received.WithLabelValues(string(t))
	}
	m.received.WithLabelValues(unreadable)
	return m
}
