package mergequeue_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"agentteam/pkg/store/broker/brokertest"
)

// Each piece of work is counted once, by what came of it, and nothing waits at the end.
func TestMetrics(t *testing.T) {
	r := setUp(t)
	reg := prometheus.NewRegistry()
	r.metrics = reg
	base, err := r.repo.Head(r.ctx)
	r.must(err)
	r.submit("T-001", base, "sed -i s/^5$/five/ numbers.txt")
	r.submit("T-002", base, "sed -i s/^5$/cinq/ numbers.txt")
	r.submit("T-003", base, "echo new > new.txt")
	q, _ := r.queue("one")
	stop := r.run(q)
	want := `# HELP agentteam_merges_total Submitted work by outcome: merged, conflict, check or refused.
# TYPE agentteam_merges_total counter
agentteam_merges_total{outcome="check"} 0
agentteam_merges_total{outcome="conflict"} 1
agentteam_merges_total{outcome="merged"} 2
agentteam_merges_total{outcome="refused"} 0
# HELP agentteam_merges_waiting Submitted work that waits to be merged.
# TYPE agentteam_merges_waiting gauge
agentteam_merges_waiting 0
`
	counted := func() error {
		return testutil.GatherAndCompare(reg, strings.NewReader(want), "agentteam_merges_total", "agentteam_merges_waiting")
	}
	timed := func() map[string]uint64 {
		families, err := reg.Gather()
		r.must(err)
		seen := map[string]uint64{}
		for _, f := range families {
			if h := f.GetMetric()[0].GetHistogram(); h != nil {
				seen[f.GetName()] = h.GetSampleCount()
			}
		}
		return seen
	}
	defer func() {
		if t.Failed() {
			t.Log(counted(), timed())
		}
	}()
	brokertest.Until(t, "all is counted", func() bool { // a little after the store has it
		return counted() == nil && reflect.DeepEqual(timed(), map[string]uint64{"agentteam_merge_wait_seconds": 3, "agentteam_merge_duration_seconds": 3})
	})
	stop()
	if err := counted(); err != nil {
		t.Error(err)
	}
}
