package membership

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"agentteam/pkg/agent"
	"agentteam/pkg/board/index"
	"agentteam/pkg/completion"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/registry"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/teamtool"
	"agentteam/pkg/tool/workspace"
)

// finisher is the crew of a leader, whose membership must know that it ends the
// team before the team's record says so.
type finisher struct {
	teamtool.Crew
	finishing *atomic.Bool
}

func (f finisher) Finish(ctx context.Context, summary string, givenUp []team.TaskID) error {
	f.finishing.Store(true)
	err := f.Crew.Finish(ctx, summary, givenUp)
	if err != nil {
		f.finishing.Store(false)
	}
	return err
}

// tools are those of the member, whose conversation so far is past.
func (m *member) tools(ws *workspace.Workspace, box *mailbox.Mailbox, past *agent.Conversation) (*tool.Set, error) {
	files := ws.Tools()
	var leads teamtool.Crew
	if m.Crew != nil {
		leads = finisher{m.Crew, &m.finishing}
	}
	crew := teamtool.New(teamtool.Options{
		Self: m.Member, Board: m.board, Hand: m.hand, Mailbox: box, Roster: m.roster, Heard: m.heard, Asked: past.Asks, Crew: leads, Aliases: m.Aliases, Plans: m.plans, Gate: m.gate,
		LeaderCreates: m.Record.Policies.Create == team.CreateLeader,
		List:          func(ctx context.Context, q team.Query) (team.Page, error) { return index.List(ctx, m.Team, m.board, q) },
		Team:          func(ctx context.Context) (team.Team, error) { return registry.Record(ctx, m.Team) },
		Verify: func(ctx context.Context, t team.Task) (string, error) {
			return completion.Verify(ctx, t, ws, m.Team.Files)
		},
	})
	set, err := tool.NewSet(m.Metrics, append(files, crew...)...)
	if err != nil {
		return nil, err
	}
	if m.gate != nil {
		set = set.Behind(m.gate.Pass)
	}
	// A role chooses among the tools of the workspace; the team's are everybody's,
	// since without them nobody could take part.
	return set.Speaking(m.Record.Dialect(m.Role)).Allow(teamtool.Allowed(m.Member, append(m.chosen(files, crew), toolNames(crew)...)))
}

// chosen are the tools of the workspace that the role lets its members use. A role
// file may have been written for another program: what it names and nobody has here
// is left out, and a role of nothing else is left with no tool rather than with all.
func (m *member) chosen(files, crew []tool.Tool) []string {
	if len(m.Role.Tools) == 0 || slices.Contains(m.Role.Tools, "*") {
		return toolNames(files)
	}
	var names, unknown []string
	for _, name := range m.Role.Tools {
		name = strings.TrimSuffix(name, team.OnlyDeliverable) // which mayWrite enforces
		is := func(t tool.Tool) bool { return t.Name == name || t.Answers(name) }
		switch {
		case slices.ContainsFunc(files, is):
			names = append(names, name)
		case !slices.ContainsFunc(crew, is):
			unknown = append(unknown, name)
		}
	}
	if unknown != nil {
		m.Logger.Warn("the role names tools that are not there; they are left out", "agent", m.Member.AgentID, "role", m.Role.Name, "tools", unknown)
	}
	return names
}

// mayWrite returns why the file tools may not write a file, or nil.
func (m *member) mayWrite(name string) error {
	held, _ := m.hand.Task()
	return m.Role.MayWrite(name, held)
}

func toolNames(tools []tool.Tool) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
}
