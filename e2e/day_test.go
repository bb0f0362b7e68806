package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

// dayTasks are the tasks of a day: T-001 asks the person, T-002 and T-004 are of a member in plan mode, T-003 makes a call that the
// person has to allow, and conflicts with T-004.
var dayTasks = []map[string]any{
	{"key": "style", "title": "Choose a style", "assignee": "ann", "check": "test -f begun-1 && grep -qx tabs style.txt"},
	{"key": "two", "title": "Write two.txt", "assignee": "joe", "check": "test -f two.txt"},
	{"key": "touch", "title": "Touch", "assignee": "ann", "dependencies": []string{"style", "two"}, "check": "test -f touched-3 && grep -q T-003 shared.txt"},
	{"key": "plan", "title": "Change the line", "assignee": "joe", "dependencies": []string{"style", "two"}, "check": "grep -q T-004 shared.txt"},
}

// day plays the models of a day: each goes by what stands in its conversation since it was given its task.
type day struct {
	*endpoint
	over chan struct{} // closed once the leader may end the goal
}

// made is a call that a model has made, with its result.
type made struct{ command, tool, result string }

// hold is what a model knows of the hold of its task: what it reads of it, and the calls that it has made.
func (r *request) hold() (texts string, calls []made) {
	at := 0
	for i, m := range r.messages {
		if m.Role == "user" && taskBlock.MatchString(m.text()) {
			at = i
		}
	}
	results := map[string]string{}
	for _, m := range r.messages[at:] {
		if m.Role == "tool" {
			results[m.ToolCallID] = m.text()
		}
	}
	for _, m := range r.messages[at:] {
		if m.Role == "user" {
			texts += m.text() + "\n"
		}
		for _, c := range m.ToolCalls {
			var args struct{ Command string }
			_ = json.Unmarshal([]byte(c.Function.Arguments), &args)
			calls = append(calls, made{args.Command, c.Function.Name, results[c.ID]})
		}
	}
	return texts, calls
}

func (d *day) play(r *request) answer {
	if r.role == "leader" {
		return d.lead(r)
	}
	id := r.task()
	texts, calls := r.hold()
	ran := func(command string) bool {
		return slices.ContainsFunc(calls, func(m made) bool { return m.command == command && !strings.Contains(m.result, "was not run") })
	}
	// next has the model run the commands, each once, and then complete the task.
	next := func(commands ...string) answer {
		for _, command := range commands {
			if !ran(command) {
				return d.say("", use("bash", "command", command))
			}
		}
		return d.say("", use("update_task", "task_id", id, "status", "completed", "result_summary", "done by "+r.agent))
	}
	rest := d.say("I wait.")
	last := made{}
	if len(calls) > 0 {
		last = calls[len(calls)-1]
	}
	const resolve = "sed -i '/^[<=>]\\{7\\}/d' shared.txt"
	switch {
	case strings.Contains(last.result, "is still yours, and your files are those of the line"):
		return d.say("", use("bash", "command", resolve))
	case last.command == resolve:
		return next()
	case id == "" || last.tool == "update_task" || r.ended():
		return rest
	case id == "T-001":
		return d.asks(texts, calls, next)
	case id == "T-003":
		return d.touches(r, ran, next)
	}
	early, work := "echo early > early-2", "echo two > two.txt"
	if id == "T-004" {
		early, work = "echo early > early-4", "sed -i 's/^line$/line of T-004/' shared.txt"
	}
	switch {
	case strings.Contains(texts, "is approved. Carry it out"):
		return next(work)
	case strings.Contains(texts, "still waits for the decision") || last.tool == "submit_plan":
		return rest
	case len(calls) == 0:
		return d.say("", use("bash", "command", early))
	}
	return d.say("", use("submit_plan", "plan", "I run: "+work))
}

var styleAnswer = regexp.MustCompile(`(?s)(?:in_reply_to="[^"]*"[^>]*>\s*|The answer of user:\s+│ )(tabs|spaces)`)

