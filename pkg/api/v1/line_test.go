package v1_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// merged has the team work on the line, and coder-1 complete a task, T-001, with a file.
func (r *rig) merged(t *testing.T) (commit gitrepo.Hash) {
	t.Helper()
	ctx, home := t.Context(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = Ada\n\temail = ada@example.org\n"), 0o600))
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	script := exec.Command("bash", "-ec", "echo a > a.txt; git init -q; git add -A; git commit -qm first")
	script.Dir = r.dir
	must(script.Run())
	record, err := r.team.Record(ctx)
	must(err)
	site, err := mergequeue.At(ctx, "", r.bt, record)
	must(err)
	c, err := gitrepo.Inspect(ctx, r.dir)
	must(err)
	must(site.Repo.Fetch(ctx, c))
	must(site.Advance(ctx, "", c.Head))
	tasks, err := r.board.Create(ctx, team.Leader, team.NewTask{Title: "Add b"})
	must(err)
	h := team.Holder{Agent: "coder-1", Incarnation: 1}
	task, err := r.board.Claim(ctx, tasks[0].ID, h)
	must(err)
	tree, err := site.Repo.Tree(ctx, gitrepo.Plan{Name: "one", At: c.Head, Member: h.Agent})
	must(err)
	must(os.WriteFile(filepath.Join(tree.Dir, "b.txt"), []byte("bee\n"), 0o600))
	bundle, _, err := tree.Commit(ctx, command.Plain{}, gitrepo.Message{Subject: "Add b", Agent: h.Agent, Task: task.ID})
	must(err)
	must(tree.Remove())
	commit, err = site.Repo.Import(ctx, bundle, c.Head)
	must(err)
	must(site.Advance(ctx, c.Head, commit))
	_, err = r.board.Complete(ctx, task.ID, h, task.Epoch, team.Done{Summary: "done", Commit: string(commit)})
	must(err)
	return commit
}

func TestLine(t *testing.T) {
	r := newRig(t)
	r.all(t, []ask{
		{name: "a shared team", do: "GET /v1/teams/t/diff", want: 200, says: []string{`"branch":""`, `"files":[]`, `"diff":""`}},
		{name: "its head", do: "GET /v1/teams/t", want: 200, says: []string{`"id":"t"`, "!line_head"}},
	})
	head := string(r.merged(t))
	r.all(t, []ask{
		{name: "the head", do: "GET /v1/teams/t", want: 200, says: []string{`"id":"t"`, `"branch_head":"` + head + `"`}},
		{name: "all", do: "GET /v1/teams/t/diff", want: 200, says: []string{`"branch":"agentteam/t"`, `"head":"` + head + `"`, `"path":"b.txt"`, `+bee`, `"task":"T-001"`, `"truncated":false`}},
		{name: "in short", do: "GET /v1/teams/t/diff?stat=true", want: 200, says: []string{`1 file changed`, `!+bee`}},
		{name: "of a task", do: "GET /v1/teams/t/diff?task=1", want: 200, says: []string{`+bee`}},
		{name: "of an agent", do: "GET /v1/teams/t/diff?agent=coder-1&all=true", want: 200, says: []string{`+bee`}},
		{name: "of another", do: "GET /v1/teams/t/diff?agent=coder-2", want: 200, says: []string{`"commits":[]`, `"files":[]`}},
		{name: "of both", do: "GET /v1/teams/t/diff?agent=coder-1&task=1", want: 422, code: team.InvalidArgument},
		{name: "of no task", do: "GET /v1/teams/t/diff?task=T-009", want: 404, code: team.NotFound, says: []string{"T-009"}},
		{name: "of no name", do: "GET /v1/teams/t/diff?agent=A*", want: 422, code: team.InvalidArgument},
		{name: "of no team", do: "GET /v1/teams/green/diff", want: 404, code: team.NotFound},
		{name: "undo", do: "POST /v1/teams/t/tasks/T-001/undo", want: 200, says: []string{`"status":"completed"`, `"commit":"` + head + `"`, `"undone":"`}},
		{name: "undo again", do: "POST /v1/teams/t/tasks/T-001/undo", body: `{}`, want: 200, says: []string{`"undone":"`}},
		{name: "undone", do: "GET /v1/teams/t/diff", want: 200, says: []string{`"undoes":"T-001"`, `"files":[]`, `"diff":""`}},
		{name: "undo as nobody", do: "POST /v1/teams/t/tasks/T-001/undo", body: `{"as":"zoe"}`, want: 404, code: team.NotFound, says: []string{"zoe"}},
		{name: "undo no task", do: "POST /v1/teams/t/tasks/T-009/undo", want: 404, code: team.NotFound},
		{name: "add one", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"open"}]}`, want: 201},
		{name: "undo one that is open", do: "POST /v1/teams/t/tasks/T-002/undo", want: 409, code: team.InvalidState, says: []string{"T-002 is pending"}},
		{name: "an unknown field", do: "POST /v1/teams/t/tasks/T-001/undo", body: `{"why":"x"}`, want: 422, code: team.InvalidArgument},
	})
	reg, err := registry.Open(t.Context(), r.bt.Conn)
	if err == nil {
		_, err = reg.Edit(t.Context(), r.bt, func(t *team.Team) { t.Branch = &team.GoalBranch{Goal: t.GoalNumber, Begun: head} })
	}
	if err != nil {
		t.Fatal(err)
	}
	task, err := r.board.Claim(t.Context(), "T-002", team.Holder{Agent: "coder-2", Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mergequeue.New(r.bt).Submit(t.Context(), mergequeue.Entry{Task: task.ID, Epoch: task.Epoch, Incarnation: 1, Agent: "coder-2", Base: gitrepo.Hash(head)}, []byte("bundle")); err != nil {
		t.Fatal(err)
	}
	r.all(t, []ask{
		{name: "merging", do: "GET /v1/teams/t/tasks?status=merging", want: 200, says: []string{`"total":1`, `"id":"T-002"`, `"merging":"`}},
		{name: "the graph", do: "GET /v1/teams/t/graph", want: 200, says: []string{`"id":"T-002","title":"open","status":"merging"`}},
	})
}
