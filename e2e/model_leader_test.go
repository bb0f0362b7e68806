package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

// step is one answer of a played leader.
type step struct {
	when   string // what it must have heard since it spoke last; "": it need not wait
	answer answer
}

// lead plays a leader that takes its steps one after the other, and waits in between.
type lead struct {
	e *endpoint

	mu    sync.Mutex
	steps []step
	wrong answer // to all that it asks; nil: it takes its steps
}

func (l *lead) goal(steps ...step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps, l.wrong = steps, nil
}

// refused has the endpoint refuse the leader after these steps, until the next goal.
func (l *lead) refused(with answer, steps ...step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps, l.wrong = steps, with
}

func (l *lead) next(r *request) answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.steps) == 0 && l.wrong != nil {
		return l.wrong
	}
	if len(l.steps) == 0 || !strings.Contains(r.heard(), l.steps[0].when) {
		return l.e.say("I wait.")
	}
	a := l.steps[0].answer
	l.steps = l.steps[1:]
	return a
}

// heard is all that came since the model spoke last.
func (r *request) heard() (text string) {
	for _, m := range r.messages {
		if m.Role == "assistant" {
			text = ""
		}
		text += m.text() + "\n"
	}
	return text
}

// ledCluster is a cluster with a played leader; teammates are played by mates.
func ledCluster(t *testing.T, standbys int, mates func(*endpoint, *request) answer) (*cluster, *lead) {
	t.Helper()
	l := &lead{}
	l.e = serve(t, func(r *request) answer {
		if r.role == "leader" {
			return l.next(r)
		}
		return mates(l.e, r)
	})
	return upAt(t, l.e.url, standbys), l
}

// quick has a teammate do its task in two calls.
func quick() func(*endpoint, *request) answer {
	work := &crew{turns: 1, call: func(int) call { return use("bash", "command", "echo done") }}
	return func(e *endpoint, r *request) answer {
		return work.next(e, r)
	}
}

// A leader says nothing at all, calls a tool that there is not, and is told in the
// middle of a goal that its conversation is too long. It reaches the goal, and so it does
// the next one.
func TestLeaderSurvivesItsModel(t *testing.T) {
	t.Parallel()
	c, l := ledCluster(t, 1, quick())
	for _, summary := range []string{"the first is done", "the second is done"} {
		l.goal(
			step{"", l.e.say("I begin.", use("create_task", "title", "a task"), use("spawn_teammate", "role", "coder"))},
			step{"", l.e.say("", call{"functions.list_tasks<|channel|>commentary", "{}"})},
			step{"", l.e.say("")},
			step{"[All Idle]", refuse(400, "context_length_exceeded", "invalid_request_error", "your messages resulted in 131072 tokens")},
			step{"", l.e.say("", use("finish_team", "summary", summary))},
		)
		r := c.begin("do " + summary).end(t)
		if r.Status != "finished" || r.Summary != summary {
			t.Errorf("the goal ended as %s: %q, want %q", r.Status, r.Summary, summary)
		}
		for _, v := range r.Tasks {
			if v.Status != team.Completed || v.Attempts != 0 {
				t.Errorf("%s is %s after %d attempts", v.ID, v.Status, v.Attempts)
			}
		}
	}
}

// The key is wrong from the first: the goal ends by itself, and run says why. So does the
// next one.
func TestLeaderRefusedAtOnce(t *testing.T) {
	t.Parallel()
	c, l := ledCluster(t, 0, nil)
	l.refused(refuse(401, "invalid_api_key", "invalid_request_error", "Incorrect API key provided"))
	for _, format := range []string{"table", "json"} {
		code, out, errs := exit(t, c.command("run", "--timeout", "90s", "-o", format, "do it"))
		if code != 1 { // 124: the goal went on
			t.Errorf("run -o %s ended with %d, want 1", format, code)
		}
		if !strings.Contains(out+errs, "401") {
			t.Errorf("run -o %s does not say why:\n%s%s", format, out, errs)
		}
	}
}

