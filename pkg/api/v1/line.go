package v1

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/team"
)

type diffIn struct {
	OfTeam
	Task  string `query:"task" doc:"Only what this task has changed."`
	Agent string `query:"agent" doc:"Only what the tasks of this agent have changed, but for those undone."`
	All   bool   `query:"all" doc:"Also what earlier goals have changed."`
	Stat  bool   `query:"stat" doc:"Instead of a patch a line for each file, and a summary."`
}

// branchCommit has another name in the document: the feed has entries, too.
type branchCommit gitrepo.Entry

// undoing may be left out altogether.
type undoing struct {
	As string `json:"as,omitempty" doc:"The person's seat in whose name; left out, the user."`

	_ struct{} `additionalProperties:"false"`
}

type undoIn struct {
	OfTask
	Body *undoing
}

type teamShown struct {
	Body struct {
		team.Team
		BranchHead gitrepo.Hash `json:"branch_head,omitempty" doc:"The commit that has the work of all completed tasks; left out if the team never had a line."`
	} `nameHint:"TeamShown"`
}

// gitTime limits git's time for an integration branch that this machine does not have yet.
const gitTime = 2 * time.Minute

func (s *service) branch() {
	addOf(s, operation{
		id: "get-diff", method: http.MethodGet, path: "/v1/teams/{team}/diff", tag: tagTasks, summary: "Show what completed tasks have changed", more: gitTime,
		doc: "What the team's line has changed since the present goal began, as a patch of at most 1 MiB; truncated tells that there is more. " +
			"Of a task whose work was not merged, or not finished, it is that work, with returned set. " +
			"Where members share the workspace it is what file tools have changed; what commands have is not known.",
	}, diff)
	add(s, operation{
		id: "undo-task", method: http.MethodPost, path: "/v1/teams/{team}/tasks/{task}/undo", tag: tagTasks, summary: "Take back what a completed task has changed", more: gitTime,
		doc: "A commit of the line takes it back. The task stays completed, undone is that commit, and the leader gets mail. It is a conflict if later work builds on it. " +
			"A task that was undone before is returned.",
	}, func(ctx context.Context, in *undoIn) (*taskOut, error) {
		t, id, err := s.task(ctx, in.OfTask)
		if err != nil {
			return nil, err
		}
		said := *cmp.Or(in.Body, &undoing{})
		as, err := nameOf(said.As)
		if err != nil {
			return nil, err
		}
		task, _, err := t.Branch().Undo(ctx, id, as)
		if err != nil {
			return nil, err
		}
		v, err := t.Board().View(ctx, task)
		if err != nil {
			return nil, err
		}
		return taskAnswer(v), nil
	})
}

func diff(ctx context.Context, t *client.Team, in *diffIn) (*answer[client.Diff], error) {
	o := client.DiffOptions{All: in.All}
	var err error
	if in.Task != "" {
		o.Task, err = team.ParseTaskID(in.Task)
	}
	if err == nil {
		o.Agent, err = nameOf(in.Agent)
	}
	if err != nil {
		return nil, err
	}
	if in.Stat {
		o.Form = gitrepo.Stat
	}
	d, err := t.Branch().Diff(ctx, o)
	if team.CodeOf(err) == team.InvalidState { // there is nothing to be shown
		err = team.Errorf(team.NotFound, "%w", err).WithHint("%s", team.HintOf(err))
	}
	return &answer[client.Diff]{d}, err
}

func showTeam(ctx context.Context, t *client.Team, _ *struct{ OfTeam }) (*teamShown, error) {
	var out teamShown
	var err error
	if out.Body.Team, err = t.Record(ctx); err == nil {
		out.Body.BranchHead, err = t.Branch().Head(ctx)
	}
	return &out, err
}
