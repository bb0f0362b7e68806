// Package teamtool is the team as tools: what a model can do to the board, to its
// teammates and, if it leads, to the team itself. Each tool is a thin translation
// of arguments into one call of board, mailbox, roster or spawn; who may do what
// is decided there and by the set that the agent is given.
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

// Crew is what the leader's tools need to spawn, assign and end; the process that
// leads provides it.
type Crew interface {
	// Spawn makes m (its role, and what of name, prompt and model is wanted) a
	// member that lives.
	Spawn(ctx context.Context, m team.Member) (team.Member, error)
	// Remove asks a member to leave. It waits for the answer for a few seconds; what comes
	// later comes as mail.
	Remove(ctx context.Context, a team.AgentID, reason string) (spawn.Answer, error)
	// Assign gives a task to another member, now or as soon as it is free; see
	// [board.Board.Give].
	Assign(ctx context.Context, a team.AgentID, id team.TaskID) (team.Task, error)
	// Describe gives the team another name, which it answers to from then on, and says what it
	// is for. An empty text changes nothing.
	Describe(ctx context.Context, name, text string) error
	// Finish ends the goal, without the failed tasks that are given up, or says what stands in
	// the way.
	Finish(ctx context.Context, summary string, givenUp []team.TaskID) error
}

// Options are whose tools they are and what they work on.
type Options struct {
	Self    team.Member
	Team    func(ctx context.Context) (team.Team, error) // the team's record as it stands
	Board   *board.Board
	Slot    *board.ClaimSlot
	Mailbox *mailbox.Mailbox
	Roster  *roster.Roster
	// List returns a part of the board; see index.List.
	List func(ctx context.Context, q team.Query) (team.Page, error)
	// Asked returns nil if the member may answer the request to shut down of this id.
	// Errors: NotFound, Conflict.
	Asked func(requestID string) error
	// Heard returns the last beat of those members that have a process and live.
	Heard func(ctx context.Context, members []team.Member) map[team.AgentID]roster.Heard
	// Exchange is how many messages in a row the next one to a member, or to all, makes; nil: they are not counted.
	Exchange func(ctx context.Context, to team.AgentID) (team.Exchange, error)
	// Verify makes sure that a task which the member holds is done, and stores its
	// deliverable; see package completion.
	Verify func(ctx context.Context, t team.Task) (digest string, err error)
	// Complete completes a task that was verified; default: the hand's.
	Complete func(ctx context.Context, t team.Task, d team.Done) (team.Task, error)
	Crew     Crew // the leader's; nil for a teammate
	Plans    *approval.Plans
	Gate     *approval.Gate // of a teammate; nil of the leader
	// Inherited returns what a task brings along that the member has just taken; see agent.Team.
	Inherited func(ctx context.Context, t team.Task) (team.Inherited, error)
	// Aliases are the models that a new member may be given, by their names.
	Aliases []string
	// LeaderCreates: in this team only the leader creates tasks, so others are not told how.
	LeaderCreates bool
}

type tools struct{ Options }

// New returns the team tools of one member. A teammate's set holds the leader's
// tools too, so that calling one is permission_denied rather than not_found;
// [Allowed] leaves them out.
func New(o Options) []tool.Tool {
	t := tools{o}
	return dialect.Translate(slices.Concat(t.taskTools(), t.talkTools(), t.planTools(), t.leadTools(), t.claudeTools()), t.forms())
}

// Allowed returns the names of those tools that m may use.
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

// resultWithin bounds the reading of what a tool has done.
const resultWithin = 5 * time.Second

// result is a task as a write has left it. Only what an open task waits for is not in
// that write's own answer. It is told also if the agent is meanwhile to stop with what
// it is at: that the change was made must not be lost.
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

// why says why the member that v is reserved for has not taken it yet.
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
	_, err = t.Board.Get(ctx, id) // the board's own words for what is not there
	return team.TaskView{}, err
}
