package tool_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"agentteam/pkg/tool"
)

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	for range 2 { // a second membership of one process counts on
		all, err := tool.NewSet(reg, returns("look", "seen", nil, tool.Alias("Look")), returns("fail", nil, errors.New("no")), returns("kill", "", nil))
		if err != nil {
			t.Fatal(err)
		}
		s, err := all.Allow([]string{"look", "fail"})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"look", "Look", "fail", "kill", "T-001", "T-002"} {
			s.Run(t.Context(), tool.Call{Name: name})
		}
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			got[f.GetName()+" "+strings.Join(labels, " ")] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	want := map[string]float64{ // labels in the order of their names: outcome, tool
		"agentteam_tool_calls_total ok look":                2 * 2,
		"agentteam_tool_calls_total ok fail":                0, // known before the first one
		"agentteam_tool_calls_total ok kill":                0,
		"agentteam_tool_calls_total unavailable fail":       2,
		"agentteam_tool_calls_total permission_denied kill": 2,
		"agentteam_tool_calls_total not_found unknown":      2 * 2,
		"agentteam_tool_call_duration_seconds look":         2 * 2,
		"agentteam_tool_call_duration_seconds fail":         2,
		"agentteam_tool_call_duration_seconds kill":         2,
		"agentteam_tool_call_duration_seconds unknown":      2 * 2,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("metrics:\n%v\nwant:\n%v", got, want)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}
