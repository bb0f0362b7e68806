package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// asker is an incarnation of coder-1 by whose rules each bash is asked.
type asker struct {
	*approval.Permissions
	hand *board.ClaimSlot
	t    *testing.T
	j    *approval.Judgement
}

// asker begins an incarnation, which takes over what an earlier one held.
func (r *rig) asker(incarnation uint64) asker {
	r.t.Helper()
	m := team.Member{AgentID: "coder-1", Role: "coder", Incarnation: incarnation}
	hand := board.NewClaimSlot(r.t.Context(), r.board, m.Holder())
	if _, _, err := hand.Adopt(r.t.Context(), ""); err != nil {
		r.t.Fatal(err)
	}
	j := &approval.Judgement{Answer: permission.Ask, Why: "no rule allows it", Dir: "/w", Always: "Bash(git push)"}
	p := r.plans.Permissions(m, hand, func(context.Context, tool.Request) (approval.Judgement, error) { return *j, nil })
	return asker{p, hand, r.t, j}
}

func (a asker) call(command string) error {
	arguments, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		a.t.Fatal(err)
	}
	return a.Pass(a.t.Context(), tool.Request{Called: "bash", Tool: "bash", Arguments: arguments})
}

// passes checks that a command passes, or that it is refused with these words.
func (a asker) passes(when, command, words string) {
	a.t.Helper()
	err := a.call(command)
	if (err == nil) != (words == "") || err != nil && (team.CodeOf(err) != team.PermissionDenied || !strings.Contains(err.Error()+team.ModelHintOf(err), words)) {
		a.t.Errorf("%s: %v, want %q", when, err, words)
	}
}

// waits is what the agent waits for once the command is refused.
func (a asker) waits(command string) team.Await {
	a.t.Helper()
	set, err := tool.NewSet(nil, tool.New("bash", "", func(context.Context, struct {
		Command string `json:"command"`
	}) (tool.Output, error) {
		return tool.Output{}, nil
	}))
	if err != nil {
		a.t.Fatal(err)
	}
	arguments, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		a.t.Fatal(err)
	}
	res := set.Behind(a.Pass).Run(a.t.Context(), tool.Call{Name: "bash", Arguments: string(arguments)})
	if !res.IsError || res.Code != team.PermissionDenied || res.Effects.Await == nil {
		a.t.Fatalf("%s: %s, waits for %v", command, res.Content, res.Effects.Await)
	}
	return *res.Effects.Await
}

// work gives the asker a task.
func (r *rig) work(a asker) team.Task {
	r.t.Helper()
	return r.task(agent{nil, a.hand, r.t})
}

func user(scope team.Scope) team.Decision {
	return team.Decision{By: team.UserAgent, Approve: true, Scope: scope}
}

// What a person allows once passes once; the next identical call is asked anew, and neither a
// changed command nor another task is covered.
func TestAllowedOnce(t *testing.T) {
	r := newRig(t)
	a := r.asker(1)
	task := r.work(a)
	w := a.waits("git push")
	if !w.Permission || w.From != team.UserAgent || w.About != "bash: git push" {
		t.Errorf("it waits for %+v", w)
	}
	a.passes("pending", "git push", "request "+w.Plan)
	if m := r.post.sent; len(m) != 1 || m[0].To != team.UserAgent || m[0].RequestID != w.Plan || !strings.Contains(m[0].Content, "│ git push\n\nin: /w\nwhy it is asked: no rule allows it") {
		t.Errorf("mail: %+v", m)
	}
	got := r.stored(w.Plan)
	if got.Task != task.ID || got.Call.Arguments != `{"command":"git push"}` || got.Call.Rule != "Bash(git push)" || got.Status != team.PlanPending {
		t.Errorf("stored: %+v", got)
	}
	r.decide(w.Plan, user(""))
	other := a.waits("git push --force")
	if other.Plan == w.Plan {
		t.Error("a changed command is the same request")
	}
	a.passes("allowed", "git push", "")
	if got := r.stored(w.Plan); got.Status != team.PlanUsed || got.Scope != team.Once {
		t.Errorf("used: %+v", got)
	}
	second := a.waits("git push")
	if second.Plan == w.Plan {
		t.Error("a used request is asked again under its id")
	}
	r.wants("a decision on the used one", failed(r.plans.Decide(t.Context(), w.Plan, user(""))), team.Conflict)
	a.passes("the second is pending", "git push", "is asked")
	r.decide(second.Plan, user(""))
	if _, err := a.hand.Complete(t.Context(), task.ID, team.Done{Summary: "done"}); err != nil {
		t.Fatal(err)
	}
	r.work(a)
	if third := a.waits("git push"); third.Plan == second.Plan {
		t.Error("what was allowed for a task passes for the next")
	}
}

