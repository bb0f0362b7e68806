package workspace_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"agentteam/pkg/command"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
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
// that members share it stays.
func TestBackground(t *testing.T) {
	for name, tt := range map[string]struct {
		line *team.WorkLine
		want string
	}{
		"in a tree":          {&team.WorkLine{}, "killed: the tree in which it was begun is given up, since its task is over"},
		"in a shared folder": {nil, "exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			work := workspace.Work{Team: team.Team{Line: tt.line}, Task: team.Task{ID: "T-001", Epoch: 1}}
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
			work.Task = team.Task{}
			at.Settle()
			if tt.line == nil {
				bash("bash", `{"command":"touch go"}`)
			}
			if got := <-b.ended; got != tt.want {
				t.Errorf("it ended: %q, want %q", got, tt.want)
			}
			r = bound.Run(here, tool.Call{Name: "bash", Arguments: `{"command":"echo here"}`})
			if r.IsError != (tt.line != nil) {
				t.Errorf("what is bound to that place: %+v", r)
			}
			r = bound.Run(here, tool.Call{Name: "bash", Arguments: `{"command":"echo here","run_in_background":true}`})
			if r.Code != team.InvalidState {
				t.Errorf("a subagent's command in the background: %+v", r)
			}
		})
	}
}
