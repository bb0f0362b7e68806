package tool_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// A gate's refusal may have the agent wait, however it is wrapped; any other has no effects.
func TestAwaiting(t *testing.T) {
	var refusal error
	set := newSet(t, returns("kill", "done", nil)).Behind(func(context.Context, tool.Request) error { return refusal })
	denied := team.Errorf(team.PermissionDenied, "a person has to allow it")
	refusal = fmt.Errorf("kill was not run: %w", tool.With(denied, tool.Effects{Await: &team.Await{Plan: "9f0c", Permission: true}}))
	r := set.Run(t.Context(), tool.Call{Name: "kill"})
	if !r.IsError || r.Code != team.PermissionDenied || !strings.Contains(r.Content, "a person has to allow it") || r.Effects.Await == nil || r.Effects.Await.Plan != "9f0c" {
		t.Errorf("%+v", r)
	}
	refusal = denied
	if r := set.Run(t.Context(), tool.Call{Name: "kill"}); !r.IsError || r.Effects.Await != nil {
		t.Errorf("%+v", r)
	}
}