func TestAllowedForTheTask(t *testing.T) {
	for _, scope := range []team.Scope{team.ForTask, team.Always} {
		t.Run(string(scope), func(t *testing.T) { allowedFor(t, scope) })
	}
}

func allowedFor(t *testing.T, scope team.Scope) {
	r := newRig(t)
	a := r.asker(1)
	task := r.work(a)
	w := a.waits("make")
	r.decide(w.Plan, user(scope))
	a.passes("allowed", "make", "")
	a.passes("the second time", "make", "")
	a.passes("another command", "make x", "is asked")
	next := r.another().asker(2)
	next.passes("a successor", "make", "")
	if _, err := next.hand.Complete(t.Context(), task.ID, team.Done{Summary: "done"}); err != nil {
		t.Fatal(err)
	}
	r.work(next)
	next.passes("the next task", "make", "is asked")
}

// A call that passes by a rule which a person has added names the rule and the answer that added it.
func TestRuleOfAPerson(t *testing.T) {
	r := newRig(t)
	a := r.asker(1)
	*a.j = approval.Judgement{Answer: permission.Allow, Rule: "Bash(ls)", Given: &team.Grant{Approval: "9f0c", By: "ann"}, Level: team.Unconfined}
	set, err := tool.NewSet(nil, tool.New("bash", "", func(context.Context, struct{}) (tool.Output, error) { return tool.Output{}, nil }))
	if err != nil {
		t.Fatal(err)
	}
	got := set.Behind(a.Pass).Run(t.Context(), tool.Call{Name: "bash", Arguments: "{}"}).Account
	if got.Rule != "Bash(ls)" || !slices.Equal(got.Grants, []team.Grant{{Approval: "9f0c", By: "ann"}}) {
		t.Errorf("the account is %+v", got)
	}
}

func TestRefused(t *testing.T) {
	r := newRig(t)
	a := r.asker(1)
	r.work(a)
	r.decide(a.waits("rm x").Plan, team.Decision{By: team.UserAgent, Feedback: "keep it"})
	a.passes("refused", "rm x", "keep it")
	if m := r.post.sent[len(r.post.sent)-1]; m.Approve == nil || *m.Approve || !strings.Contains(m.Content, "keep it") {
		t.Errorf("the agent reads %q", m.Content)
	}
	r.asker(2).passes("a successor", "rm x", "keep it")
	r.decide(a.waits("rm y").Plan, team.Decision{By: team.UserAgent})
	a.passes("without a word", "rm y", "a person has refused it")
	if n := len(r.post.sent); n != 4 {
		t.Errorf("%d messages: a refused call is asked again", n)
	}
}

// No person is asked about what the rules allow or deny, nor where none is there.
func TestJudged(t *testing.T) {
	r := newRig(t)
	a := r.asker(1)
	for want, j := range map[string]approval.Judgement{
		"":                      {Answer: permission.Allow, Rule: "Bash(ls)"},
		`"Bash(rm *)" denies`:   {Answer: permission.Deny, Rule: "Bash(rm *)"},
		"here: it is read-only": {Answer: permission.Deny, Why: "it is read-only"},
		"there is no one to ask (permission_ask: deny): its target is a variable": {Answer: permission.Ask, Asking: team.AskDeny, Why: "its target is a variable"},
	} {
		*a.j = j
		a.passes(j.Answer.String(), "ls", want)
	}
	broken := r.plans.Permissions(team.Member{AgentID: "coder-1"}, a.hand, func(context.Context, tool.Request) (approval.Judgement, error) {
		return approval.Judgement{}, team.Errorf(team.Unavailable, "NATS is away")
	})
	if err := broken.Pass(t.Context(), tool.Request{Called: "bash"}); team.CodeOf(err) != team.Unavailable {
		t.Errorf("without rules: %v", err)
	}
	*a.j = approval.Judgement{Answer: permission.Ask}
	if err := a.call(strings.Repeat("x", team.MaxAskedBytes)); team.CodeOf(err) != team.InvalidArgument {
		t.Errorf("what no person can read: %v", err)
	}
	if all, err := r.plans.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("asked for: %v, %v", all, err)
	}
}

// Killed at any point, the next incarnation continues with what is stored; the call that was
// allowed once is made once.
func TestAskerKilled(t *testing.T) {
	for _, point := range []string{"asked", "decided", "used"} {
		t.Run(point, func(t *testing.T) {
			r := newRig(t)
			a := r.asker(1)
			r.work(a)
			w := a.waits("git push")
			if point != "asked" {
				r.decide(w.Plan, user(""))
			}
			if point == "used" {
				a.passes("allowed", "git push", "")
			}
			next := r.another().asker(2)
			if point == "used" {
				next.passes("used up", "git push", "is asked")
				return
			}
			if point == "asked" {
				if again := next.waits("git push"); again.Plan != w.Plan {
					t.Errorf("the successor asks with the id %s", again.Plan)
				}
				r.decide(w.Plan, user(""))
			}
			next.passes(point, "git push", "")
			a.passes("the one that was replaced", "git push", "is asked")
		})
	}
}