// asks does T-001.
func (d *day) asks(texts string, calls []made, next func(...string) answer) answer {
	switch style := styleAnswer.FindStringSubmatch(texts); {
	case style != nil:
		return next("echo " + style[1] + " > style.txt")
	case strings.Contains(texts, "asked for this task before") || len(calls) > 1:
		return d.say("I wait.")
	case len(calls) == 1:
		return d.say("", use("ask_user", "question", "Tabs or spaces?", "choices", []string{"tabs", "spaces"}))
	}
	return d.say("", use("bash", "command", "echo begun > begun-1"))
}

// touches does T-003.
func (d *day) touches(r *request, ran func(string) bool, next func(...string) answer) answer {
	const touch = "touch touched-3"
	if !ran(touch) && strings.Contains(r.heard(), "was not run") {
		return d.say("I wait.")
	}
	return next("echo begun > begun-3", touch, "sed -i 's/^line$/line of T-003/' shared.txt")
}

// lead is the leader, which ends the goal once it may.
func (d *day) lead(r *request) answer {
	turns := 0
	for _, m := range r.messages {
		if m.Role == "assistant" {
			turns++
		}
	}
	switch {
	case turns == 0:
		return d.say("", use("spawn_teammate", "role", "coder", "name", "ann"), use("spawn_teammate", "role", "coder", "name", "joe", "plan_mode", true))
	case turns == 1:
		return d.say("", use("create_tasks", "tasks", dayTasks))
	case strings.Contains(r.heard(), "[All Idle]") && strings.Contains(r.heard(), "Tasks: 4 completed"):
		select {
		case <-d.over:
		case <-r.gone:
		}
		return d.say("", use("finish_team", "summary", "a day"))
	}
	return d.say("I wait.")
}

// session is a `teamctl run` with a cluster of its own, in a process group, as a terminal has it.
type session struct {
	*follower
	c  *cluster
	tm *client.Team
}

func (c *cluster) session(args ...string) *session {
	c.t.Helper()
	s := &session{follower: &follower{name: "run", Cmd: c.command(append([]string{"run"}, args...)...)}, c: c}
	s.Stdout, s.Stderr = &s.out, &s.errs
	s.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.Start(); err != nil {
		c.t.Fatal(err)
	}
	until(c.t, "the cluster of the run is there", func() bool {
		code, _, _ := exit(c.t, c.command("status"))
		return code == 0
	})
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Logf("run %v:\n%s%s", args, s.out.String(), s.errs.String())
		}
	})
	conn := c.connect()
	until(c.t, "its team is there", func() bool {
		var err error
		s.tm, err = conn.Open(c.t.Context(), team.DefaultTeam)
		return err == nil
	})
	return s
}

// waits waits until a member waits for the person with a task, and returns for what.
func (s *session) waits(who team.AgentID, id team.TaskID, state team.MemberState) (asked string) {
	t := s.c.t
	t.Helper()
	until(t, string(who)+" waits for the person with "+string(id), func() bool {
		m, err := s.tm.Members().Get(t.Context(), who)
		asked = m.Asked
		return err == nil && m.State == state && m.Awaits == team.UserAgent && m.Task == id
	})
	return asked
}

