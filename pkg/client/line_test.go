package client_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/git/gitrepo"
	"agentteam/pkg/git/mergequeue"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// lineRig is a team on the line, and the user's repository from which that was made.
type lineRig struct {
	*rig
	user string
	site *mergequeue.Site
}

// git runs a script of the user in the repository and returns what it prints.
func (r *lineRig) git(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.Command("bash", "-e", "-c", script)
	cmd.Dir = r.user
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, out, &stderr)
	}
	return strings.TrimSpace(string(out))
}

func newLineRig(t *testing.T) *lineRig {
	t.Helper()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	r := &lineRig{rig: newRig(t), user: t.TempDir()}
	r.git(t, "seq 20 > numbers.txt; git init -q; git add -A; git commit -qm first")
	if _, err := r.Goals().Start(t.Context(), "count", r.user); err != nil {
		t.Fatal(err)
	}
	r.begin(t)
	return r
}

// begin begins the line as the leader does, at the checkout's HEAD.
func (r *lineRig) begin(t *testing.T) {
	t.Helper()
	site, err := mergequeue.At(t.Context(), "", r.bt, record(t, r.Team))
	if err != nil {
		t.Fatal(err)
	}
	c, err := gitrepo.Inspect(t.Context(), r.user)
	if err == nil {
		err = site.Repo.Fetch(t.Context(), c)
	}
	if err == nil {
		err = site.Advance(t.Context(), "", c.Head)
	}
	if err == nil {
		_, err = r.registry.Edit(t.Context(), r.bt, func(t *team.Team) { t.Branch = &team.GoalBranch{Goal: t.GoalNumber, Begun: string(c.Head)} })
	}
	if err != nil {
		t.Fatal(err)
	}
	r.site = site
}

// done has an agent do a task, whose work is merged.
func (r *lineRig) done(t *testing.T, by team.AgentID, title, script string) team.Task {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tasks, err := r.board.Create(ctx, team.Leader, team.NewTask{Title: title})
	must(err)
	id, h := tasks[0].ID, team.Holder{Agent: by, Incarnation: 1}
	task, err := r.board.Claim(ctx, id, h)
	must(err)
	head, err := r.site.Bring(ctx)
	must(err)
	tr, err := r.site.Repo.Tree(ctx, gitrepo.Plan{Name: strings.ToLower(string(id)), At: head, Member: by})
	must(err)
	m := gitrepo.Message{Subject: title, Agent: by, Task: id}
	run := exec.Command("bash", "-e", "-c", script)
	run.Dir = tr.Dir
	must(run.Run())
	bundle, _, err := tr.Commit(ctx, command.Plain{}, m)
	must(err)
	must(tr.Remove())
	commit, err := r.site.Repo.Import(ctx, bundle, head)
	must(err)
	must(r.site.Advance(ctx, head, commit))
	task, err = r.board.Complete(ctx, id, h, task.Epoch, team.Done{Summary: "done", Commit: string(commit)})
	must(err)
	return task
}

