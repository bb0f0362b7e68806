package live

import (
	"context"
	"testing"
	"time"

	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/wire"
)

// What agents and their subagents write is heard by who listens to all or to them, and what one
// publishes in the name of another by nobody.
func TestListen(t *testing.T) {
	bt := brokertest.Team(t, "t")
	ctx, stop := context.WithCancel(t.Context())
	sub := team.Subagent("coder-1", "a1b2c3")
	heard := map[string]chan team.Delta{}
	ended := make(chan error)
	for name, agents := range map[string][]team.AgentID{"all": nil, "one": {"coder-1"}, "subagent": {sub}, "two": {"coder-1", sub}} {
		of := make(chan team.Delta, maxDeltas)
		heard[name] = of
		go func() { ended <- Listen(ctx, bt, agents, func(d team.Delta) { of <- d }) }()
	}
	p := NewPublisher(bt)
	go func() { ended <- p.Run(ctx) }()
	// A subscription is made at some time: each has heard something before it counts.
	ready := func(name string, a team.AgentID) {
		for {
			p.Tell(team.Delta{TeamID: "t", AgentID: a, Text: "ready"})
			select {
			case <-heard[name]:
				return
			case <-time.After(10 * time.Millisecond): // what was said before it listened is lost
			}
		}
	}
	ready("all", "coder-1")
	ready("one", "coder-1")
	ready("two", "coder-1")
	ready("subagent", sub)
	spoofed, err := wire.Marshal(team.Delta{TeamID: "t", AgentID: "coder-1", Text: "not mine"})
	if err != nil {
		t.Fatal(err)
	}
	if err := bt.Conn.NATS().Publish(subject.Live("t", "leader"), spoofed); err != nil {
		t.Fatal(err)
	}
	for _, a := range []team.AgentID{"leader", "coder-1", sub} {
		p.Tell(team.Delta{TeamID: "t", AgentID: a, Text: "last"})
	}
	for name, want := range map[string][]team.AgentID{"all": {"leader", "coder-1", sub}, "one": {"coder-1"}, "subagent": {sub}, "two": {"coder-1", sub}} {
		for _, a := range want {
			d := <-heard[name]
			for d.Text == "ready" {
				d = <-heard[name]
			}
			if d.AgentID != a || d.Text != "last" {
				t.Errorf("%s: heard %q of %s, want that of %s", name, d.Text, d.AgentID, a)
			}
		}
	}
	stop()
	for range 5 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
