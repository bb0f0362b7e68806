package telemetry

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
)

// linger is the time for which metrics with labels of their own outlive their last user: a few scrapes, so that
// the last counts are scraped.
const linger = time.Minute

// Registry holds a process's metrics: those of the process itself, registered with it, and those of a role that the
// process has for a while, see [Registry.Labelled]. Safe for concurrent use.
type Registry struct {
	*prometheus.Registry

	mu    sync.Mutex
	parts map[string]*part
}

// part holds the metrics with one set of labels.
type part struct {
	*prometheus.Registry
	users int
	until time.Time // published until then once it has no user
}

// NewRegistry returns a registry that already holds the metrics of every process: go_*, process_*, and
// agentteam_build_info, whose value is always 1 and whose labels are version and goversion.
func NewRegistry() *Registry {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "agentteam_build_info",
		Help:        "Always 1; versions of agentteam and Go.",
		ConstLabels: prometheus.Labels{"version": Version(), "goversion": runtime.Version()},
	})
	build.Set(1)

	reg := prometheus.NewRegistry()
	reg.MustRegister(
		build,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return &Registry{Registry: reg, parts: map[string]*part{}}
}

// Labelled returns a registerer whose metrics carry labels. All users of the same labels count together. When each
// of them has called its done, which may be called once, the metrics are published for a minute more and then
// forgotten: a process may change its role a thousand times.
//
// The labels of the scraped target cannot do this: they change while a counter continues, and its counts under one set
// of them would be counted again under the next.
func (r *Registry) Labelled(labels prometheus.Labels) (reg prometheus.Registerer, done func()) {
	key := fmt.Sprint(labels) // a map is printed in the order of its keys
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget()
	p := r.parts[key]
	if p == nil {
		p = &part{Registry: prometheus.NewRegistry()}
		r.parts[key] = p
	}
	p.users++
	return prometheus.WrapRegistererWith(labels, p), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		p.users--
		p.until = time.Now().Add(linger)
	}
}

func (r *Registry) forget() {
	for key, p := range r.parts {
		if p.users == 0 && time.Now().After(p.until) {
			delete(r.parts, key)
		}
	}
}

// Gather collects all metrics.
func (r *Registry) Gather() ([]*dto.MetricFamily, error) {
	r.mu.Lock()
	r.forget()
	all := prometheus.Gatherers{r.Registry}
	for _, p := range r.parts {
		all = append(all, p)
	}
	r.mu.Unlock()
	return all.Gather()
}
