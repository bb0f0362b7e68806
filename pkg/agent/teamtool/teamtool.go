// Package teamtool implements the team's tools: a model's actions on the board, on its teammates
// and, if it leads, on the team. Each tool translates its arguments into calls of board, mailbox,
// roster or spawn. Those packages, and the agent's tool set, decide who may do what.
package teamtool

import (
	"context"
	"slices"
	"time"

	"agentteam/pkg/agent/spawn"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/dialect"
)

// TeamAdmin is the leader's interface to spawn, assign and end; the process that leads implements it.
type TeamAdmin interface {
	// Spawn makes m (its role, and optionally name, prompt and model) a live member.
	Spawn(ctx context.Context, m team.Member) (team.Member, error)
	// Remove asks a member to leave. It waits a few seconds for the answer; a later one comes as
	// mail.
	Remove(ctx context.Context, a team.AgentID, reason string) (spawn.Answer, error)
	// Assign gives a task to another member, now or as soon as it is free; see
	// [board.Board.Give].
	Assign(ctx context.Context, a team.AgentID, id team.TaskID) (team.Task, error)
	// Describe adds a name, which the team answers to from then on, and sets its description. An
	// empty text changes nothing.
	Describe(ctx context.Context, name, text string) error
	// Finish ends the goal, without the failed tasks that are given up, or returns why it cannot
	// end.
	Finish(ctx context.Context, summary string, givenUp []team.TaskID) error
}

// Options are the member and the parts of its tools.
type Options struct {
	Self    team.Member
	Team    func(ctx context.Context) (team.Team, error) // the team's current record
	Board   *board.Board
	Slot    *board.ClaimSlot
	Mailbox *mailbox.Mailbox
	Roster  *roster.Roster
	// List returns a part of the board; see index.List.
	List func(ctx context.Context, q team.Query) (team.Page, error)
	// Asked returns nil if the member may answer the request to shut down with this id. Errors:
	// NotFound, Conflict.
	Asked func(requestID string) error
	// Heard returns the last heartbeats of the live members that have a process.
	Heard func(ctx context.Context, members []team.Member) map[team.AgentID]roster.Heard
	// Exchange returns the count for the next message to a member, or to all; nil: messages are not
	// counted.
	Exchange func(ctx context.Context, to team.AgentID) (team.Exchange, error)
	// Verify checks that a task which the member holds is done, and stores its deliverable; see
	// package completion.
	Verify func(ctx context.Context, t team.Task, artifacts []string) (digest string, kept []team.Artifact, err error)
	// Complete completes a task that was verified; default: the slot's.
	Complete func(ctx context.Context, t team.Task, d team.Done) (team.Task, error)
	Admin    TeamAdmin // the leader's; nil for a teammate
	Plans    *approval.Plans
	Gate     *approval.Gate // of a teammate; nil of the leader
	// Inherited returns the inheritance of a task that the member has just taken; see agent.Team.
	Inherited func(ctx context.Context, t team.Task) (team.Inherited, error)
	// Aliases are the names of models that a new member may be given.
	Aliases []string
	// LeaderCreates: in this team only the leader creates tasks, so the tools for it are hidden
	// from others.
	LeaderCreates bool
}

type tools struct{ Options }

// New returns the team tools of one member. A teammate's set contains the leader's tools too, so
// that calling one returns permission_denied rather than not_found; [Allowed] leaves them out.
func New(o Options) []tool.Tool {
	t := tools{o}
	return dialect.Translate(slices.Concat(t.taskTools(), t.talkTools(), t.planTools(), t.leadTools(), t.claudeTools()), t.forms())
}

// Allowed returns the names of the tools that m may use.
func Allowed(m team.Member, tools []tool.Tool) (names []string) {
	for _, t := range tools {
		if m.AgentID == team.Leader || !t.Traits.LeaderOnly {
			names = append(names, t.Name)
		}
	}
	return names
}

func (t tools) leads() bool { return t.Self.AgentID == team.Leader }

func (t tools) actor() team.Actor { return team.Actor{Holder: t.Self.Holder(), Leads: t.leads()} }

func (t tools) mayCreate(ctx context.Context) error {
	if t.leads() {
		return nil
	}
	record, err := t.Team(ctx)
	if err != nil {
		return err
	}
	if record.Policies.Create == team.CreateLeader {
		return team.Errorf(team.PermissionDenied, "in this team only the leader creates tasks").WithHint("ask the leader by send_message")
	}
	return nil
}

// resultWithin bounds the reading of a tool's result.
const resultWithin = 5 * time.Second

// result returns a task after a write. Only an open task's reason for waiting needs another read.
// It is returned even if the agent must stop meanwhile: the fact of the change must not be lost.
func (t tools) result(ctx context.Context, task team.Task) (tool.Output, error) {
	if task.Status != team.Pending || len(task.Dependencies) == 0 && task.ReservedFor == "" {
		v := task.View(nil, nil)
		return tool.Output{Value: v, Brief: changed(v, nil), Effects: tool.Effects{Moved: &task}}, nil
	}
	ctx, done := shutdown.Outlive(ctx, shutdown.Tools)
	defer done()
	ctx, cancel := context.WithTimeout(ctx, resultWithin)
	defer cancel()
	v, err := t.view(ctx, task.ID)
	if err == nil && !v.IsBlocked && v.ReservedFor != "" {
		v.Why, err = t.why(ctx, v)
	}
	return tool.Output{Value: v, Brief: changed(v, nil), Effects: tool.Effects{Moved: &v.Task}}, err
}

// why returns the reason why the member that v is reserved for has not taken it yet.
func (t tools) why(ctx context.Context, v team.TaskView) (string, error) {
	m, err := t.Roster.Get(ctx, v.ReservedFor)
	if err != nil {
		return "", err
	}
	record, err := t.Team(ctx)
	if err != nil {
		return "", err
	}
	h := t.Heard(ctx, []team.Member{m})[m.AgentID]
	at := explain.Standing{Member: m, State: h.State(m, record, time.Now()), Task: h.Task}
	return explain.Situation{Status: record.Status, Led: true, Members: []explain.Standing{at}}.Why(v, nil), nil
}

// view returns the printed form of one task.
func (t tools) view(ctx context.Context, id team.TaskID) (team.TaskView, error) {
	p, err := t.List(ctx, team.Query{IDs: []team.TaskID{id}})
	if err != nil {
		return team.TaskView{}, err
	}
	if len(p.Tasks) > 0 {
		return p.Tasks[0], nil
	}
	_, err = t.Board.Get(ctx, id) // the board's error for an unknown task
	return team.TaskView{}, err
}
