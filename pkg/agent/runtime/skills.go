package runtime

import (
	"context"

	"agentteam/pkg/agent/skills"
	"agentteam/pkg/execenv/projectcontext"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

const (
	skillsShare   = 50       // the lines of skills take at most this part of the window: 2 in 100
	defaultWindow = 32_000   // tokens of an unknown window
	maxGiven      = 16 << 10 // characters of the text of a skill that a role names
)

// skillTool returns the tool skill of the member, and of its subagents.
func (m *member) skillTool() tool.Tool {
	return skills.Tool(func(ctx context.Context) (skills.Set, error) {
		ws, done, err := m.current.Use(ctx)
		if err != nil {
			return skills.Set{}, err
		}
		defer done()
		return m.skillsIn(ws.Dir(), delegationOf(ctx)), nil
	})
}

// skillsIn returns the skills in a folder of the member.
func (m *member) skillsIn(dir string, lend func(team.Team) team.Team) skills.Set {
	record := m.record()
	return skills.Load(dir, record.Workspace, m.mayNotify(lend(record), dir))
}

// withSkills returns a place with the skills that a member of the role is shown there from the
// start.
func (m *member) withSkills(at projectcontext.Place, r team.Role, dir string, lend func(team.Team) team.Team) projectcontext.Place {
	set, window := m.skillsIn(dir, lend), 0
	if m.Model != nil {
		window = m.Model.Limits(m.Member.Model).Window
	}
	if window == 0 {
		window = defaultWindow
	}
	at.Skills, at.MoreSkills = set.Lines(window / skillsShare)
	at.Given = nil
	for _, name := range r.Skills {
		text, ok := set.Given(name)
		if !ok {
			m.Logger.Warn("the role names a skill that is not there, or waits for trust", "agent", m.Member.AgentID, "role", r.Name, "skill", name)
			continue
		}
		f := projectcontext.File{Name: "Skill " + name, Text: team.Clip(text, maxGiven)}
		if f.Text != text {
			f.LeftOut, f.Faults = max(len(text)-len(f.Text), 0), []string{"all of it: " + m.record().Dialect(m.Role).Tool("skill") + " with its name"}
		}
		at.Given = append(at.Given, f)
	}
	return at
}