// Of many that make the call at once, in two incarnations, one passes.
func TestOneUse(t *testing.T) {
	r := newRig(t)
	a := r.asker(1)
	r.work(a)
	r.decide(a.waits("git push").Plan, user(""))
	const n = 6
	var wg sync.WaitGroup
	passed := make(chan bool, n)
	for range n {
		b := r.another().asker(2)
		wg.Go(func() { passed <- b.call("git push") == nil })
	}
	wg.Wait()
	won := 0
	for range n {
		if <-passed {
			won++
		}
	}
	if won != 1 {
		t.Errorf("allowed once, and made %d times", won)
	}
}

// Of several people that decide at once the first wins.
func TestPeopleRace(t *testing.T) {
	r := newRig(t)
	a := r.asker(1)
	r.work(a)
	w := a.waits("git push")
	const n = 6
	outcomes := make(chan error, n)
	for i := range n {
		terminal := r.another()
		go func() {
			outcomes <- failed(terminal.plans.Decide(t.Context(), w.Plan, team.Decision{By: team.UserAgent, Approve: i%2 == 0}))
		}()
	}
	won := 0
	for range n {
		switch err := brokertest.Receive(t, "all have decided", outcomes); {
		case err == nil:
			won++
		case !errors.Is(err, team.Conflict):
			t.Errorf("a loser is told %v", err)
		}
	}
	writes := 0
	err := r.bt.Bucket.Past(t.Context(), 1, func(broker.Entry) error { writes++; return nil }, subject.KeyPlan(w.Plan))
	if err != nil || won != 1 || writes != 2 {
		t.Errorf("%d have won, after %d writes, %v", won, writes, err)
	}
}

// No agent decides, and what is written past the rules does not pass.
func TestPermissionForged(t *testing.T) {
	r := newRig(t)
	a := r.asker(1)
	r.work(a)
	p := r.stored(a.waits("git push").Plan)
	for _, by := range []team.AgentID{team.Leader, "coder-1", "coder-2", ""} {
		r.wants("a decision of "+string(by), failed(r.plans.Decide(t.Context(), p.ID, team.Decision{By: by, Seated: true, Approve: true})), team.PermissionDenied)
	}
	if _, err := r.roster.Put(t.Context(), team.Member{AgentID: "coder-2", Role: "coder", State: team.Joined, Incarnation: 1, Backend: team.Pool}); err != nil {
		t.Fatal(err)
	}
	r.wants("another teammate", failed(r.plans.Decide(t.Context(), p.ID, team.Decision{By: "coder-2", Seated: true, Approve: true})), team.PermissionDenied)
	for what, forge := range map[string]func(*team.Approval){
		"the leader":      func(a *team.Approval) { a.DecidedBy = team.Leader },
		"a teammate":      func(a *team.Approval) { a.DecidedBy = "coder-2" },
		"itself":          func(a *team.Approval) { a.DecidedBy = "coder-1" },
		"another call":    func(a *team.Approval) { a.DecidedBy = team.UserAgent; a.Call.Dir = "/elsewhere" },
		"a plan's record": func(a *team.Approval) { a.DecidedBy = team.UserAgent; a.Kind = "" },
	} {
		forged := p
		call := *p.Call
		forged.Call, forged.Status, forged.Scope = &call, team.PlanApproved, team.Always
		forge(&forged)
		r.forge(forged)
		if err := a.call("git push"); err == nil {
			t.Errorf("the call passes by the word of %s", what)
		}
		r.forge(p)
	}
	// An allowed call is no plan, and an approved plan allows no call.
	planner := r.agent(1, "")
	r.decide(p.ID, user(team.ForTask))
	planner.passes("with an allowed call", false)
	r.decide(planner.submit("git pull").ID, yes)
	a.passes("with an approved plan", "git pull", "is asked")
	r.agent(1, "").passes("a request is newer than the plan", true)
}

// A seat is a person's, so it decides.
func TestSeatDecides(t *testing.T) {
	r := newRig(t)
	a := r.asker(1)
	r.work(a)
	if _, err := r.roster.Put(t.Context(), team.Member{AgentID: "ann", Role: "coder", State: team.Joined, Incarnation: 1, Backend: team.Person}); err != nil {
		t.Fatal(err)
	}
	r.decide(a.waits("git push").Plan, team.Decision{By: "ann", Approve: true})
	a.passes("allowed by a seat", "git push", "")
}