// A leader is refused in the middle of a goal: it waits, run and agents say so and why, and
// the goal is reached once the endpoint is mended.
func TestLeaderParks(t *testing.T) {
	t.Parallel()
	c, l := ledCluster(t, 1, quick())
	tm := newTeam(t, c.connect(), team.DefaultTeam)
	l.refused(refuse(403, "", "permission_error", "PROOF-403"), step{"", l.e.say("", use("create_task", "title", "a task"))})

	run := c.command("run", "do it")
	var out, errs bytes.Buffer
	run.Stdout, run.Stderr = &out, &errs
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	brokertest.Within(t, patience, "the leader waits for its model", func() bool {
		a, err := tm.Members().Get(t.Context(), team.Leader)
		return err == nil && a.State == team.WaitingModel
	})
	if shown := c.ok("agents", "get", "leader"); !strings.Contains(shown, "waiting_model") || !strings.Contains(shown, "PROOF-403") {
		t.Errorf("agents get leader does not say that it waits, and why:\n%s", shown)
	}
	if shown := c.ok("status"); !strings.Contains(shown, "waiting_model") {
		t.Errorf("status does not say that a member waits:\n%s", shown)
	}
	l.goal(
		step{"", l.e.say("", use("spawn_teammate", "role", "coder"))},
		step{"[All Idle]", l.e.say("", use("finish_team", "summary", "done after all"))},
	)
	c.ok("send", "leader", "The endpoint is mended.")
	if code := wait(t, run); code != 0 {
		t.Errorf("run ended with %d", code)
	}
	if !strings.Contains(out.String(), "PROOF-403") || !strings.Contains(out.String(), "done after all") {
		t.Errorf("run does not tell what it waited for, or the end:\n%s%s", out.String(), errs.String())
	}
}

// A goal of which a task has failed does not end as finished by itself. A leader may end
// it so; then it is told what has failed, and so is whoever set it. The goal is well only
// if the leader has given the task up.
func TestFailedTaskIsNoFinish(t *testing.T) {
	t.Parallel()
	c, l := ledCluster(t, 1, func(e *endpoint, r *request) answer {
		if id := r.task(); id != "" && r.messages[len(r.messages)-1].Role == "user" {
			return e.say("", use("update_task", "task_id", id, "status", "failed", "reason", "PROOF-cannot"))
		}
		return e.say("I could not.")
	})
	begin := step{"", l.e.say("", use("create_task", "title", "a task"), use("spawn_teammate", "role", "coder"))}
	failures := regexp.MustCompile(`(?m)^failed: (T-\d+) a task: PROOF-cannot`)

	l.goal(begin)
	code, out, errs := exit(t, c.command("run", "--timeout", "60s", "do it"))
	const why = "the goal ended as failed: the leader ended its turn 4 times without finish_team, and tasks have failed: T-001"
	if code != 1 || !strings.Contains(out, "\nfailed, 1 task failed: 0 of 1 tasks completed") || !strings.Contains(errs, why) {
		t.Errorf("run ended with %d, want 1, failed, and why:\n%s%s", code, out, errs)
	}
	if failures.FindString(out) == "" {
		t.Errorf("run does not name the task that failed:\n%s", out)
	}

	l.goal(begin, step{"[All Idle]", l.e.say("", use("finish_team", "summary", "as far as we came"))})
	code, out, errs = exit(t, c.command("run", "--timeout", "60s", "do it again"))
	named := failures.FindStringSubmatch(out)
	if code != 1 || !strings.Contains(out, "as far as we came") || named == nil || !strings.Contains(errs, "with failed tasks that the leader has not given up: "+named[1]) {
		t.Fatalf("run ended with %d, want 1 and the failed task named:\n%s%s", code, out, errs)
	}
	bt, err := brokertest.Connect(t, c.connect().Server()).Open(t.Context(), team.DefaultTeam)
	if err != nil {
		t.Fatal(err)
	}
	var result string
	err = bt.Logs.Read(t.Context(), 1, func(m broker.Msg) error {
		var r record
		if err := json.Unmarshal(m.Data, &r); err != nil {
			return err
		}
		if r.Result != nil && r.Result.Name == "finish_team" {
			result = r.Result.Content
		}
		return nil
	})
	if err != nil || !strings.Contains(result, named[1]) {
		t.Errorf("finish_team answers %s (%v), want %s named", result, err, named[1])
	}

	l.goal(begin, step{"[All Idle]", l.e.say("", use("finish_team", "summary", "without it", "given_up", []string{"T-003"}))})
	code, out, errs = exit(t, c.command("run", "--timeout", "60s", "do it without that"))
	if code != 0 || !strings.Contains(out, "failed: T-003 a task") || !strings.Contains(out, "finished, 1 task failed: 0 of 1") {
		t.Errorf("run ended with %d, want 0 although T-003 has failed:\n%s%s", code, out, errs)
	}
}

