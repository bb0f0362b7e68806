package e2e

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// unfinishedScript has a coder that is in the middle of its task, with new, changed, removed and ignored files, when its process
// is told to stop. Its next process finds them in its tree, and completes the task with them.
var unfinishedScript = ledScript(1, `{key: one, title: Count, check: 'grep -qx three numbers.txt && test ! -e old.txt && test -f new/a.txt'}`) + `
      - name: continue
        since: '(?s)<task id="(?P<id>T-\d+)".*in the files of your tree'
        steps:
          - calls: [{tool: bash, args: {command: "git status --porcelain > status.txt; cat x.log > from-log.txt; cat status.txt"}}]
          - calls: [{tool: update_task, args: {task_id: "{{.Match.id}}", status: completed, result_summary: "continued"}}]
      - name: begin
        since: '<task id="T-'
        steps:
          - calls: [{tool: bash, args: {command: "sed -i 's/^3$/three/' numbers.txt; rm old.txt; mkdir new; echo new > new/a.txt; echo log > x.log; touch ready; exec sleep 1000"}}]
      - name: rest
        say: Nothing to do.
`

// unfinishedRepo is the repository of that.
const unfinishedRepo = `seq 5 > numbers.txt; echo old > old.txt; printf '.agentteam\nprocesses.log\n*.log\n' > .gitignore`

// inTheMiddle waits until the coder is at work in its tree, which is in a folder of caches.
func inTheMiddle(t *testing.T, cache string) {
	t.Helper()
	until(t, "the coder is in the middle of its task", func() bool {
		ready, _ := filepath.Glob(filepath.Join(cache, "agentteam", "lines", "*", "trees", "t-001.*", "ready"))
		return len(ready) == 1
	})
}

// continued checks what the line has, with caches there, once the task is completed.
func continued(t *testing.T, cache string, r result) {
	t.Helper()
	if r.Status != "finished" || len(r.Tasks) != 1 || r.Tasks[0].Status != team.Completed || !regexp.MustCompile(`^continued\n\nNot in the branch \(.*\): x\.log \(1 KiB\)$`).MatchString(r.Tasks[0].ResultSummary) || r.Tasks[0].Attempts != 0 {
		t.Fatalf("the goal ended as %s: %+v", r.Status, r.Tasks)
	}
	repo := lineOf(t, cache)
	if got := git(t, repo, "ls-tree", "-r", "--name-only", "agentteam/default"); got != ".gitignore\nfrom-log.txt\nnew/a.txt\nnumbers.txt\nready\nstatus.txt" {
		t.Errorf("the line has\n%s", got)
	}
	for name, want := range map[string]string{"from-log.txt": "log", "new/a.txt": "new", "numbers.txt": "1\n2\nthree\n4\n5", "status.txt": "M numbers.txt\n D old.txt\n?? new/\n?? ready\n?? status.txt"} {
		if got := git(t, repo, "show", "agentteam/default:"+name); got != want {
			t.Errorf("the line has %s: %q, want %q", name, got, want)
		}
	}
}

// One Ctrl-C ends a run with all its processes in the middle of a task. Once it is resumed the coder continues with all that it
// had written.
func TestUnfinishedWorkAfterCtrlC(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	c := folder(t, rehearse(t, unfinishedScript), "AGENTTEAM_LEASE=5s", "XDG_CACHE_HOME="+cache)
	repository(t, c.dir, unfinishedRepo)
	cmd := c.command("run", "Do it")
	var out printed
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inTheMiddle(t, cache)
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil { // as a terminal does
		t.Fatal(err)
	}
	if code := wait(t, cmd); code != 130 {
		t.Fatalf("it ends with %d\n%s", code, out.String())
	}
	r, err := c.run("--resume")
	if err != nil {
		t.Fatalf("%v\nbefore:\n%s", err, out.String())
	}
	continued(t, cache, r)
}

// Two hosts share nothing but the server. The coder's process is told to stop on one of them, and its next one on the other
// continues with all that it had written.
func TestUnfinishedWorkOnAnotherHost(t *testing.T) {
	t.Parallel()
	url := brokertest.Server(t)
	model := rehearse(t, unfinishedScript)
	caches := []string{t.TempDir(), t.TempDir()}
	host := func(n int) *cluster {
		return folder(t, model, "NATS_URL="+url, "AGENTTEAM_LEASE=5s", "HOME="+t.TempDir(), "XDG_CACHE_HOME="+caches[n])
	}
	one, two := host(0), host(1)
	repository(t, one.dir, unfinishedRepo)
	watched(t, dial(t, url), team.DefaultTeam, 5*time.Second)
	one.start("leader")
	coder := one.launch("teammate")
	done := one.begin("Do it", "--workspace", one.dir)
	inTheMiddle(t, caches[0])
	stop(t, coder)
	two.start("teammate")
	r := done.end(t)
	continued(t, caches[0], r) // the leader merges, on the first host
	if left, _ := filepath.Glob(filepath.Join(caches[0], "agentteam", "lines", "*", "trees", "t-001.*")); len(left) > 0 {
		t.Errorf("the first host still has %s", strings.Join(left, ", "))
	}
}

// stop has a process end in order, and waits for that.
func stop(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := ends(t, cmd); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

// A person takes the task from its coder in the middle of it. The files are stored by the time that it is claimed again.
func TestUnfinishedWorkTakenByAPerson(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	c := folder(t, rehearse(t, unfinishedScript), "AGENTTEAM_LEASE=5s", "XDG_CACHE_HOME="+cache)
	repository(t, c.dir, unfinishedRepo)
	done := c.begin("Do it")
	inTheMiddle(t, cache)
	if out := c.ok("diff", "T-001"); !strings.Contains(out, "-3\n+three\n") || !strings.Contains(out, "+++ b/new/a.txt") {
		t.Errorf("of what is written so far teamctl diff shows\n%s", out)
	}
	c.ok("tasks", "release", "T-001")
	continued(t, cache, done.end(t))
}
