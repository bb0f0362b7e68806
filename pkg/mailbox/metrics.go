package mailbox

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// types are those that a message may be counted under. A received one says itself
// what it is, and might say anything.
var types = team.MessageTypes()

const (
	unreadable  = "dead"    // set aside
	unknownType = "unknown" // read, but of none of the types
)

type metrics struct {
	sent, received *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		sent: telemetry.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_messages_sent_total", Help: "Messages stored, by type."}, []string{"type"})),
		received: telemetry.Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentteam_messages_received_total", Help: "Messages delivered to this process, by type; redeliveries count again."}, []string{"type"})),
	}
	for _, t := range types { // at 0, so that the first one is seen as an increase
		m.sent.WithLabelValues(string(t))
		m.received.WithLabelValues(string(t))
	}
	m.received.WithLabelValues(unreadable)
	return m
}

func (m metrics) receive(t team.MessageType) {
	if !slices.Contains(types, t) {
		t = unknownType
	}
	m.received.WithLabelValues(string(t)).Inc()
}