// at returns a file of the line's head.
func (r *lineRig) at(t *testing.T, name string) string {
	t.Helper()
	head, err := r.site.Bring(t.Context())
	dir := filepath.Join(t.TempDir(), "export")
	if err == nil {
		err = r.site.Repo.Export(t.Context(), head, dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// says checks an error's code and that it has these words, its hint too.
func says(t *testing.T, what string, err error, code team.Code, words ...string) {
	t.Helper()
	wantCode(t, what, err, code)
	for _, w := range words {
		if err != nil && !strings.Contains(team.Line(err), w) {
			t.Errorf("%s: %q does not have %q", what, team.Line(err), w)
		}
	}
}

// diff is Line.Diff that works.
func (r *lineRig) diff(t *testing.T, o client.DiffOptions) client.Diff {
	t.Helper()
	d, err := r.Branch().Diff(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The line shows what all tasks, one of them, or those of one agent have changed, also on a machine
// that has none of it yet.
func TestLineDiff(t *testing.T) {
	r := newLineRig(t)
	one := r.done(t, "coder-1", "Edit three", "sed -i s/^3$/three/ numbers.txt")
	r.done(t, "coder-2", "Add a file", "echo new > new.txt")
	gone := r.done(t, "coder-1", "Add another", "echo x > x.txt")
	if _, _, err := r.Branch().Undo(t.Context(), gone.ID, ""); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // another machine
	whole := r.diff(t, client.DiffOptions{})
	if len(whole.Files) != 2 || len(whole.Commits) != 4 || !strings.Contains(whole.Text, "+three") || !strings.Contains(whole.Text, "+new") || whole.Cut {
		t.Errorf("the whole diff is %+v", whole)
	}
	if whole.Branch != "agentteam/t" || whole.Commits[3].Undoes != gone.ID || string(whole.Commits[0].Commit) != one.Commit {
		t.Errorf("branch %q, commits %+v", whole.Branch, whole.Commits)
	}
	if d := r.diff(t, client.DiffOptions{Task: one.ID}); strings.Contains(d.Text, "new") || !strings.Contains(d.Text, "+three") || string(d.Head) != one.Commit || len(d.Commits) != 1 {
		t.Errorf("that of %s is %+v", one.ID, d)
	}
	d := r.diff(t, client.DiffOptions{Agent: "coder-1"})
	if len(d.Files) != 1 || d.Files[0] != (gitrepo.File{Path: "numbers.txt", Added: 1, Deleted: 1}) || strings.Contains(d.Text, "x.txt") || !strings.Contains(d.Text, "T-001: Edit three") {
		t.Errorf("that of coder-1 is %+v", d)
	}
	if d := r.diff(t, client.DiffOptions{Form: gitrepo.Stat}); !strings.Contains(d.Text, "2 files changed") {
		t.Errorf("the stat is %q", d.Text)
	}
	if d := r.diff(t, client.DiffOptions{Most: 60}); !d.Cut || len(d.Text) > 60 || len(d.Files) != 2 {
		t.Errorf("of 60 bytes it is %+v", d)
	}
	_, err := r.Branch().Diff(t.Context(), client.DiffOptions{Task: "T-009"})
	wantCode(t, "no such task", err, team.NotFound)
	_, err = r.Branch().Diff(t.Context(), client.DiffOptions{Task: one.ID, Agent: "coder-1"})
	wantCode(t, "a task and an agent", err, team.InvalidArgument)
}

// What an earlier goal has changed is shown only when it is asked for.
func TestLineOfThisGoal(t *testing.T) {
	r := newLineRig(t)
	r.done(t, "coder-1", "Edit three", "sed -i s/^3$/three/ numbers.txt")
	head, err := r.site.Bring(t.Context())
	if err == nil {
		_, err = r.registry.Edit(t.Context(), r.bt, func(t *team.Team) { t.Branch.Begun = string(head) })
	}
	if err != nil {
		t.Fatal(err)
	}
	two := r.done(t, "coder-1", "Edit nine", "sed -i s/^9$/nine/ numbers.txt")
	for all, want := range map[bool]int{false: 1, true: 2} {
		log, err := r.Branch().Log(t.Context(), all)
		if err != nil || len(log) != want || log[want-1].Task != two.ID {
			t.Errorf("all %v: %+v, %v", all, log, err)
		}
		if d := r.diff(t, client.DiffOptions{All: all}); strings.Contains(d.Text, "+three") != all || !strings.Contains(d.Text, "+nine") {
			t.Errorf("all %v: %s", all, d.Text)
		}
	}
}

// A task is undone once, whoever asks and however often; its record, its history and its leader know.
func TestUndo(t *testing.T) {
	r := newLineRig(t)
	one := r.done(t, "coder-1", "Edit three", "sed -i s/^3$/three/ numbers.txt")
	r.done(t, "coder-1", "Edit nine", "sed -i s/^9$/nine/ numbers.txt")
	const callers = 4
	var wg sync.WaitGroup
	var got [callers]team.Task
	for i := range callers {
		wg.Go(func() {
			var err error
			if got[i], _, err = r.Branch().Undo(t.Context(), one.ID, ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	task, err := r.board.Get(t.Context(), one.ID)
	if err != nil || task.Undone == "" || task.Status != team.Completed || task.Commit != one.Commit {
		t.Fatalf("it is %+v, %v", task, err)
	}
	for _, g := range got {
		if g.Undone != task.Undone {
			t.Errorf("a caller got %q, the record has %q", g.Undone, task.Undone)
		}
	}
	if again, undone, err := r.Branch().Undo(t.Context(), one.ID, ""); err != nil || undone || again.Revision != task.Revision {
		t.Errorf("again: %v, %v, revision %d, was %d", undone, err, again.Revision, task.Revision)
	}
	if text := r.at(t, "numbers.txt"); strings.Contains(text, "three") || !strings.Contains(text, "\n3\n") || !strings.Contains(text, "nine") {
		t.Errorf("the line has %q", text)
	}
	log, err := r.Branch().Log(t.Context(), false)
	if err != nil || len(log) != 3 || log[2].Undoes != one.ID || log[2].Agent != team.UserAgent {
		t.Errorf("the line is %+v, %v", log, err)
	}
	steps, _, err := r.Board().History(t.Context(), one.ID)
	if last := steps[len(steps)-1]; err != nil || last.What != "undone" || !strings.Contains(last.Why, task.Undone) || last.By != team.UserAgent {
		t.Errorf("its history ends with %+v, %v", last, err)
	}
	var mails []client.StoredMessage
	for _, l := range r.inbox(t, team.Leader) {
		if strings.Contains(l.Content, string(one.ID)) {
			mails = append(mails, l)
		}
	}
	if len(mails) != 1 || mails[0].From != team.UserAgent || !strings.Contains(mails[0].Content, "Edit three") {
		t.Errorf("the leader has %+v", mails)
	}
}

// One who undid a task in the line and was killed then, is followed by one who ends that.
func TestUndoIsEnded(t *testing.T) {
	r := newLineRig(t)
	one := r.done(t, "coder-1", "Edit three", "sed -i s/^3$/three/ numbers.txt")
	head, err := r.site.Bring(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	half, err := r.site.Repo.Undo(t.Context(), head, gitrepo.Hash(one.Commit), gitrepo.Message{Subject: "Undo", Agent: team.UserAgent, Undoes: one.ID})
	if err == nil {
		err = r.site.Advance(t.Context(), head, half)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.done(t, "coder-1", "Edit three otherwise", "sed -i s/^3$/drei/ numbers.txt")
	task, undone, err := r.Branch().Undo(t.Context(), one.ID, "")
	if err != nil || !undone || task.Undone != string(half) || !strings.Contains(r.at(t, "numbers.txt"), "drei") {
		t.Errorf("it is %q, %v, %v; want %s", task.Undone, undone, err, half)
	}
}

func TestUndoIsRefused(t *testing.T) {
	r := newLineRig(t)
	one := r.done(t, "coder-1", "Edit three", "sed -i s/^3$/three/ numbers.txt")
	r.done(t, "coder-2", "Edit three again", "sed -i s/^three$/THREE/ numbers.txt")
	_, _, err := r.Branch().Undo(t.Context(), one.ID, "")
	says(t, "later work", err, team.InvalidState, "T-001", "T-002", "numbers.txt")
	open, err := r.board.Create(t.Context(), team.Leader, team.NewTask{Title: "Open"})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = r.Branch().Undo(t.Context(), open[0].ID, "")
	says(t, "an open task", err, team.InvalidState, "T-003", "pending")
	_, err = r.Branch().Diff(t.Context(), client.DiffOptions{Task: open[0].ID})
	says(t, "the difference of an open task", err, team.InvalidState, "T-003 is pending: what a task has changed is shown once it is merged", "tasks history T-003")
	h := team.Holder{Agent: "coder-1", Incarnation: 1}
	if task, err := r.board.Claim(t.Context(), open[0].ID, h); err != nil {
		t.Fatal(err)
	} else if _, err := r.board.Complete(t.Context(), task.ID, h, task.Epoch, team.Done{Summary: "nothing to do"}); err != nil {
		t.Fatal(err)
	}
	_, _, err = r.Branch().Undo(t.Context(), open[0].ID, "")
	says(t, "a task without a commit", err, team.InvalidState, "has merged no commit")
	_, _, err = r.Branch().Undo(t.Context(), "T-009", "")
	wantCode(t, "no such task", err, team.NotFound)
	_, _, err = r.Branch().Undo(t.Context(), one.ID, r.join(t).AgentID)
	wantCode(t, "in an agent's name", err, team.PermissionDenied)
	if task, err := r.board.Get(t.Context(), one.ID); err != nil || task.Undone != "" {
		t.Errorf("%+v, %v", task, err)
	}
	_, err = makeTeam(t, r.client, client.NewTeam{ID: "shared"}).Branch().Log(t.Context(), false)
	says(t, "a shared team", err, team.InvalidState, "share the workspace")
}

// The difference of a task in progress is what its holder has written so far, new and removed files too, and leaves its tree as
// it is. Without the tree one line states on which host it is.
func TestDiffOfATaskInProgress(t *testing.T) {
	r := newLineRig(t)
	m := r.join(t)
	tasks, err := r.board.Create(t.Context(), team.Leader, team.NewTask{Title: "Open"})
	if err != nil {
		t.Fatal(err)
	}
	task, err := r.board.Claim(t.Context(), tasks[0].ID, m.Holder())
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Branch().Diff(t.Context(), client.DiffOptions{Task: task.ID})
	says(t, "without a tree", err, team.InvalidState, "what "+string(m.AgentID)+" has changed for T-001 so far is in its tree on host ", "run `teamctl diff T-001` there")
	if m.Host, err = os.Hostname(); err == nil {
		m, err = r.roster.Put(t.Context(), m)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Branch().Diff(t.Context(), client.DiffOptions{Task: task.ID})
	says(t, "before its first change here", err, team.InvalidState, "has changed nothing for T-001 yet", "teamctl agents transcript")
	head, err := r.site.Bring(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tr, err := r.site.Repo.Tree(t.Context(), gitrepo.Plan{Name: fmt.Sprintf("t-001.%s.%s", m.AgentID, strconv.FormatInt(task.ClaimedAt.UnixMilli(), 36)), At: head, Member: m.AgentID})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if d := r.diff(t, client.DiffOptions{Task: task.ID}); !d.Live || len(d.Files) > 0 || d.From != head {
		t.Errorf("of an unchanged tree: %+v", d)
	}
	sh := func(script string) string {
		run := exec.Command("bash", "-ec", script)
		run.Dir = tr.Dir
		out, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	sh("sed -i s/^3$/three/ numbers.txt; echo new >new.txt; echo staged >staged; git add staged")
	before := sh("git status --porcelain")
	sh("git config core.fsmonitor 'touch run; false'; mkdir -p .git/info; echo '* filter=f' >.git/info/attributes; git config filter.f.clean 'touch run; cat'")
	d := r.diff(t, client.DiffOptions{Task: task.ID})
	var names []string
	for _, f := range d.Files {
		names = append(names, f.Path)
	}
	if got := strings.Join(names, " "); got != "new.txt numbers.txt staged" || !d.Live || d.Returned || !strings.Contains(d.Text, "-3\n+three\n") {
		t.Errorf("it shows %s: %+v", got, d)
	}
	if after := sh("git config --unset core.fsmonitor; rm .git/info/attributes; git status --porcelain"); after != before {
		t.Errorf("its tree had\n%s, and has\n%s", before, after)
	}
}

// Landing brings the checkout forward, and refuses one with changes or other commits; publishing
// makes the branch only.
func TestLand(t *testing.T) {
	r := newLineRig(t)
	r.done(t, "coder-1", "Edit three", "sed -i s/^3$/three/ numbers.txt")
	land := func(f func(client.Branch, context.Context, string) (client.Diff, error)) (client.Diff, error) {
		t.Helper()
		return f(r.Branch(), t.Context(), r.user)
	}
	r.git(t, "echo mine >> numbers.txt")
	_, err := land(client.Branch.Land)
	says(t, "a checkout with changes", err, team.InvalidState, "numbers.txt", "git stash")
	r.git(t, "git checkout -q numbers.txt; git commit -q --allow-empty -m mine")
	_, err = land(client.Branch.Land)
	says(t, "a checkout that has moved", err, team.InvalidState, "git merge agentteam/t")
	if r.git(t, "git log -1 --format=%s agentteam/t; git log -1 --format=%s") != "Edit three\nmine" {
		t.Error("the branch that is to be merged is not there, or the checkout has moved")
	}
	r.git(t, "git reset -q --hard HEAD~1; git branch -qD agentteam/t")
	d, err := land(client.Branch.Publish)
	if err != nil || r.git(t, "git rev-parse agentteam/t") != string(d.Head) || r.git(t, "git rev-parse HEAD") != string(d.From) || d.From == d.Head {
		t.Errorf("published %+v, %v", d, err)
	}
	d, err = land(client.Branch.Land)
	if err != nil || len(d.Commits) != 1 || len(d.Files) != 1 || r.git(t, "git rev-parse HEAD") != string(d.Head) || r.git(t, "grep -c three numbers.txt") != "1" {
		t.Errorf("landed %+v, %v", d, err)
	}
	r.git(t, "git commit -q --allow-empty -m mine")
	if d, err := land(client.Branch.Land); err != nil || len(d.Commits) != 0 || d.From != d.Head {
		t.Errorf("a checkout that has it already: %+v, %v", d, err)
	}
	_, err = r.Branch().Land(t.Context(), t.TempDir())
	wantCode(t, "no checkout", err, team.NotFound)
}

// What members have done in trees, and the repository of the user lacks, is deleted by force only.
func TestDeleteTeamWithWork(t *testing.T) {
	r := newLineRig(t)
	r.done(t, "coder-1", "Edit three", "sed -i s/^3$/three/ numbers.txt")
	r.end(t, "done")
	_, err := r.client.DeleteTeam(t.Context(), "t", false, 0)
	says(t, "work that is nowhere else", err, team.Conflict, r.user, "teamctl land --publish --team t", "--force")
	d, err := r.Branch().Publish(t.Context(), r.user)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.DeleteTeam(t.Context(), "t", false, 0); err != nil || r.git(t, "git rev-parse agentteam/t") != string(d.Head) {
		t.Errorf("with the branch: %v", err)
	}
}
