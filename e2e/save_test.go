package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

// savedTasks is how many tasks the goal has whose team moves to another cluster.
const savedTasks = 8

// A goal is left in the middle, its team saved, and loaded on another machine: another folder, other
// caches, another clone of the repository. There it continues to its end: every task is in the line
// once, those of before and those of after. It is worked on in one place only.
func TestSavedGoalContinuesElsewhere(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	url := rehearse(t, lineScript(3, savedTasks, ""))
	here := folder(t, url, "AGENTTEAM_LEASE=3s", "XDG_CACHE_HOME="+t.TempDir())
	repository(t, here.dir, "seq 1 20 | sed 's/^/line /' > shared.txt; echo .agentteam > .gitignore")
	run := here.follow("run", "--isolation", "worktree", "Do them")
	until(t, "some tasks are done, and others are not", func() bool { return strings.Count(run.out.String(), " completed: ") >= 2 })
	if err := run.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := wait(t, run.Cmd); code != 130 {
		t.Fatalf("interrupted: exit status %d, %s", code, run.errs.String())
	}
	file := filepath.Join(t.TempDir(), "team.save")
	here.ok("save", file)
	if code, _, errs := exit(t, here.command("run", "--resume")); code != 4 || !strings.Contains(errs, "was saved to "+file) {
		t.Errorf("continued where it was saved: exit status %d, %s", code, errs)
	}

	there := folder(t, url, "AGENTTEAM_LEASE=3s", "XDG_CACHE_HOME="+t.TempDir())
	git(t, there.dir, "clone", "-q", here.dir, ".")
	there.ok("load", file)
	if code, _, errs := exit(t, there.command("load", file)); code != 4 || !strings.Contains(errs, "already") {
		t.Errorf("loaded twice: exit status %d, %s", code, errs)
	}
	if err := os.Rename(here.dir, here.dir+".away"); err != nil {
		t.Fatal(err)
	}
	there.limit = 3 * limit
	code, out, errs := exit(t, there.command("run", "--resume", "--workspace", "."))
	if code != 0 || !strings.Contains(out, "all in the line") {
		t.Fatalf("continued elsewhere: exit status %d\n%s\n%s", code, out, errs)
	}
	there.upWith(0)
	var tasks []team.TaskView
	if err := json.Unmarshal([]byte(there.ok("tasks", "-o", "json")), &tasks); err != nil {
		t.Fatal(err)
	}
	if len(tasks) != savedTasks {
		t.Errorf("there are %d tasks, and %d were created", len(tasks), savedTasks)
	}
	done := map[string]int{}
	for _, task := range tasks {
		if task.Status != team.Completed {
			t.Errorf("%s is %s", task.ID, task.Status)
		}
		done[task.Commit]++
	}
	there.ok("land", "--workspace", there.dir)
	text, err := os.ReadFile(filepath.Join(there.dir, "shared.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= savedTasks; n++ {
		if !strings.Contains(string(text), fmt.Sprintf("done %d\n", n)) {
			t.Errorf("line %d is not done:\n%s", n, text)
		}
	}
	for _, commit := range strings.Fields(git(t, there.dir, "log", "--format=%H")) {
		if done[commit] > 1 {
			t.Errorf("commit %s is of %d tasks", commit, done[commit])
		}
		delete(done, commit)
	}
	if len(done) > 0 {
		t.Errorf("not in the line: %v", done)
	}
}

// A saved team refuses the next goal where it was saved, until it is told to continue there anyway.
func TestSavedTeamRunsAnyway(t *testing.T) {
	t.Parallel()
	c, l := ledCluster(t, 0, nil)
	finish := func(summary string) {
		l.goal(step{"", l.e.say("", use("finish_team", "summary", summary))})
	}
	finish("the first")
	if r := c.begin("begin").end(t); r.Summary != "the first" {
		t.Fatalf("the first goal is %s: %s", r.Status, r.Summary)
	}
	file := filepath.Join(t.TempDir(), "team.save")
	c.ok("save", file)
	finish("the second")
	if code, _, errs := exit(t, c.command("run", "continue")); code != 4 || !strings.Contains(errs, "was saved to "+file) || !strings.Contains(errs, "run --anyway") {
		t.Errorf("a goal for a saved team: exit status %d, %s", code, errs)
	}
	if r := c.begin("--anyway", "continue").end(t); r.Status != "finished" || r.Summary != "the second" {
		t.Errorf("with --anyway the goal is %s: %s", r.Status, r.Summary)
	}
	finish("the third")
	if r := c.begin("and again").end(t); r.Summary != "the third" { // the mark is off
		t.Errorf("the goal after that is %s: %s", r.Status, r.Summary)
	}
}

// A team that was loaded beside another repository than its own has no leader there: the run ends, and states why and what to do.
func TestLoadedBesideAnotherRepository(t *testing.T) {
	t.Parallel()
	url := rehearse(t, lineScript(1, 1, ""))
	here := folder(t, url, "XDG_CACHE_HOME="+t.TempDir())
	repository(t, here.dir, "seq 1 20 | sed 's/^/line /' > shared.txt; echo .agentteam > .gitignore")
	here.ok("run", "--isolation", "worktree", "Do them")
	file := filepath.Join(t.TempDir(), "team.save")
	here.ok("save", file)

	there := folder(t, url, "XDG_CACHE_HOME="+t.TempDir())
	repository(t, there.dir, "echo another > shared.txt; echo .agentteam > .gitignore")
	there.ok("load", file)
	code, _, errs := exit(t, there.command("run", "--workspace", ".", "Do more"))
	if code == 0 || !strings.Contains(errs, "the team's branch is of another repository than this folder") || !strings.Contains(errs, "--team NAME") {
		t.Errorf("exit status %d, %s", code, errs)
	}
}
