package broker_test

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry/telemetrytest"
)

func TestMetrics(t *testing.T) {
	srv, err := embedded.Start(embedded.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Shutdown)
	reg := prometheus.NewRegistry()
	c, err := broker.Connect(t.Context(), broker.Options{URL: srv.URL(), Metrics: reg})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	bt, err := c.Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	told := func() map[string]float64 {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			got[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
		}
		return got
	}
	telemetrytest.Lint(t, reg)
	if _, err := bt.Bucket.Put(t.Context(), "task.T-001", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := bt.Bucket.Put(t.Context(), "task.T-001", []byte("2"), 0); team.CodeOf(err) != team.Conflict {
		t.Fatal(err)
	}
	if got := told(); got["agentteam_nats_connected"] != 1 || got["agentteam_repeated_writes_total"] != 0 {
		t.Errorf("while all is well: %v", got)
	}
	gone := c.NATS().StatusChanged(nats.RECONNECTING)
	srv.Shutdown()
	brokertest.Receive(t, "the connection is lost", gone)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := bt.Bucket.Put(ctx, "task.T-002", []byte("1"), 0)
		ended <- err
	}()
	brokertest.Until(t, "a write is repeated", func() bool { return told()["agentteam_repeated_writes_total"] > 0 })
	if got := told(); got["agentteam_nats_connected"] != 0 {
		t.Errorf("without a server: %v", got)
	}
	cancel()
	if err := brokertest.Receive(t, "the write ends", ended); team.CodeOf(err) != team.Unavailable {
		t.Error(err)
	}
}
