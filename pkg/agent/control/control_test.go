package control_test

import (
	"fmt"
	"testing"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
)

func TestProcesses(t *testing.T) {
	url := brokertest.Server(t)
	c := brokertest.Connect(t, url)
	var alice *broker.Conn
	var leaves func()
	for _, p := range []control.Process{
		{ID: "h/1/a", Kind: "leader", Metrics: "http://127.0.0.1:1/metrics", Model: "m", Aliases: []string{"strong", "qwen3:8b"}, Version: "v1.2.3",
			Memberships: []control.Membership{{Team: "t", AgentID: "leader", Role: "leader"}, {Team: "u", AgentID: "leader", Role: "leader"}}},
		{ID: "h/2/b", Kind: "teammate", Model: control.NoModel, Version: "(devel)",
			Memberships: []control.Membership{{Team: "t", AgentID: "alice", Role: "coder"}}},
		{ID: "h/3/c", Kind: "teammate", Model: control.NoModel, Version: "abc-dirty"},
	} {
		own := brokertest.Connect(t, url)
		stop, err := control.Announce(own, p)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		for _, m := range p.Memberships {
			m.Process = p.ID
			alice = own
			if leaves, err = control.Serve(t.Context(), own, m, control.Handlers{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := own.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(kind string) map[string]control.Process {
		t.Helper()
		all, err := control.Processes(t.Context(), c, kind, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		byID := map[string]control.Process{}
		for _, p := range all {
			if byID[p.ID] = p; p.PID == "" || p.Host == "" || kind != "" && p.Kind != kind {
				t.Errorf("asked for %q: %+v", kind, p)
			}
		}
		return byID
	}
	for kind, want := range map[string]int{"leader": 1, "teammate": 2, "": 3, "member": 0} {
		if got := ask(kind); len(got) != want {
			t.Errorf("%d processes of kind %q, want %d", len(got), kind, want)
		}
	}
	p := ask("leader")["h/1/a"]
	if p.Metrics != "http://127.0.0.1:1/metrics" || p.Model != "m" || fmt.Sprint(p.Aliases) != "[strong qwen3:8b]" || p.Version != "v1.2.3" || fmt.Sprint(p.Memberships) != "[{h/1/a t leader leader} {h/1/a u leader leader}]" {
		t.Errorf("the leader tells %+v", p)
	}
	if all := ask("teammate"); fmt.Sprint(all["h/2/b"].Memberships) != "[{h/2/b t alice coder}]" || all["h/3/c"].Memberships != nil || len(all["h/3/c"].Aliases) != 0 {
		t.Errorf("the teammates tell %+v", all)
	}
	leaves()
	if err := alice.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := ask("teammate")["h/2/b"]; p.ID == "" || p.Memberships != nil {
		t.Errorf("once its membership is over, the process tells %+v", p)
	}
}
