package runtime

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/agent"
	"agentteam/pkg/execenv/projectcontext"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/workspace"
)

// In delegate mode the leader does not see the tools of the workspace, and is refused them, also if the
// mode begins while it works. Teammates have them, and the leader has them again afterwards.
func TestDelegateMode(t *testing.T) {
	files := toolNames(new(workspace.Current).Tools())
	for _, tt := range []struct {
		agent       team.AgentID
		began, now  bool // the mode held when it began, and holds now
		told, calls bool
	}{
		{team.Leader, false, false, true, true},
		{team.Leader, true, true, false, false},
		{team.Leader, false, true, false, false},
		{team.Leader, true, false, true, true},
		{"coder-1", true, true, true, true},
	} {
		o := Options{Member: team.Member{AgentID: tt.agent}, Logger: slog.New(slog.DiscardHandler), Record: team.Team{Policies: team.Policies{Delegate: tt.began}}}
		m := &member{Options: o}
		m.newest.Store(&o.Record)
		all, led, err := m.tools(&workspace.Current{}, nil, &agent.Conversation{})
		if err != nil {
			t.Fatal(err)
		}
		mode := m.mode(projectcontext.Place{}, all, led)
		m.newest.Store(&team.Team{Policies: team.Policies{Delegate: tt.now}})
		system, set := mode()
		told := slices.ContainsFunc(set.Specs(), func(s tool.Spec) bool { return slices.Contains(files, s.Name) })
		if told != tt.told {
			t.Errorf("%+v: it sees tools of the workspace: %v", tt, told)
		}
		if !tt.calls { // nor has it one that is in the middle of a turn
			got := all.Run(t.Context(), tool.Call{ID: "1", Name: "read_file", Arguments: `{"path":"a"}`})
			if !got.IsError || !strings.Contains(got.Content, "delegate mode") {
				t.Errorf("%+v: read_file: %+v", tt, got)
			}
		}
		if says := strings.Contains(system, "# Delegate mode"); says != (tt.agent == team.Leader && tt.now) {
			t.Errorf("%+v: the prompt speaks of it: %v", tt, says)
		}
	}
}

// The system message states where the member works, also if that changes while it does.
func TestSystemStatesWhereItWorks(t *testing.T) {
	trees, shared := &team.GoalBranch{}, &team.GoalBranch{Why: "isolation: shared"}
	for _, tt := range []struct {
		began, now *team.GoalBranch
		want       string
	}{
		{shared, shared, "workspace: /srv (the shell starts here, paths are relative to it). The whole team works in it"},
		{nil, trees, "workspace: a separate tree of the repository for each task"},
		{trees, trees, "workspace: a separate tree of the repository for each task"},
		{trees, shared, "workspace: . (the shell starts here, paths are relative to it). The whole team works in it"},
	} {
		m := &member{Options: Options{Member: team.Member{AgentID: "coder-1"}, Record: team.Team{Branch: tt.began}}}
		mode := m.mode(projectcontext.Place{Workspace: "/srv"}, nil, nil)
		m.newest.Store(&team.Team{Branch: tt.now})
		if system, _ := mode(); !strings.Contains(system, tt.want) || strings.Count(system, "workspace: ") != 1 {
			t.Errorf("from %+v to %+v: it is given\n%s", tt.began, tt.now, system)
		}
	}
}
