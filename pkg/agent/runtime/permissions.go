package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/execenv/projectcontext"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// judge judges a call by the rules of the organisation, of the team and of the member's role. A
// call that a person must allow is judged by the stored record: the rule for it may just have been
// added.
func (m *member) judge(ctx context.Context, r tool.Request) (approval.Judgement, error) {
	return m.judgeAs(ctx, r, whole)
}

// judgeAs is judge by the record that lend returns for the team's.
func (m *member) judgeAs(ctx context.Context, r tool.Request, lend func(team.Team) team.Team) (approval.Judgement, error) {
	dir := m.dir(ctx)
	j, err := m.judgeBy(ctx, lend(*m.newest.Load()), m.Member.Role, r, dir)
	if err != nil || j.Answer != permission.Ask {
		return j, err
	}
	record, err := registry.Record(ctx, m.Team)
	if err != nil {
		return j, err
	}
	j, err = m.judgeBy(ctx, lend(record), m.Member.Role, r, dir)
	j.Dir = m.where(record, dir)
	return j, err
}

// where returns the place of a call as people are shown it: each hold of a task has a new folder,
// in which a call is the same.
func (m *member) where(record team.Team, dir string) string {
	if !record.HasBranch() {
		return dir
	}
	held, _ := m.hand.Task()
	tree := "the tree of " + string(cmp.Or(team.AgentID(held.ID), m.Member.AgentID))
	if record.Branch.Prefix != "" {
		tree += ", in " + record.Branch.Prefix
	}
	return tree
}

// dir returns the folder in which the member's calls work.
func (m *member) dir(ctx context.Context) string {
	ws, done, err := m.current.Use(ctx)
	if err != nil { // the call fails with that error, if it needs the folder
		return m.folder
	}
	defer done()
	return ws.Dir()
}

// judgeBy judges a call of a member of a role by a record of the team.
func (m *member) judgeBy(ctx context.Context, record team.Team, role string, r tool.Request, dir string) (approval.Judgement, error) {
	policy := record.PolicyOf(role)
	j := approval.Judgement{Asking: policy.PermissionAsk}
	rules, _, err := permission.Parse(m.Organisation.And(policy.Permissions))
	if err != nil {
		return m.judgeWithout(j, r, dir, err)
	}
	var v permission.Verdict
	if m.Level != nil {
		j.Level = m.Level(ctx, record, role)
		v = permission.Judge(rules, policy.PermissionMode, j.Level, r, dir)
	} else {
		v = rules.Decide(r, dir)
	}
	j.Answer, j.Rule, j.Why, j.Doubt = v.Decision, v.Rule, v.Why, v.Doubt
	switch {
	case v.Decision < permission.Ask:
		if by, ok := policy.Permissions.Given[v.Rule]; ok && !slices.Contains(m.Organisation.Allow, v.Rule) {
			j.Given = &by
		}
	case v.Decision == permission.Ask && v.Rule == "": // a rule that asks goes before each that allows
		j.Always = permission.Always(r)
	}
	return j, nil
}

// judgeWithout judges a call while the rules of the team or of the role are unreadable: a rule that
// denies it is not known then. The organisation's rules hold, and the team's own tools are allowed.
func (m *member) judgeWithout(j approval.Judgement, r tool.Request, dir string, unreadable error) (approval.Judgement, error) {
	rules, _, err := permission.Parse(m.Organisation)
	v := rules.Decide(r, dir)
	switch {
	case err == nil && v.Decision == permission.Deny:
		j.Answer, j.Rule, j.Why = permission.Deny, v.Rule, v.Why
		return j, nil
	case err == nil && permission.OfTeam(r):
		j.Answer = permission.Allow
		return j, nil
	}
	return j, team.Errorf(team.InvalidState, "the permissions of the team cannot be read: %w", cmp.Or(err, unreadable)).WithHint("a person has to repair them; notify the user")
}

// mayCheck returns an error if a rule denies the check of a task of the member as a command.
func (m *member) mayCheck(ctx context.Context, t team.Task) error {
	return m.mayRun(ctx, t.ID, m.Member.Role, t.Check, m.dir(ctx))
}

// mayRun returns an error if a rule denies, or may deny, a role to run the check of a task as a
// command in a folder, since no person is asked: the author of a check must not run by it what a
// command may not.
func (m *member) mayRun(ctx context.Context, id team.TaskID, role, check, dir string) error {
	if check == "" {
		return nil
	}
	arguments, err := json.Marshal(map[string]string{"command": check})
	if err != nil {
		return err
	}
	j, err := m.judgeBy(ctx, *m.newest.Load(), role, tool.Request{Called: "bash", Tool: "bash", Arguments: arguments, Traits: known().Traits("bash")}, dir)
	if err == nil && (j.Answer == permission.Deny || j.Doubt) && j.Rule != "" {
		denies := "denies it"
		if j.Doubt {
			denies = "may deny it: " + j.Why
		}
		name := "the team's check"
		if id != "" {
			name = "the check of " + string(id)
		}
		err = team.Errorf(team.PermissionDenied, "%s is not run: the rule %q %s", name, j.Rule, denies).
			WithHint("ask the leader for a check that may run")
	}
	return err
}

// mayNotify returns a function that reports whether no rule of the organisation or of a record of the
// team denies the member to read a file, an absolute path, from dir, its folder: content that it
// may not read must not reach it in another way.
func (m *member) mayNotify(record team.Team, dir string) projectcontext.May {
	rules, _, err := permission.Parse(m.Organisation.And(record.PolicyOf(m.Member.Role).Permissions))
	return func(path string) bool {
		arguments, jerr := json.Marshal(map[string]string{"path": path})
		if cmp.Or(err, jerr) != nil { // a rule that denies it is not known then
			return false
		}
		v := rules.Decide(tool.Request{Called: "read_file", Tool: "read_file", Arguments: arguments, Traits: known().Traits("read_file")}, dir)
		return v.Decision != permission.Deny && v.Decision != permission.Ask
	}
}

// hides returns [permission.Rules.Hides] by the rules of the organisation and of the team's record;
// for a subagent, with those of its type. Errors: those of [permission.Parse].
func (m *member) hides(ctx context.Context, tool, dir, start string) (func(path string) bool, error) {
	record := delegationOf(ctx)(*m.newest.Load())
	rules, _, err := permission.Parse(m.Organisation.And(record.PolicyOf(m.Member.Role).Permissions))
	if err != nil {
		return nil, err
	}
	return rules.Hides(tool, dir, start), nil
}
