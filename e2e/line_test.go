package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

// lineTasks is how many tasks edit one file at the same time; of two whose lines are next to each
// other one conflicts with the other.
const lineTasks = 20

// ledScript is the head of a script: the leader spawns so many coders, makes the tasks, each a YAML
// object, and ends the goal once all are idle. The coders' rules follow.
func ledScript(coders int, tasks ...string) string {
	return `
agents:
  - match: {role: leader}
    rules:
      - name: finish
        since: '\[All Idle\]'
        steps:
          - calls: [{tool: finish_team, args: {summary: "all in the line"}}]
      - name: lead
        since: '<mail from="user"'
        steps:
          - calls:
` + strings.Repeat("              - {tool: spawn_teammate, args: {role: coder}}\n", coders) + `          - calls:
              - tool: create_tasks
                args:
                  tasks:
                    - ` + strings.Join(tasks, "\n                    - ") + `
          - say: I wait.
      - name: rest
        say: I wait.
  - match: {role: coder}
    rules:
`
}

// lineScript has each of so many coders do the tasks that it is given, from the start if its process
// was replaced, and on the line's side of a conflict. The checks begin with check.
func lineScript(coders, tasks int, check string) string {
	all := make([]string, tasks)
	for n := range all {
		all[n] = fmt.Sprintf("{key: k%d, title: Line %d, check: '%sgrep -qx \"done %[2]d\" shared.txt && test -f own-%[2]d'}", n, n+1, check)
	}
	var b strings.Builder
	b.WriteString(ledScript(coders, all...))
	b.WriteString("      - name: conflict\n        since: '(?s)(<task id=\"|restarted. )(?P<id>T-0*(?P<n>\\d+))'\n        newest: 'is still yours, and your files'\n        steps:\n")
	for range 5 { // as often as one task's work may conflict
		b.WriteString(`          - calls:
              - {tool: bash, args: {command: "sed -i '/^=======$/,/^>>>>>>> /d; /^<<<<<<< /d; s/^line {{.Match.n}}$/done {{.Match.n}}/' shared.txt"}}
              - {tool: update_task, args: {task_id: "{{.Match.id}}", status: completed, result_summary: "line {{.Match.n}} is done"}}
`)
	}
	for _, r := range []struct{ name, since string }{
		{"again", `(?s)restarted. (?P<id>T-0*(?P<n>\d+)) is still yours`},
		{"work", `(?s)<task id="(?P<id>T-0*(?P<n>\d+))"`},
	} {
		fmt.Fprintf(&b, `      - name: %s
        since: '%s'
        steps:
          - calls: [{tool: bash, args: {command: "sed -i '/^=======$/,/^>>>>>>> /d; /^<<<<<<< /d' shared.txt; sed -i 's/^line {{.Match.n}}$/done {{.Match.n}}/' shared.txt; echo {{.Match.n}} > own-{{.Match.n}}; sleep 0.2"}}]
          - calls: [{tool: update_task, args: {task_id: "{{.Match.id}}", status: completed, result_summary: "line {{.Match.n}} is done"}}]
`, r.name, r.since)
	}
	b.WriteString("      - name: rest\n        say: Nothing to do.\n")
	return b.String()
}

// repository makes dir a git repository with one commit.
func repository(t *testing.T, dir, script string) {
	t.Helper()
	git(t, dir, "init", "-q")
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "first")
}

// git runs git in dir and returns what it prints.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=ann", "-c", "user.email=ann@example.org"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// lineOf returns the bare repository of the only team whose caches are below dir.
func lineOf(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "agentteam", "lines", "*", "line.git"))
	if err != nil || len(found) != 1 {
		t.Fatalf("repositories of lines: %v, %v", found, err)
	}
	return found[0]
}

// Members that edit one file at the same time lose nothing of each other, whoever is killed at
// whatever step: each completed task is in the line once, all checks pass there, and the user's
// checkout is as it was.
func TestLine(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	cache := t.TempDir()
	c := folder(t, rehearse(t, lineScript(6, lineTasks, "")), "AGENTTEAM_LEASE=3s", "XDG_CACHE_HOME="+cache)
	repository(t, c.dir, "seq 1 20 | sed 's/^/line /' > shared.txt; echo .agentteam > .gitignore")
	head := git(t, c.dir, "rev-parse", "HEAD")
	c.upWith(8)
	tm := newTeamWith(t, c.connect(), team.DefaultTeam, 3*time.Second)
	if _, err := tm.Choose(t.Context(), team.Choices{Policy: &team.Policy{Isolation: team.Worktrees}}); err != nil {
		t.Fatal(err)
	}
	c.limit = 3 * limit // each merge runs the checks of all that is there
	done := c.begin("Do them")
	kill := func(n int) {
		list, err := tm.Members().List(t.Context(), false)
		if err != nil {
			t.Error(err)
			return
		}
		var pids []int
		for _, a := range list {
			if a.Member.AgentID != team.Leader && a.Member.HasProcess() && a.PID != 0 {
				pids = append(pids, a.PID)
			}
		}
		if len(pids) > 0 {
			_ = syscall.Kill(pids[rand.IntN(len(pids))], syscall.SIGKILL) // it may have ended already
		}
	}
	for n := range 6 {
		brokertest.Within(t, 2*limit, fmt.Sprintf("%d tasks are completed", 3*n+1), func() bool { return completed(t, tm) >= 3*n+1 })
		kill(n)
	}
	inLine(t, done.end(t), lineOf(t, cache), lineTasks)
	if got := git(t, c.dir, "rev-parse", "HEAD"); got != head || git(t, c.dir, "status", "--porcelain") != "" {
		t.Errorf("the user's checkout has changed: %s, %s", got, git(t, c.dir, "status", "--porcelain"))
	}
}

// inLine checks that a goal is finished, that each of its tasks is in the line once, and that all
// checks pass at the head.
func inLine(t *testing.T, r result, repo string, tasks int) {
	t.Helper()
	if r.Status != "finished" || len(r.Tasks) != tasks {
		t.Errorf("the goal ended as %s with %d tasks: %s", r.Status, len(r.Tasks), r.Summary)
	}
	log := git(t, repo, "log", "--format=%(trailers:key=Task,valueonly,separator=%x2C)", "agentteam/default")
	for _, task := range r.Tasks {
		if n := strings.Count(log+"\n", string(task.ID)+"\n"); task.Status != team.Completed || n != 1 {
			t.Errorf("%s is %s (%s) and %d times in the line", task.ID, task.Status, task.Reason, n)
		}
	}
	out := t.TempDir()
	git(t, out, "--git-dir="+repo, "--work-tree="+out, "checkout", "-q", "-f", "agentteam/default", "--", ".")
	for n := 1; n <= tasks; n++ {
		check := exec.Command("bash", "-c", fmt.Sprintf(`grep -qx "done %d" shared.txt && test -f own-%[1]d`, n))
		check.Dir = out
		if err := check.Run(); err != nil {
			t.Errorf("the check of task %d fails on the line's head: %v", n, err)
		}
	}
	if t.Failed() {
		text, _ := os.ReadFile(filepath.Join(out, "shared.txt"))
		t.Logf("%s\n%s", log, text)
	}
}

// completed counts the tasks that are.
func completed(t *testing.T, tm *client.Team) int {
	p, err := tm.Board().List(t.Context(), team.Query{Status: []team.TaskStatus{team.Completed}})
	if err != nil {
		return 0
	}
	return p.Total
}