// Once the task is somebody else's, or its member is idle without one, no decision is of use.
func TestPermissionVoid(t *testing.T) {
	r := newRig(t)
	a := r.asker(1)
	w := a.waits("git push")
	if err := a.Requeue(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.wants("after it was idle", failed(r.plans.Decide(t.Context(), w.Plan, user(""))), team.Conflict)
	if again := a.waits("git push"); again.Plan == w.Plan {
		t.Error("an ended request is asked again under its id")
	}
	task := r.work(a)
	w = a.waits("git push")
	if err := a.Requeue(t.Context()); err != nil {
		t.Fatal(err)
	}
	leads := team.Actor{Holder: team.Holder{Agent: team.Leader, Incarnation: 1}, Leads: true}
	if _, err := r.board.Release(t.Context(), task.ID, leads, 0, team.Freed{Reason: "lost"}); err != nil {
		t.Fatal(err)
	}
	r.wants("while the task is free", failed(r.plans.Decide(t.Context(), w.Plan, user(""))), team.Conflict)
	next := r.asker(2)
	if _, err := next.hand.Claim(t.Context(), task.ID); err != nil {
		t.Fatal(err)
	}
	if again := next.waits("git push"); again.Plan != w.Plan { // no other has held the task
		t.Errorf("claimed again, it asks with the id %s", again.Plan)
	}
	r.decide(w.Plan, user(""))
	if _, err := r.board.Release(t.Context(), task.ID, leads, 0, team.Freed{Reason: "lost"}); err != nil {
		t.Fatal(err)
	}
	if _, err := board.NewClaimSlot(t.Context(), r.board, team.Holder{Agent: "coder-2", Incarnation: 1, Role: "coder"}).Claim(t.Context(), task.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := r.board.Release(t.Context(), task.ID, leads, 0, team.Freed{Reason: "lost"}); err != nil {
		t.Fatal(err)
	}
	third := r.asker(3)
	if _, err := third.hand.Claim(t.Context(), task.ID); err != nil {
		t.Fatal(err)
	}
	third.passes("after somebody else has held it", "git push", "is asked")
}

// A record that cannot be read is none: the call is asked anew.
func TestPermissionDamaged(t *testing.T) {
	r := newRig(t)
	a := r.asker(1)
	r.work(a)
	w := a.waits("git push")
	r.decide(w.Plan, user(team.ForTask))
	if err := r.bt.Bucket.Set(t.Context(), subject.KeyPlan(w.Plan), []byte("{")); err != nil {
		t.Fatal(err)
	}
	again := a.waits("git push")
	if again.Plan == w.Plan {
		t.Fatal("it asks under the id of the damaged record")
	}
	r.decide(again.Plan, user(""))
	a.passes("allowed", "git push", "")
}

// What a command holds does nothing to the terminal of the person who reads about it, and what
// is cut is said to be.
func TestMailAboutCommand(t *testing.T) {
	r := newRig(t)
	a := r.asker(1)
	r.work(a)
	a.waits("echo \x00 \x1b[2K \u202e " + strings.Repeat("x", 9000) + " rm -rf ~")
	m := r.post.sent[0]
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"echo ⟨U+0000⟩ ⟨U+001B⟩[2K ⟨U+202E⟩", "(the first 8000 of 90", "approvals show " + m.RequestID} {
		if !strings.Contains(m.Content, want) {
			t.Errorf("the mail lacks %q: %.300s", want, m.Content)
		}
	}
	if shown := r.stored(m.RequestID).Call.Shown(); !strings.HasSuffix(shown, "rm -rf ~") {
		t.Error("the record does not show all of it")
	}
}

// A call that a person has allowed until the task has ended is the task's; one that was allowed once, or is not decided
// on, is its member's.
func TestAllowedCallGoesAlong(t *testing.T) {
	for scope, asks := range map[team.Scope]bool{team.ForTask: false, team.Once: true, "": true} {
		t.Run("scope "+string(scope), func(t *testing.T) {
			r := newRig(t)
			a := r.asker(1)
			task := r.work(a)
			w := a.waits("make")
			if scope != "" {
				r.decide(w.Plan, user(scope))
			}
			other := r.bob(1)
			b := asker{r.plans.Permissions(team.Member{AgentID: "bob", Incarnation: 1}, other.hand,
				func(context.Context, tool.Request) (approval.Judgement, error) { return *a.j, nil }), other.hand, t, a.j}
			task = r.moves(task.ID, other)
			want := ""
			if asks {
				want = "is asked"
			}
			b.passes("for the next holder", "make", want)
			b.passes("the second time", "make", want)
			if _, err := other.hand.Complete(t.Context(), task.ID, team.Done{Summary: "done"}); err != nil {
				t.Fatal(err)
			}
			r.task(other)
			b.passes("for his next task", "make", "is asked")
			if got := r.stored(w.Plan); got.AgentID != "coder-1" || got.Incarnation != 1 {
				t.Errorf("the request stands as %+v", got)
			}
		})
	}
}
