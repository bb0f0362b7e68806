package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"agentteam/pkg/agent"
	"agentteam/pkg/agent/completion"
	"agentteam/pkg/agent/engine"
	"agentteam/pkg/agent/skills"
	"agentteam/pkg/agent/subagent"
	"agentteam/pkg/agent/teamtool"
	"agentteam/pkg/execenv/projectcontext"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board/index"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/job"
	"agentteam/pkg/tool/workspace"
)

// finisher is the crew of a leader. It notifies the membership of the team's end before the team's
// record states it.
type finisher struct {
	teamtool.TeamAdmin
	finishing   *atomic.Bool
	quarantined func(context.Context) // see [worktree.Workspaces.Uncommitted]
}

// Finish is refused once if the leader has changed files without a task: the notice of that is mail
// that it has not read.
func (f finisher) Finish(ctx context.Context, summary string, givenUp []team.TaskID) error {
	f.quarantined(ctx)
	f.finishing.Store(true)
	err := f.TeamAdmin.Finish(ctx, summary, givenUp)
	if err != nil {
		f.finishing.Store(false)
	}
	return err
}

// tools returns the member's tools, past being its conversation so far; led are those of a leader
// in delegate mode.
func (m *member) tools(at *workspace.Current, box *mailbox.Mailbox, past *agent.Conversation) (set, led *tool.Set, err error) {
	files := slices.Concat(at.Tools(), []tool.Tool{m.subagentTool()}, m.jobs.Tools())
	var leads teamtool.TeamAdmin
	if m.Admin != nil {
		leads = finisher{m.Admin, &m.finishing, m.workspaces.Uncommitted}
	}
	crew := teamtool.New(teamtool.Options{
		Self: m.Member, Board: m.board, Slot: m.hand, Mailbox: box, Roster: m.roster, Heard: m.heard, Asked: past.Asks, Admin: leads, Aliases: m.Aliases, Plans: m.plans, Gate: m.gate,
		Inherited:     func(ctx context.Context, t team.Task) (team.Inherited, error) { return m.inherited(ctx, box, t) },
		LeaderCreates: m.Record.Policies.Create == team.CreateLeader,
		List:          func(ctx context.Context, q team.Query) (team.Page, error) { return index.List(ctx, m.Team, m.board, q) },
		Team:          func(ctx context.Context) (team.Team, error) { return registry.Record(ctx, m.Team) },
		Verify: func(ctx context.Context, t team.Task, artifacts []string) (digest string, kept []team.Artifact, err error) {
			if err := m.mayCheck(ctx, t); err != nil {
				return "", nil, err
			}
			ws, done, err := at.Use(ctx)
			if err != nil {
				return "", nil, err
			}
			defer done()
			return m.verify(ctx, t, ws, artifacts)
		},
		Complete: m.complete,
		Exchange: func(ctx context.Context, to team.AgentID) (team.Exchange, error) {
			changed, err := m.Team.Bucket.Get(ctx, subject.AllTasks) // the task that was written last
			if err != nil && !errors.Is(err, team.NotFound) {
				return team.Exchange{}, err
			}
			return past.Exchange(to, changed.Revision), nil
		},
	})
	crew = append(crew, m.skillTool())
	set, err = tool.NewSet(m.Metrics, append(files, crew...)...)
	if err != nil {
		return nil, nil, err
	}
	if m.gate != nil {
		set = set.Behind(m.gate.Pass)
	}
	if m.Member.AgentID == team.Leader {
		set = set.Behind(m.delegate(files, "have a teammate do it: create a task, or ask by send_message"))
	}
	m.asks = m.plans.Permissions(m.Member, m.hand, m.judge)
	set = set.Behind(m.asks.Pass)
	m.names = m.chosen(files, crew)
	// A role chooses among the tools of the workspace; all members have the team's tools except
	// those that the role removes, since without them none could take part.
	set, err = set.Speaking(m.speech(m.Record.Dialect(m.Role), m.Member.Model)).Allow(append(m.names, teamtool.Allowed(m.Member, crew)...))
	if err != nil {
		return nil, nil, err
	}
	set = set.Without(func(t tool.Tool) bool { return m.Role.Takes(t.Answers) })
	return set, set.Without(func(t tool.Tool) bool { return slices.Contains(toolNames(files), t.Name) }), nil
}

// speech returns the names of the tools for a model: those of the dialect, with patches in place of edits if the model
// is trained on them.
func (m *member) speech(d team.Dialect, model string) team.Dialect {
	if p, ok := m.Model.(interface{ Patches(model string) bool }); ok && p.Patches(model) {
		return d.Patching()
	}
	return d
}

// mode returns a function for the member's current system message and tools, which change while it
// works: a person may have a leader only lead, and the next goal may be done in separate trees.
func (m *member) mode(at projectcontext.Place, all, led *tool.Set) func() (system string, t engine.Tools) {
	type way struct{ delegates, onLine bool }
	systems := map[way]string{}
	return func() (string, engine.Tools) {
		now := m.record()
		is, tools := way{now.Policies.Delegate, now.HasBranch()}, all
		if is.delegates = is.delegates && m.Member.AgentID == team.Leader; is.delegates {
			tools = led
		}
		if systems[is] == "" {
			record := m.Record
			record.Policies.Delegate, record.Branch, record.GoalNumber = is.delegates, now.Branch, now.GoalNumber
			here := at
			if m.Record.HasBranch() && !is.onLine { // it began in a tree
				here.Workspace = "."
			}
			systems[is] = agent.System(record, m.Member, m.Role, here)
		}
		return systems[is], tools
	}
}

