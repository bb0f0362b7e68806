package workspace_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// beside runs what is begun in the background, and has how each ended.
type beside struct {
	out   strings.Builder
	ended chan string
}

func (b *beside) begin(is team.Job, run func(context.Context, io.Writer) string) (team.Job, error) {
	is.ID = "b1a2b3c"
	go func() { b.ended <- run(context.Background(), &b.out) }()
	return is, nil
}

// A command in the background runs beside the calls, and ends with the tree of its task; in a folder
// that members share it stays, and so in the tree of who holds no task, which follows the line.
func TestBackground(t *testing.T) {
	task, line := team.Task{ID: "T-001", Epoch: 1}, team.Team{Branch: &team.GoalBranch{}}
	const left = "its owner has left the tree in which it was begun"
	for name, tt := range map[string]struct {
		work, then workspace.Work
		ends       string // "" = nothing ends it
	}{
		"its task is over, in a tree":          {workspace.Work{Team: line, Task: task}, workspace.Work{Team: line, Head: "h1"}, left},
		"its task is over, in a shared folder": {workspace.Work{Task: task}, workspace.Work{}, ""},
		"no task, and the line moves":          {workspace.Work{Team: line, Head: "h1"}, workspace.Work{Team: line, Head: "h2"}, ""},
		"no task, and its owner claims one":    {workspace.Work{Team: line, Head: "h1"}, workspace.Work{Team: line, Task: task}, left},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			work := tt.work
			b := beside{ended: make(chan string, 1)}
			at := workspace.Follow(workspace.Shared{Dir: dir, Runner: command.Plain{}}, func() workspace.Work { return work }, workspace.Options{Begin: b.begin})
			defer at.Close()
			set, err := tool.NewSet(nil, at.Tools()...)
			if err != nil {
				t.Fatal(err)
			}
			bash := func(name, args string) tool.Result {
				return set.Run(t.Context(), tool.Call{Name: name, Arguments: args})
			}
			r := bash("Bash", `{"command":"until test -e go; do sleep 0.02; done; echo built; exit 3","run_in_background":true,"description":"build"}`)
			if r.IsError || !strings.Contains(r.Content, "b1a2b3c runs in the background") || len(r.Effects.Jobs) != 1 {
				t.Fatalf("%+v", r)
			}
			if r := bash("bash", `{"command":"echo now"}`); r.Content != "now\n" {
				t.Errorf("%q", r.Content)
			}
			here := at.Here()(t.Context())
			bound, err := tool.NewSet(nil, at.Bound()...)
			if err != nil {
				t.Fatal(err)
			}
			work = tt.then
			at.Settle()
			want := "killed: " + tt.ends
			if r := bash("bash", `{"command":"echo then"}`); r.Content != "then\n" {
				t.Errorf("%q", r.Content)
			}
			if tt.ends == "" {
				want = "exit status 3"
				bash("bash", `{"command":"touch go"}`)
			}
			if got := brokertest.Receive(t, "the command ends", b.ended); got != want {
				t.Errorf("it ended: %q, want %q", got, want)
			}
			r = bound.Run(here, tool.Call{Name: "bash", Arguments: `{"command":"echo here"}`})
			if r.IsError != (tt.ends != "") {
				t.Errorf("what is bound to that place: %+v", r)
			}
			r = bound.Run(here, tool.Call{Name: "bash", Arguments: `{"command":"echo here","run_in_background":true}`})
			if r.Code != team.InvalidState {
				t.Errorf("a subagent's command in the background: %+v", r)
			}
		})
	}
}
