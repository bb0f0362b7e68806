package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentteam/pkg/place"
	"agentteam/pkg/team"
)

// System is the system message of a member. Its first line is fixed by the
// protocol; then come how to work here, where that is, the role's instructions, and
// those of the project.
func System(t team.Team, m team.Member, r team.Role, at place.Place) string {
	dialect := t.Dialect(r)
	parts := []string{fmt.Sprintf("You are %s, role %s, in team %s.", m.AgentID, m.Role, t.ID)}
	if m.AgentID == team.Leader {
		parts = append(parts, dialect.Say(leaderPrompt), spawnable(t.Roles))
	} else {
		parts = append(parts, dialect.Say(teammatePrompt))
	}
	if m.AgentID == team.Leader && t.Policies.Delegate {
		parts = append(parts, delegatePrompt)
	}
	if m.PlanMode {
		parts = append(parts, planPrompt)
	}
	parts = append(parts, environment(at), r.Instructions, instructions(at))
	for i, part := range parts {
		parts[i] = strings.TrimSpace(part)
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n\n") + "\n"
}

// spawnable lists the roles that a leader can give to a teammate.
func spawnable(roles map[string]team.Role) string {
	var b strings.Builder
	b.WriteString("Roles you can spawn:\n")
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		if name != team.LeaderRole {
			fmt.Fprintf(&b, "- %s: %s\n", name, roles[name].Description)
		}
	}
	return b.String()
}

// environment tells where the agent works.
func environment(at place.Place) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<environment>\nworkspace: %s (the shell starts here, paths are relative to it, the whole team shares it)\nplatform: %s, bash\ndate: %s\n",
		neutral(at.Workspace), at.Platform, at.Date)
	if at.Git != "" {
		fmt.Fprintf(&b, "git: %s, when you were started\n", neutral(at.Git))
	}
	return b.String() + "</environment>"
}

// instructions are those that the project has for agents.
func instructions(at place.Place) string {
	if at.Project == "" {
		return ""
	}
	text := fmt.Sprintf("# Instructions of the project (%s)\n%s", neutral(at.File), neutral(strings.TrimSpace(at.Project)))
	if at.LeftOut > 0 {
		text += fmt.Sprintf("\n[%d bytes more are left out]", at.LeftOut)
	}
	return text
}
