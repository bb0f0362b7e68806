package telemetry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/telemetry"
	"agentteam/pkg/telemetry/telemetrytest"
)

func TestNewLogger(t *testing.T) {
	var buf bytes.Buffer
	log, err := telemetry.NewLogger(&buf, "WARN", "json")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("below the level")
	log.Warn("调查 🦀", "team", "default")
	var rec struct{ Level, Msg, Team string }
	if err := json.Unmarshal(buf.Bytes(), &rec); err != nil {
		t.Fatalf("want one JSON record, got %q: %v", buf.String(), err)
	}
	if rec.Level != "WARN" || rec.Msg != "调查 🦀" || rec.Team != "default" {
		t.Errorf("record = %+v", rec)
	}
}

func TestNewLoggerRefuses(t *testing.T) {
	for _, tt := range []struct{ level, format, want string }{
		{"loud", "text", `log level "loud": use debug, info, warn or error`},
		{"", "text", `log level "": use debug, info, warn or error`},
		{"info", "xml", `log format "xml": use text or json`},
	} {
		if _, err := telemetry.NewLogger(os.Stderr, tt.level, tt.format); err == nil || err.Error() != tt.want {
			t.Errorf("NewLogger(%q, %q) = %v, want %q", tt.level, tt.format, err, tt.want)
		}
	}
}

func TestNewRegistry(t *testing.T) {
	reg := telemetry.NewRegistry()
	telemetrytest.Lint(t, reg)

	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for _, f := range families {
		have[f.GetName()] = fmt.Sprint(f.GetMetric())
	}
	for _, name := range []string{"go_goroutines", "process_start_time_seconds"} {
		if have[name] == "" {
			t.Errorf("no metric %s", name)
		}
	}
	for _, label := range []string{"version", "goversion"} {
		if !strings.Contains(have["agentteam_build_info"], label) {
			t.Errorf("agentteam_build_info has no label %s: %s", label, have["agentteam_build_info"])
		}
	}
}

// Two teams in one process register the same metrics and must count together.
func TestRegisterTwiceCountsTogether(t *testing.T) {
	reg := prometheus.NewRegistry()
	counter := func() prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "agentteam_test_total", Help: "For this test."})
	}
	telemetry.Register(reg, counter()).Inc()
	telemetry.Register(reg, counter()).Inc()
	telemetry.Register(nil, counter()).Inc()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if got := families[0].GetMetric()[0].GetCounter().GetValue(); got != 2 {
		t.Errorf("the counter is %v, want 2", got)
	}
}

// A linter that sees nothing would pass every package's metrics.
func TestLintFindsBadNames(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		prometheus.NewCounter(prometheus.CounterOpts{Name: "agentteam_claims", Help: "Not _total."}),
		prometheus.NewGauge(prometheus.GaugeOpts{Name: "agentteam_age_milliseconds", Help: "Not a base unit."}),
	)
	probe := &probe{TB: t}
	telemetrytest.Lint(probe, reg)
	if len(probe.errors) != 2 {
		t.Errorf("want one complaint for each metric, got %q", probe.errors)
	}
}

// probe is a test that collects its failures.
type probe struct {
	testing.TB
	errors []string
}

func (p *probe) Errorf(format string, args ...any) {
	p.errors = append(p.errors, fmt.Sprintf(format, args...))
}

func Example() {
	log, err := telemetry.NewLogger(os.Stdout, "info", "text")
	if err != nil {
		fmt.Println(err)
		return
	}
	log.Debug("not shown at level info")
	srv, err := telemetry.Listen(telemetry.Options{Addr: "127.0.0.1:0", Metrics: telemetry.NewRegistry(), Logger: log})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	fmt.Println(strings.HasPrefix(srv.URL(), "http://127.0.0.1:"))
	// Output: true
}

// What a process counts as one member of a team stays apart from what it counts as
// another, and is told for a minute after it has ended.
func TestLabelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := telemetry.NewRegistry()
		open := func(agent string) (count func(), done func()) {
			part, done := reg.Labelled(prometheus.Labels{"team": "t", "agent_id": agent})
			return telemetry.Register(part, prometheus.NewCounter(prometheus.CounterOpts{Name: "turns_total", Help: "Turns."})).Inc, done
		}
		told := func(want map[string]float64) {
			t.Helper()
			families, err := reg.Gather()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			for _, f := range families {
				for _, m := range f.GetMetric() {
					if f.GetName() == "turns_total" {
						got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
					}
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("told %v, want %v", got, want)
			}
		}
		told(map[string]float64{})
		first, firstDone := open("coder-1")
		again, againDone := open("coder-1")
		other, otherDone := open("coder-2")
		first()
		again()
		other()
		told(map[string]float64{"coder-1": 2, "coder-2": 1})
		firstDone()
		otherDone()
		time.Sleep(time.Minute)
		told(map[string]float64{"coder-1": 2, "coder-2": 1})
		time.Sleep(time.Second)
		told(map[string]float64{"coder-1": 2})
		againDone()
		time.Sleep(30 * time.Second)
		back, backDone := open("coder-1") // it goes on where it was
		back()
		time.Sleep(time.Hour)
		told(map[string]float64{"coder-1": 3})
		backDone()
		time.Sleep(time.Hour)
		told(map[string]float64{})
	})
}
