package runtime

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/execenv/projectcontext"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// What the organisation denies is denied in every mode, whatever a team or a role allows; its rules that ask
// and allow hold beside theirs.
func TestOrganisation(t *testing.T) {
	m := &member{Options: Options{Member: team.Member{Role: "coder"}, Level: func(context.Context, team.Team, string) team.Sandbox { return team.Unconfined }}}
	m.Organisation = team.Permissions{Deny: []string{"Bash(git push *)", "Read(.env)"}, Ask: []string{"Bash(git tag *)"}, Allow: []string{"Bash(go test *)", "Bash(rm *)"}}
	for _, mode := range []team.PermissionMode{team.DefaultMode, team.AcceptEdits, team.BypassPermissions, team.ReadOnlyMode} {
		record := team.Team{Roles: map[string]team.Role{"coder": {Name: "coder", Policy: team.Policy{Permissions: team.Permissions{Allow: []string{"Bash(git tag *)"}}}}},
			Policy: team.Policy{PermissionMode: mode, Permissions: team.Permissions{Deny: []string{"Bash(rm *)"}, Allow: []string{"Bash(git push *)"}}}}
		m.newest.Store(&record)
		for command, want := range map[string]approval.Judgement{
			"git push":    {Answer: permission.Deny, Rule: "Bash(git push *)"},
			"cat .env":    {Answer: permission.Deny, Rule: "Read(.env)"},
			"rm x":        {Answer: permission.Deny, Rule: "Bash(rm *)"},
			"git tag v1":  {Answer: permission.Ask, Rule: "Bash(git tag *)"},
			"go test ./x": {Answer: permission.Allow, Rule: "Bash(go test *)"},
		} {
			if want.Answer != permission.Deny && mode != team.DefaultMode {
				continue
			}
			arguments := []byte(`{"command":"` + command + `"}`)
			j, err := m.judgeBy(t.Context(), record, "coder", tool.Request{Called: "bash", Tool: "bash", Arguments: arguments, Traits: tool.Traits{Writes: true}}, "/work")
			if err != nil || j.Answer != want.Answer || j.Rule != want.Rule {
				t.Errorf("%s: %s: %v by %q, %v; want %v by %q", mode, command, j.Answer, j.Rule, err, want.Answer, want.Rule)
			}
		}
	}
	var given = team.Grant{Approval: "9f0c", By: "ann"}
	record := team.Team{Policy: team.Policy{Permissions: team.Permissions{Allow: []string{"Bash(ls)", "Bash(id)"}, Given: map[string]team.Grant{"Bash(ls)": given}}}}
	for command, want := range map[string]*team.Grant{"ls": &given, "id": nil} {
		j, err := m.judgeBy(t.Context(), record, "coder", tool.Request{Called: "bash", Tool: "bash", Arguments: []byte(`{"command":"` + command + `"}`), Traits: tool.Traits{Writes: true}}, "/work")
		if err != nil || !reflect.DeepEqual(j.Given, want) {
			t.Errorf("%s is allowed by a rule that was given by %v, %v", command, j.Given, err)
		}
	}
	// While the rules of the team cannot be read, those of the organisation hold.
	broken := team.Team{Policy: team.Policy{Permissions: team.Permissions{Allow: []string{"Bash("}}}}
	for _, tt := range []struct {
		tool, arguments string
		readOnly        bool
		want            permission.Decision
		fails           bool
	}{
		{"read_file", `{"path":".env"}`, true, permission.Deny, false},
		{"read_file", `{"path":"b.md"}`, true, permission.None, true},
		{"bash", `{"command":"ls"}`, false, permission.None, true},
		{"list_tasks", `{}`, true, permission.Allow, false},
	} {
		j, err := m.judgeBy(t.Context(), broken, "coder", tool.Request{Called: tt.tool, Tool: tt.tool, Arguments: []byte(tt.arguments), Traits: tool.Traits{ReadOnly: tt.readOnly, Writes: !tt.readOnly}}, "/work")
		if (err != nil) != tt.fails || err == nil && j.Answer != tt.want {
			t.Errorf("%s %s under rules that cannot be read: %v, %v", tt.tool, tt.arguments, j.Answer, err)
		}
	}
	var may projectcontext.May = m.mayNotify(*m.newest.Load(), "/work")
	if may("/work/.env") || !may("/work/b.md") {
		t.Error("an instruction may import what the organisation denies to read")
	}
}

// A check runs what its author wrote: it may do nothing that a rule denies to a command.
func TestDeniedCheck(t *testing.T) {
	m := owner(t, nil, team.Team{Policy: team.Policy{Permissions: team.Permissions{Deny: []string{"Bash(git push *)"}}}})
	for check, denied := range map[string]bool{"": false, "go test ./...": false, "go test ./... && git push origin": true, "git $X origin": true, "test \"$(wc -l < a)\" = 3": false} {
		err := m.mayCheck(t.Context(), team.Task{ID: "T-001", Check: check})
		if errors.Is(err, team.PermissionDenied) != denied || !denied && err != nil {
			t.Errorf("the check %q: %v", check, err)
		}
	}
}