// Traits returns the traits of the tool with this name, in any dialect; the zero Traits if no tool
// of a member has it. It is for callers that see only names of calls, such as package render.
func Traits(name string) tool.Traits { return known().Traits(name) }

// Has reports whether a member may have a tool with this name, in any dialect.
func Has(name string) bool { return known().Has(name) }

// known returns the tools of all members. They have no workspace, so none can be run.
var known = sync.OnceValue(func() *tool.Set {
	crew := teamtool.New(teamtool.Options{Gate: new(approval.Gate)})
	set, err := tool.NewSet(nil, slices.Concat(new(workspace.Workspace).Tools(), []tool.Tool{subagent.None(), skills.Tool(nil)}, new(job.Jobs).Tools(), crew)...)
	if err != nil {
		panic(err.Error()) // each member's own set would panic, too
	}
	return set
})

// chosen returns the names of the workspace tools that the role lets its members use, with
// subagents and the tools for background jobs. A role file may have been written for another
// program: unknown names are left out, and a role with only such names has no tool rather than all.
func (m *member) chosen(files, crew []tool.Tool) []string {
	if m.Role.IsToolless() {
		return nil
	}
	if len(m.Role.Tools) == 0 || slices.Contains(m.Role.Tools, "*") {
		return toolNames(files)
	}
	var names, unknown []string
	for _, name := range m.Role.Tools {
		name = strings.TrimSuffix(name, team.OnlyDeliverable) // which mayWrite enforces
		is := func(t tool.Tool) bool { return t.Answers(name) }
		switch {
		case slices.ContainsFunc(files, is):
			names = append(names, files[slices.IndexFunc(files, is)].Name)
		case !slices.ContainsFunc(crew, is):
			unknown = append(unknown, name)
		}
	}
	if unknown != nil {
		m.Logger.Warn("the role names tools that are not there; they are left out", "agent", m.Member.AgentID, "role", m.Role.Name, "tools", unknown)
	}
	if slices.Contains(names, "bash") || slices.Contains(names, "subagent") {
		names = append(names, toolNames(m.jobs.Tools())...)
	}
	return names
}

// delegate returns the gate of a leader that denies the tools of files in delegate mode. The mode
// may begin in the middle of a turn; from the next one on the leader does not see the tools.
func (m *member) delegate(files []tool.Tool, instead string) tool.Gate {
	names := toolNames(files)
	return func(_ context.Context, r tool.Request) error {
		if !m.newest.Load().Policies.Delegate || !slices.Contains(names, r.Tool) {
			return nil
		}
		return team.Errorf(team.PermissionDenied, "%s: in delegate mode the leader has no tools of the workspace", r.Called).
			WithHint("%s", instead)
	}
}

// verify runs the check of a task and stores its deliverable and artifacts. In a team with an integration branch the queue runs
// the check, on the merged files.
func (m *member) verify(ctx context.Context, t team.Task, ws *workspace.Workspace, artifacts []string) (digest string, kept []team.Artifact, err error) {
	if m.newest.Load().HasBranch() {
		digest, err = completion.Deliver(ctx, t, ws, m.Team.Files)
	} else {
		digest, err = completion.Verify(ctx, t, ws, m.Team.Files)
	}
	if err == nil {
		kept, err = completion.Keep(ctx, t, ws, m.Team.Files, artifacts)
	}
	return digest, kept, err
}

// complete completes a task that the member holds, and submits its files to the team's integration
// branch if there is one.
func (m *member) complete(ctx context.Context, t team.Task, d team.Done) (team.Task, error) {
	if !m.newest.Load().HasBranch() {
		return m.hand.Complete(ctx, t.ID, d)
	}
	_, done, err := m.current.Use(ctx) // so that the tree stays
	if err != nil {
		return t, err
	}
	defer done()
	if err := m.endJobs(ctx, t.ID); err != nil {
		return t, err
	}
	return m.workspaces.Complete(ctx, t, d)
}

// endJobs ends the jobs of a task before its files are committed: later writes would be in no
// commit. Error: Busy.
func (m *member) endJobs(ctx context.Context, id team.TaskID) error {
	wait := m.jobs.EndTask(id, fmt.Errorf("%s is completed", id))
	ctx, cancel := context.WithTimeout(ctx, agent.JobsEndWithin)
	defer cancel()
	if err := wait(ctx); err != nil {
		return team.Errorf(team.Busy, "%s is not completed: what was begun for it in the background has not ended yet", id).WithHint("complete it again")
	}
	return nil
}

// doing returns the member's current work.
func (m *member) doing() workspace.Work {
	w := workspace.Work{Team: *m.newest.Load(), Member: m.Member}
	if w.Task, _ = m.hand.Task(); w.Task.ID == "" && w.Team.HasBranch() {
		w.Head = string(m.workspaces.Head())
	}
	return w
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