// interrupt is one Ctrl-C.
func (s *session) interrupt() {
	t := s.c.t
	t.Helper()
	if err := syscall.Kill(-s.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := wait(t, s.Cmd); code != 130 {
		t.Fatalf("Ctrl-C ends the run with %d\n%s%s", code, s.out.String(), s.errs.String())
	}
}

// completed waits until a task is.
func (s *session) completed(id team.TaskID) {
	t := s.c.t
	t.Helper()
	until(t, string(id)+" is completed", func() bool {
		v, err := s.tm.Board().Task(t.Context(), id)
		return err == nil && v.Status == team.Completed
	})
}

// A day of work in a fresh repository, through two stops: each thing is asked once, nothing is done before it is approved, each task
// is completed by the member that it was given to, and all files are in what the person lands.
func TestDay(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	cache := t.TempDir()
	d := &day{over: make(chan struct{})}
	ready := make(chan struct{})
	d.endpoint = serve(t, func(r *request) answer { <-ready; return d.play(r) })
	close(ready)
	c := folder(t, d.url, "AGENTTEAM_LEASE=5s", "XDG_CACHE_HOME="+cache)
	repository(t, c.dir, "echo line > shared.txt; printf 'policies:\\n  approver: human\\npermissions:\\n  ask: [Bash(touch *)]\\n' > team.yaml")
	none := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if found, _ := filepath.Glob(filepath.Join(cache, "agentteam", "lines", "*", "trees", "*", name)); len(found) > 0 {
				t.Errorf("before it is approved there is %v", found)
			}
		}
	}

	s := c.session("Do it")
	question, plan := s.waits("ann", "T-001", team.WaitingUser), s.waits("joe", "T-002", team.WaitingApproval)
	none("early-2", "two.txt")
	s.interrupt()
	s = c.session("--resume")
	if q, p := s.waits("ann", "T-001", team.WaitingUser), s.waits("joe", "T-002", team.WaitingApproval); q != question || p != plan {
		t.Errorf("after the first stop they wait for %s and %s, not for %s and %s", q, p, question, plan)
	}
	none("early-2", "two.txt")
	c.ok("answer", "ann", "tabs")
	c.ok("approvals", "approve", "joe")

	call, plan := s.waits("ann", "T-003", team.WaitingApproval), s.waits("joe", "T-004", team.WaitingApproval)
	none("early-4", "touched-3")
	s.interrupt()
	s = c.session("--resume")
	if a, p := s.waits("ann", "T-003", team.WaitingApproval), s.waits("joe", "T-004", team.WaitingApproval); a != call || p != plan {
		t.Errorf("after the second stop they wait for %s and %s, not for %s and %s", a, p, call, plan)
	}
	none("early-4", "touched-3")
	c.ok("approvals", "approve", plan)
	s.completed("T-004")
	c.ok("approvals", "approve", call)
	s.completed("T-003")
	s.asked()
	close(d.over)
	if code := wait(t, s.Cmd); code != 0 {
		t.Fatalf("the run ends with %d\n%s%s", code, s.out.String(), s.errs.String())
	}
	c.ok("land")
	c.landed()
}

// asked checks what the person was asked, and who has done what.
func (s *session) asked() {
	t := s.c.t
	t.Helper()
	questions, err := s.tm.Mail().Questions(t.Context(), team.UserAgent)
	if err != nil || len(questions) != 1 {
		t.Errorf("asked were %+v, %v", questions, err)
	}
	plans, err := s.tm.Plans().List(t.Context())
	if err != nil || len(plans) != 3 {
		t.Errorf("to be decided on were %+v, %v", plans, err)
	}
	for _, p := range plans {
		if p.Status != team.PlanUsed || p.Kind == team.OfPermission && p.Scope != team.Once {
			t.Errorf("%s of %s for %s is %s", p.ID, p.AgentID, p.Task, p.Status)
		}
	}
	for id, who := range map[team.TaskID]team.AgentID{"T-001": "ann", "T-002": "joe", "T-003": "ann", "T-004": "joe"} {
		v, err := s.tm.Board().Task(t.Context(), id)
		if err != nil || v.Status != team.Completed || v.Assignee != who || v.Attempts != 0 || (v.Unmerged == 1) != (id == "T-003") {
			t.Errorf("%s is %s, of %s, after %d attempts and %d conflicts; %v", id, v.Status, v.Assignee, v.Attempts, v.Unmerged, err)
		}
	}
}

// landed checks what the person's checkout holds in the end.
func (c *cluster) landed() {
	t := c.t
	t.Helper()
	if got := git(t, c.dir, "status", "--porcelain"); got != "" {
		t.Errorf("git status:\n%s", got)
	}
	if got := git(t, c.dir, "ls-files"); got != "begun-1\nbegun-3\nshared.txt\nstyle.txt\nteam.yaml\ntouched-3\ntwo.txt" {
		t.Errorf("landed are\n%s", got)
	}
	for name, want := range map[string]string{"style.txt": "tabs\n", "two.txt": "two\n"} {
		if got, err := os.ReadFile(filepath.Join(c.dir, name)); string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	lines, err := os.ReadFile(filepath.Join(c.dir, "shared.txt"))
	if err != nil || !strings.Contains(string(lines), "line of T-003\n") || !strings.Contains(string(lines), "line of T-004\n") {
		t.Errorf("shared.txt holds %q, %v", lines, err)
	}
}