// Nor does the queue of a member run, for its owner, the check of another: what an organisation denies on this
// machine, the team's records do not know.
func TestDeniedCheckOfOther(t *testing.T) {
	m := owner(t, nil, team.Team{Roles: map[string]team.Role{"tester": {Name: "tester", Policy: team.Policy{Permissions: team.Permissions{Deny: []string{"Bash(make *)"}}}}}})
	m.Organisation = team.Permissions{Deny: []string{"Bash(git push *)"}}
	may := m.workspaceOptions(nil).May
	for _, tt := range []struct {
		role, check string
		denied      bool
	}{{"tester", "go test ./...", false}, {"tester", "make test", true}, {"coder", "make test", false}, {"tester", "git push origin", true}, {"", "git push origin", true}} {
		if err := may(t.Context(), "T-001", tt.role, tt.check, t.TempDir()); errors.Is(err, team.PermissionDenied) != tt.denied || !tt.denied && err != nil {
			t.Errorf("the check %q of a %q: %v", tt.check, tt.role, err)
		}
	}
}

// touch makes a call for which a person is asked.
func (m *member) touch(ctx context.Context) error {
	return m.asks.Pass(ctx, tool.Request{Called: "bash", Tool: "bash", Arguments: []byte(`{"command":"touch x"}`), Traits: tool.Traits{Writes: true}})
}

// A call that a person has allowed once runs once, also in the tree that its task gets with the next hold of the same member; it is
// another call for another member, for another task and in another folder. What is allowed for the task is the next holder's too.
func TestAllowedInTheNextTree(t *testing.T) {
	t.Parallel()
	conn := brokertest.Connect(t, brokertest.Server(t))
	reg, err := registry.Open(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	bt, _, err := reg.Make(t.Context(), team.Team{ID: "t", Roles: map[string]team.Role{}, Branch: &team.GoalBranch{Prefix: "sub"}, Policy: team.Policy{Permissions: team.Permissions{Ask: []string{"Bash(touch *)"}}}})
	if err != nil {
		t.Fatal(err)
	}
	tasks, members := board.New(bt.Bucket, board.Options{}), roster.New(bt)
	plans := approval.New(bt.Bucket, approval.Options{Tasks: tasks, Members: members, Post: mailbox.New(bt, mailbox.Options{Members: members})})
	created, err := tasks.Create(t.Context(), team.UserAgent, team.NewTask{Title: "one"}, team.NewTask{Title: "two"})
	if err != nil {
		t.Fatal(err)
	}
	// claims is a process of a member, with a tree of its own, that has claimed a task.
	claims := func(name team.AgentID, incarnation uint64, id team.TaskID) *member {
		t.Helper()
		record, err := registry.Record(t.Context(), bt)
		if err != nil {
			t.Fatal(err)
		}
		m := owner(t, nil, record)
		m.Team, m.Member.AgentID, m.Member.Incarnation = bt, name, incarnation
		was, _ := members.Get(t.Context(), name) // not there at first
		if _, err := members.Put(t.Context(), team.Member{AgentID: name, Role: "coder", State: team.Joined, Incarnation: incarnation, Backend: team.Pool, Revision: was.Revision}); err != nil {
			t.Fatal(err)
		}
		m.hand = board.NewClaimSlot(t.Context(), tasks, m.Member.Holder())
		m.asks = plans.Permissions(m.Member, m.hand, m.judge)
		if _, _, err = m.hand.Adopt(t.Context(), ""); err == nil {
			_, err = m.hand.Claim(t.Context(), id)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	asks := func(m *member) string {
		t.Helper()
		w := tool.EffectsOf(m.touch(t.Context())).Await
		if w == nil {
			t.Fatal("it passes, or waits for no person")
		}
		return w.Plan
	}
	allow := func(id string, scope team.Scope) {
		t.Helper()
		if _, err := plans.Decide(t.Context(), id, team.Decision{By: team.UserAgent, Approve: true, Scope: scope}); err != nil {
			t.Fatal(err)
		}
	}
	stopped := func(m *member, keep bool) {
		t.Helper()
		id, _ := m.hand.Task()
		if _, err := m.hand.Release(t.Context(), id.ID, team.Freed{Reason: "stopped", Keep: keep}); err != nil {
			t.Fatal(err)
		}
	}
	one, two := created[0].ID, created[1].ID
	ann := claims("ann", 1, one)
	first := asks(ann)
	if a, err := plans.Get(t.Context(), first); err != nil || a.Call.Dir != "the tree of T-001, in sub" {
		t.Errorf("it asks %+v, %v", a.Call, err)
	}
	stopped(ann, true)
	ann = claims("ann", 2, one)
	if again := asks(ann); again != first {
		t.Errorf("after the stop it asks again, as %s", again)
	}
	allow(first, team.Once)
	stopped(ann, true)
	ann = claims("ann", 3, one)
	joe := claims("joe", 1, two)
	if id := asks(joe); id == first {
		t.Error("another task has the request of the first")
	}
	if err := ann.touch(t.Context()); err != nil {
		t.Errorf("allowed before the stop: %v", err)
	}
	second := asks(ann)
	if second == first {
		t.Error("allowed once, it passes for ever")
	}
	allow(second, team.Once)
	elsewhere, err := reg.Edit(t.Context(), bt, func(t *team.Team) { t.Branch.Prefix = "other" })
	if err != nil {
		t.Fatal(err)
	}
	ann.newest.Store(&elsewhere)
	if id := asks(ann); id == second {
		t.Error("what is allowed in a folder passes in another one")
	}
	stopped(joe, false)
	stopped(ann, false)
	joe = claims("joe", 2, one)
	third := asks(joe)
	if third == second {
		t.Error("what another member was allowed once passes")
	}
	allow(third, team.ForTask)
	stopped(joe, false)
	if err := claims("ann", 4, one).touch(t.Context()); err != nil {
		t.Errorf("allowed for the task, and refused to its next holder: %v", err)
	}
}