// One of two teammates is refused for the whole of a goal: the other does its tasks, the
// leader is told that all is quiet, and ends the goal.
func TestParkedHoldsNothingBack(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	victim, work := "", quick()
	c, l := ledCluster(t, 2, func(e *endpoint, r *request) answer {
		mu.Lock()
		defer mu.Unlock()
		if victim == "" && r.task() != "" {
			victim = r.agent
		}
		if victim == r.agent {
			return refuse(402, "", "insufficient_balance", "PROOF-402")
		}
		return work(e, r)
	})
	l.goal(
		step{"", l.e.say("", use("create_task", "title", "one"), use("create_task", "title", "two"),
			use("spawn_teammate", "role", "coder"), use("spawn_teammate", "role", "coder"))},
		step{"[All Idle]", l.e.say("", use("finish_team", "summary", "done by one"))},
	)
	r := c.begin("--timeout", "60s", "do it").end(t)
	if r.Status != "finished" || r.Summary != "done by one" {
		t.Errorf("the goal ended as %s: %q", r.Status, r.Summary)
	}
	for _, v := range r.Tasks {
		if v.Status != team.Completed || v.Attempts != 0 || string(v.Assignee) == victim {
			t.Errorf("%s is %s by %s after %d attempts; %s was refused", v.ID, v.Status, v.Assignee, v.Attempts, victim)
		}
	}
}

// A person puts the leader into delegate mode in the middle of a goal: from its next turn on it is not told
// of the tools of the workspace, also after a compaction and in the process that takes over, until the
// person ends that.
func TestDelegateModeDuringAGoal(t *testing.T) {
	t.Parallel()
	c, l := ledCluster(t, 1, func(e *endpoint, _ *request) answer {
		return e.say("", use("bash", "command", "sleep 1000", "timeout", 600)) // so that the goal does not end
	})
	tm := newTeam(t, c.connect(), team.DefaultTeam)
	l.goal(step{"", l.e.say("", use("create_task", "title", "a task"), use("spawn_teammate", "role", "coder"))})
	c.ok("run", "--detach", "do it")
	words := 0
	turn := func() (delegates bool) { // of the leader's next turn
		t.Helper()
		words++
		word := fmt.Sprintf("PROOF-%d", words)
		c.ok("send", "leader", word)
		var r *request
		until(t, "the leader reads "+word, func() bool {
			r = l.e.lastOf(string(team.DefaultTeam), string(team.Leader))
			return r != nil && strings.Contains(r.heard(), word)
		})
		delegates = strings.Contains(r.messages[0].text(), "# Delegate mode")
		if shell := bytes.Contains(r.body, []byte(`"name":"bash"`)); shell == delegates {
			t.Errorf("%s: its prompt speaks of the mode: %v; it has the shell: %v", word, delegates, shell)
		}
		return delegates
	}
	if turn() {
		t.Error("it delegates before")
	}
	c.ok("teams", "set", string(team.DefaultTeam), "--delegate")
	until(t, "it has heard of that, and delegates", turn)
	c.ok("agents", "compact", "leader")
	if !turn() {
		t.Error("it delegates no more after a compaction")
	}
	first, err := tm.Members().Get(t.Context(), team.Leader)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !turn() {
		t.Error("its successor does not delegate")
	}
	if next, err := tm.Members().Get(t.Context(), team.Leader); err != nil || next.Incarnation <= first.Incarnation {
		t.Errorf("it leads as incarnation %d, before as %d: %v", next.Incarnation, first.Incarnation, err)
	}
	c.ok("teams", "set", string(team.DefaultTeam), "--delegate=false")
	until(t, "it has heard of that, and has its tools again", func() bool { return !turn() })
}
