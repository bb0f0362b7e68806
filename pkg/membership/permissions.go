package membership

import (
	"context"
	"encoding/json"

	"agentteam/pkg/approval"
	"agentteam/pkg/permission"
	"agentteam/pkg/registry"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// judge judges a call by the rules of the team and of the member's role. A call that a person has to
// allow is judged by the record as it is stored: the rule for it may just have been added.
func (m *member) judge(ctx context.Context, r tool.Request) (approval.Judgement, error) {
	dir := m.folder
	if ws, done, err := m.current.Use(ctx); err == nil { // else the call fails by that, if it needs one
		dir = ws.Dir()
		done()
	}
	j, err := m.judgeBy(ctx, *m.newest.Load(), r, dir)
	if err != nil || j.Answer != approval.Ask {
		return j, err
	}
	record, err := registry.Record(ctx, m.Team)
	if err != nil {
		return j, err
	}
	return m.judgeBy(ctx, record, r, dir)
}

// judgeBy judges a call by a record of the team.
func (m *member) judgeBy(ctx context.Context, record team.Team, r tool.Request, dir string) (approval.Judgement, error) {
	hands := record.HandsOf(m.Member.Role)
	j := approval.Judgement{Dir: dir, Asking: hands.PermissionAsk}
	rules, _, err := permission.Parse(hands.Permissions)
	if err != nil && !r.Traits.Writes { // the team's own tools are asked for nothing
		j.Answer = approval.Allow
		return j, nil
	}
	if err != nil { // which of them allows something is not known then
		return j, team.Errorf(team.InvalidState, "the permissions of the team cannot be read: %w", err).WithHint("a person has to mend them; tell the user")
	}
	var v permission.Verdict
	if m.Level != nil {
		j.Level = m.Level(ctx, record, m.Member.Role)
		v = permission.Judge(rules, hands.PermissionMode, j.Level, r, dir)
	} else {
		v = rules.Decide(r, dir)
	}
	j.Rule, j.Why = v.Rule, v.Why
	switch v.Decision {
	case permission.None, permission.Allow:
		j.Answer = approval.Allow
	case permission.Ask:
		j.Answer = approval.Ask
		if v.Rule == "" { // a rule that asks goes before each that allows
			j.Always = permission.Always(r)
		}
	default:
		j.Answer = approval.Deny
	}
	return j, nil
}

// mayTell reports whether no rule denies the member to read a file, an absolute path: what it may not
// read is not told to it either.
func (m *member) mayTell(path string) bool {
	rules, _, err := permission.Parse(m.newest.Load().HandsOf(m.Member.Role).Permissions)
	if err != nil { // which of them denies something is not known then
		return false
	}
	arguments, err := json.Marshal(map[string]string{"path": path})
	if err != nil {
		return false
	}
	v := rules.Decide(tool.Request{Called: "read_file", Tool: "read_file", Arguments: arguments, Traits: known().Traits("read_file")}, m.folder)
	return v.Decision != permission.Deny && v.Decision != permission.Ask
}
