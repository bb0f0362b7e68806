package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// An agent that makes the same calls after each compaction is told so; then its task goes
// back. Three such runs park it.
func TestCirclesAcrossCompactions(t *testing.T) {
	t.Parallel()
	loop(t, func(t *testing.T, r *rig) {
		works(r, 1000, "read_file", `{"path":"a.go"}`)
		ask, turn := r.model, 0
		r.model = func(ctx context.Context, req model.Request) (model.Reply, error) {
			reply, err := ask(ctx, req)
			for i := range reply.Message.ToolCalls { // seven files in turns
				turn++
				reply.Message.ToolCalls[i].Arguments = fmt.Sprintf(`{"path":"%d.go"}`, turn%7)
			}
			return reply, err
		}
		r.tools["read_file"] = func(_ context.Context, c tool.Call) tool.Result {
			return tool.Result{Content: strings.Repeat("line of "+c.Arguments+"\n", 350)}
		}
		r.start()
		r.offer()
		if n := strings.Count(r.notes(), "the same calls again and again"); n == 0 {
			t.Errorf("it is not told")
		}
		if r.task().Status == team.InProgress || len(r.asked) > 500 {
			t.Errorf("after %d calls the task is %s", len(r.asked), r.task().Status)
		}
	})
}

// So it is where only refusals say that the conversation is full.
func TestCirclesAcrossRefusals(t *testing.T) {
	t.Parallel()
	loop(t, func(t *testing.T, r *rig) {
		asked, turn := 0, 0
		r.model = func(_ context.Context, req model.Request) (model.Reply, error) {
			if asked++; sizeOf(req.Messages) > 20_000 {
				return model.Reply{}, no(model.Compact, model.ContextLength)
			}
			reply := r.reply("!read_file")
			turn++
			reply.Message.ToolCalls[0].ID = fmt.Sprintf("call%d", turn)
			reply.Message.ToolCalls[0].Arguments = fmt.Sprintf(`{"path":"%d.go"}`, turn%7)
			return reply, nil
		}
		r.tools["read_file"] = func(_ context.Context, c tool.Call) tool.Result {
			if asked > 1000 {
				r.cancel()
			}
			return tool.Result{Content: strings.Repeat("line of "+c.Arguments+"\n", 350)}
		}
		r.start()
		r.offer()
		if n := strings.Count(r.notes(), "the same calls again and again"); n == 0 || asked > 500 || r.task().Status == team.InProgress {
			t.Errorf("after %d calls the task is %s; it is told %d times", asked, r.task().Status, n)
		}
	})
}
