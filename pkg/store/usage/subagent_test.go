package usage_test

import (
	"testing"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/usage"
)

// What a subagent uses is counted to its owner; its turns are not its owner's.
func TestSubagents(t *testing.T) {
	bt := brokertest.Team(t, "t")
	write(t, bt, "coder-1", turn(t, "T-001", 100))
	write(t, bt, "coder-1.a1b2c3d", turn(t, "T-001", 10), turn(t, "T-001", 20))
	table, err := usage.Read(t.Context(), bt, 1, 0, usage.ByAgent)
	if got := show(table); err != nil || got != "coder-1: 3 calls, 130 tokens, 0 wasted" {
		t.Errorf("%s, %v", got, err)
	}
	pasts, err := usage.Members(t.Context(), bt, "coder-1")
	if p := pasts["coder-1"]; err != nil || len(pasts) != 1 || p.Turns != 1 || p.Tokens() != 130 {
		t.Errorf("%+v, %v", pasts, err)
	}
}
