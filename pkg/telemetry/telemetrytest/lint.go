// Package telemetrytest checks metrics in tests.
package telemetrytest

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// Lint fails the test for each of g's metrics that breaks Prometheus' naming rules: base units in the name, _total on
// counters, a help text.
//
// It sees only the metrics that g gathers: a vector without a child is not gathered, so touch each vector first.
func Lint(t testing.TB, g prometheus.Gatherer) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatalf("gather metrics: %v", err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatalf("lint metrics: %v", err)
	}
	for _, p := range problems {
		t.Errorf("metric %s: %s", p.Metric, p.Text)
	}
}
