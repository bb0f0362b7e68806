package membership

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"agentteam/pkg/approval"
	"agentteam/pkg/place"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// What the organisation denies is denied in every mode, whatever a team or a role allows; its rules that ask
// and allow hold beside theirs.
func TestOrganisation(t *testing.T) {
	m := &member{Options: Options{Member: team.Member{Role: "coder"}, Level: func(context.Context, team.Team, string) team.Sandbox { return team.Unconfined }}}
	m.Organisation = team.Permissions{Deny: []string{"Bash(git push *)", "Read(.env)"}, Ask: []string{"Bash(git tag *)"}, Allow: []string{"Bash(go test *)", "Bash(rm *)"}}
	for _, mode := range []team.PermissionMode{team.DefaultMode, team.AcceptEdits, team.BypassPermissions, team.ReadOnlyMode} {
		record := team.Team{Roles: map[string]team.Role{"coder": {Name: "coder", Hands: team.Hands{Permissions: team.Permissions{Allow: []string{"Bash(git tag *)"}}}}},
			Hands: team.Hands{PermissionMode: mode, Permissions: team.Permissions{Deny: []string{"Bash(rm *)"}, Allow: []string{"Bash(git push *)"}}}}
		m.newest.Store(&record)
		for command, want := range map[string]approval.Judgement{
			"git push":    {Answer: approval.Deny, Rule: "Bash(git push *)"},
			"cat .env":    {Answer: approval.Deny, Rule: "Read(.env)"},
			"rm x":        {Answer: approval.Deny, Rule: "Bash(rm *)"},
			"git tag v1":  {Answer: approval.Ask, Rule: "Bash(git tag *)"},
			"go test ./x": {Answer: approval.Allow, Rule: "Bash(go test *)"},
		} {
			if want.Answer != approval.Deny && mode != team.DefaultMode {
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
	record := team.Team{Hands: team.Hands{Permissions: team.Permissions{Allow: []string{"Bash(ls)", "Bash(id)"}, Given: map[string]team.Grant{"Bash(ls)": given}}}}
	for command, want := range map[string]*team.Grant{"ls": &given, "id": nil} {
		j, err := m.judgeBy(t.Context(), record, "coder", tool.Request{Called: "bash", Tool: "bash", Arguments: []byte(`{"command":"` + command + `"}`), Traits: tool.Traits{Writes: true}}, "/work")
		if err != nil || !reflect.DeepEqual(j.Given, want) {
			t.Errorf("%s is allowed by a rule that was given by %v, %v", command, j.Given, err)
		}
	}
	// While the rules of the team cannot be read, those of the organisation hold.
	broken := team.Team{Hands: team.Hands{Permissions: team.Permissions{Allow: []string{"Bash("}}}}
	for _, tt := range []struct {
		tool, arguments string
		readOnly        bool
		want            approval.Answer
		fails           bool
	}{
		{"read_file", `{"path":".env"}`, true, approval.Deny, false},
		{"read_file", `{"path":"b.md"}`, true, "", true},
		{"bash", `{"command":"ls"}`, false, "", true},
		{"list_tasks", `{}`, true, approval.Allow, false},
	} {
		j, err := m.judgeBy(t.Context(), broken, "coder", tool.Request{Called: tt.tool, Tool: tt.tool, Arguments: []byte(tt.arguments), Traits: tool.Traits{ReadOnly: tt.readOnly, Writes: !tt.readOnly}}, "/work")
		if (err != nil) != tt.fails || err == nil && j.Answer != tt.want {
			t.Errorf("%s %s under rules that cannot be read: %v, %v", tt.tool, tt.arguments, j.Answer, err)
		}
	}
	var may place.May = m.mayTell(*m.newest.Load(), "/work")
	if may("/work/.env") || !may("/work/b.md") {
		t.Error("an instruction may import what the organisation denies to read")
	}
}

// A check runs what its author wrote: it may do nothing that a rule denies to a command.
func TestDeniedCheck(t *testing.T) {
	m := owner(t, nil, team.Team{Hands: team.Hands{Permissions: team.Permissions{Deny: []string{"Bash(git push *)"}}}})
	for check, denied := range map[string]bool{"": false, "go test ./...": false, "go test ./... && git push origin": true} {
		err := m.mayCheck(t.Context(), team.Task{ID: "T-001", Check: check})
		if errors.Is(err, team.PermissionDenied) != denied || !denied && err != nil {
			t.Errorf("the check %q: %v", check, err)
		}
	}
}

// Nor does the queue of a member run, for its owner, the check of another: what an organisation denies on this
// machine, the team's records do not know.
func TestDeniedCheckOfOther(t *testing.T) {
	m := owner(t, nil, team.Team{Roles: map[string]team.Role{"tester": {Name: "tester", Hands: team.Hands{Permissions: team.Permissions{Deny: []string{"Bash(make *)"}}}}}})
	m.Organisation = team.Permissions{Deny: []string{"Bash(git push *)"}}
	may := m.lineOptions(nil).May
	for _, tt := range []struct {
		role, check string
		denied      bool
	}{{"tester", "go test ./...", false}, {"tester", "make test", true}, {"coder", "make test", false}, {"tester", "git push origin", true}, {"", "git push origin", true}} {
		if err := may(t.Context(), "T-001", tt.role, tt.check, t.TempDir()); errors.Is(err, team.PermissionDenied) != tt.denied || !tt.denied && err != nil {
			t.Errorf("the check %q of a %q: %v", tt.check, tt.role, err)
		}
	}
}
