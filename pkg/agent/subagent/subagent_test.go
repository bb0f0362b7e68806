package subagent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/job"
)

// records is a journal in memory.
type records []journal.Record

func (j *records) Append(_ context.Context, r journal.Record) (journal.Record, error) {
	*j = append(*j, r)
	return r, nil
}

func (j *records) Enqueue(ctx context.Context, r journal.Record) journal.Record {
	r, _ = j.Append(ctx, r)
	return r
}

func (j *records) Flush() error { return nil }

// played is a model that the test plays.
type played func(ctx context.Context, r model.Request) (model.Reply, error)

func (p played) Complete(ctx context.Context, r model.Request, _ func(string)) (model.Reply, error) {
	return p(ctx, r)
}

func (played) Limits(string) model.Limits { return model.Limits{Window: 32_000} }

func (played) Meant(name string) (string, string) { return name, "played" }

func answers(text string) model.Reply {
	return model.Reply{Message: model.Message{Role: "assistant", Content: text}, Usage: model.Usage{PromptTokens: 100, CompletionTokens: 5}}
}

// rig is a member with the tool subagent.
type rig struct {
	tools *tool.Set
	jobs  *job.Jobs
	specs []Spec
	ends  []error
	kept  []string
}

func newRig(t *testing.T, m played) *rig {
	t.Helper()
	r := &rig{jobs: job.New(job.Options{Task: func() team.TaskID { return "T-001" }})}
	t.Cleanup(r.jobs.Close)
	look := tool.New("look", "Looks.", func(context.Context, struct{}) (tool.Output, error) { return tool.Output{Value: "nothing new"}, nil }, tool.Traits{ReadOnly: true})
	lent, err := tool.NewSet(nil, look, None())
	if err != nil {
		t.Fatal(err)
	}
	r.tools, err = tool.NewSet(nil, Tool(Options{
		Owner: "coder-1", Jobs: r.jobs, Aliases: []string{"strong", "fast"},
		Roles: func() team.Team {
			return team.Team{Roles: map[string]team.Role{team.LeaderRole: {}, "coder": {}, "tester": {MaxTurns: 2}, "watcher": {Background: true}, "planner": {}, "bash": {}, "explorer": {}}}
		},
		Open: func(_ context.Context, s Spec) (engine.Options, func(uint64, model.Usage, error), error) {
			r.specs = append(r.specs, s)
			end := func(_ uint64, _ model.Usage, err error) { r.ends = append(r.ends, err) }
			return engine.Options{Name: string(s.Name), System: "You help.", Model: m, Tools: lent, Journal: new(records), Conversation: engine.NewConversation(), Owner: free{}}, end, nil
		},
		Keep: func(_ context.Context, text string) (string, error) {
			r.kept = append(r.kept, text)
			return fmt.Sprintf("text %d", len(r.kept)), nil
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// free is an owner who lets each step begin.
type free struct{}

func (free) Leave(context.Context, engine.Step) error { return nil }
func (free) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return ctx, func() {}
}
func (free) Returned(tool.Effects, *journal.ToolResult) {}

func (r *rig) call(t *testing.T, arguments string) tool.Result {
	t.Helper()
	return r.tools.Run(t.Context(), tool.Call{ID: "c1", Name: "subagent", Arguments: arguments})
}

// Its owner gets its last text, and what it has used; its conversation bears the owner's name and
// that of the job.
func TestLastText(t *testing.T) {
	r := newRig(t, func(_ context.Context, req model.Request) (model.Reply, error) {
		if last := req.Messages[len(req.Messages)-1]; !strings.Contains(last.Content, "Count the files.") {
			return model.Reply{}, fmt.Errorf("it is asked %q", last.Content)
		}
		return answers("There are four."), nil
	})
	got := r.call(t, `{"description":"count","prompt":"Count the files.","type":"tester","model":"none such"}`)
	if got.Code != "" || !strings.HasPrefix(got.Content, "There are four.\n[a") || !strings.HasSuffix(got.Content, ": 1 turn, 105 tokens]") {
		t.Errorf("%s: %s", got.Code, got.Content)
	}
	s := r.specs[0]
	if s.Name.Owner() != "coder-1" || s.Role.Name != "tester" || s.Task != "T-001" || s.Alias != "" || r.ends[0] != nil {
		t.Errorf("%+v, ended with %v", s, r.ends)
	}
}

// One that does not come to an end is an error that states how far it came.
func TestNoEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		model played
		want  string
	}{
		"the turns of its role": {func(context.Context, model.Request) (model.Reply, error) {
			reply := answers("")
			reply.Message.ToolCalls = []model.ToolCall{{ID: "1", Name: "look", Arguments: "{}"}}
			return reply, nil
		}, "after 2 turns: it reached the limit of 2 turns of its role"},
		"its model": {func(context.Context, model.Request) (model.Reply, error) {
			return model.Reply{}, &model.Refusal{Advice: model.Park, Reason: model.BadKey, Err: errors.New("the key is wrong")}
		}, "its model gives no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tt.model)
			got := r.call(t, `{"prompt":"Look.","type":"tester"}`)
			if got.Code == "" || !strings.Contains(got.Content, tt.want) || r.ends[0] == nil {
				t.Errorf("%s: %s; it ended with %v", got.Code, got.Content, r.ends)
			}
			if left := r.jobs.List(); len(left) != 0 {
				t.Errorf("%+v are under way", left)
			}
		})
	}
}

// A long text is stored whole, and shown in part.
func TestLongLastText(t *testing.T) {
	long := strings.Repeat("A line of its report.\n", maxShown/10)
	r := newRig(t, func(context.Context, model.Request) (model.Reply, error) { return answers(long), nil })
	got := r.call(t, `{"prompt":"Report."}`)
	if len(got.Content) > maxShown+500 || !strings.Contains(got.Content, "text 1") || len(r.kept) != 1 || r.kept[0] != strings.TrimSpace(long) && r.kept[0] != long {
		t.Errorf("%d bytes are shown, %d texts stored", len(got.Content), len(r.kept))
	}
}

// In the background the call returns at once, and its end is reported.
func TestInBackground(t *testing.T) {
	goOn := make(chan struct{})
	r := newRig(t, func(context.Context, model.Request) (model.Reply, error) { <-goOn; return answers("Done."), nil })
	got := r.call(t, `{"prompt":"Build.","run_in_background":true}`)
	if got.Code != "" || !strings.Contains(got.Content, "works in the background") || len(r.jobs.List()) != 1 {
		t.Errorf("%s: %s", got.Code, got.Content)
	}
	close(goOn)
	if end := brokertest.Receive(t, "the subagent ends", r.jobs.Ended()); !strings.Contains(end.Text, "Done.") || end.Job.Type != "coder" {
		t.Errorf("%+v", end)
	}
}

// A role may state that its subagents work in the background; a call that states something else goes before.
func TestBackgroundByRole(t *testing.T) {
	r := newRig(t, func(context.Context, model.Request) (model.Reply, error) { return answers("Watched."), nil })
	if got := r.call(t, `{"prompt":"Watch.","type":"watcher"}`); got.Code != "" || !strings.Contains(got.Content, "works in the background") {
		t.Fatalf("%s: %s", got.Code, got.Content)
	}
	if end := brokertest.Receive(t, "the subagent ends", r.jobs.Ended()); !strings.Contains(end.Text, "Watched.") || end.Job.Type != "watcher" || !end.Job.Background {
		t.Errorf("%+v", end)
	}
	if got := r.call(t, `{"prompt":"Watch.","type":"watcher","run_in_background":false}`); !strings.HasPrefix(got.Content, "Watched.\n") {
		t.Errorf("waited for: %s: %s", got.Code, got.Content)
	}
}

// The types of Claude Code are known by their names there, in its tool as in ours.
func TestForeignTypes(t *testing.T) {
	r := newRig(t, func(context.Context, model.Request) (model.Reply, error) { return answers("Done."), nil })
	for foreign, role := range map[string]string{"Plan": "planner", "Explore": "explorer", "Bash": "bash", "general-purpose": "coder"} {
		for _, c := range []tool.Call{{ID: "1", Name: "subagent", Arguments: `{"prompt":"Go.","type":"` + foreign + `"}`},
			{ID: "2", Name: "Task", Arguments: `{"description":"go","prompt":"Go.","subagent_type":"` + foreign + `"}`}} {
			if got := r.tools.Run(t.Context(), c); got.Code != "" || r.specs[len(r.specs)-1].Role.Name != role {
				t.Errorf("%s of type %s: %s", c.Name, foreign, got.Content)
			}
		}
	}
}

// What cannot be done is refused before anything is begun.
func TestRefusedCalls(t *testing.T) {
	r := newRig(t, nil)
	for _, tt := range []struct{ name, arguments, want string }{
		{"subagent", `{"prompt":" "}`, "prompt: empty"},
		{"subagent", `{"prompt":"Go.","type":"leader"}`, "there is no type"},
		{"Agent", `{"prompt":"Go.","description":"go","team_name":"t"}`, "Agent starts no teammates"},
		{"Agent", `{"prompt":"Go.","description":"go","resume":"a1b2c3"}`, "is not continued"},
	} {
		if got := r.tools.Run(t.Context(), tool.Call{ID: "c1", Name: tt.name, Arguments: tt.arguments}); got.Code == "" || !strings.Contains(got.Content, tt.want) {
			t.Errorf("%s %s: %s: %s", tt.name, tt.arguments, got.Code, got.Content)
		}
	}
	if len(r.specs) != 0 || len(r.jobs.List()) != 0 {
		t.Errorf("%d were begun", len(r.specs))
	}
}
