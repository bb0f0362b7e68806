package tokenstream

import (
	"context"
	"testing"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// What agents and their subagents write is heard by who listens to all or to them, and what one
// publishes in the name of another by nobody.
func TestListen(t *testing.T) {
	bt := brokertest.Team(t, "t")
	ctx, stop := context.WithCancel(t.Context())
	sub := team.Subagent("coder-1", "a1b2c3")
	heard := map[string]chan team.Delta{}
	ended := make(chan error, 5)
	for name, agents := range map[string][]team.AgentID{"all": nil, "one": {"coder-1"}, "subagent": {sub}, "two": {"coder-1", sub}} {
		of := make(chan team.Delta, maxDeltas)
		heard[name] = of
		go func() { ended <- Listen(ctx, bt, agents, func(d team.Delta) { of <- d }) }()
	}
	p := NewPublisher(bt)
	go func() { ended <- p.Run(ctx) }()
	// A subscription is made at some time: each has heard something before it counts.
	ready := func(name string, a team.AgentID) {
		brokertest.Until(t, name+" listens", func() bool {
			select {
			case err := <-ended:
				t.Fatalf("who listens or publishes has ended: %v", err)
			default:
			}
			p.Publish(team.Delta{TeamID: "t", AgentID: a, Text: "ready"}) // what was said before it listened is lost
			return len(heard[name]) > 0
		})
	}
	ready("all", "coder-1")
	ready("one", "coder-1")
	ready("two", "coder-1")
	ready("subagent", sub)
	spoofed, err := codec.Marshal(team.Delta{TeamID: "t", AgentID: "coder-1", Text: "not mine"})
	if err != nil {
		t.Fatal(err)
	}
	if err := bt.Conn.NATS().Publish(subject.Live("t", "leader"), spoofed); err != nil {
		t.Fatal(err)
	}
	for _, a := range []team.AgentID{"leader", "coder-1", sub} {
		p.Publish(team.Delta{TeamID: "t", AgentID: a, Text: "last"})
	}
	for name, want := range map[string][]team.AgentID{"all": {"leader", "coder-1", sub}, "one": {"coder-1"}, "subagent": {sub}, "two": {"coder-1", sub}} {
		for _, a := range want {
			var d team.Delta
			for d.Text == "" || d.Text == "ready" {
				d = brokertest.Receive(t, "what "+string(a)+" writes is heard by "+name, heard[name])
			}
			if d.AgentID != a || d.Text != "last" {
				t.Errorf("%s: heard %q of %s, want that of %s", name, d.Text, d.AgentID, a)
			}
		}
	}
	stop()
	for range 5 {
		if err := brokertest.Receive(t, "who listens and who publishes end", ended); err != nil {
			t.Error(err)
		}
	}
}
