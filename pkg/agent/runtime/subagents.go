package runtime

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/agent"
	"agentteam/pkg/agent/engine"
	"agentteam/pkg/agent/subagent"
	"agentteam/pkg/model"
	"agentteam/pkg/shutdown"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/audit"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/runlog"
	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/job"
)

// begin starts a command of the member in the background.
func (m *member) begin(is team.Job, run func(ctx context.Context, out io.Writer) string) (team.Job, error) {
	return m.jobs.Begin(is, func(ctx context.Context, j *job.Job) string { return run(ctx, j) })
}

// subagentTool returns the tool with which the member starts subagents.
func (m *member) subagentTool() tool.Tool {
	o := subagent.Options{Owner: m.Member.AgentID, Jobs: m.jobs, Aliases: m.Aliases, Open: m.openSubagent, Roles: m.record}
	if m.Team != nil {
		o.Keep = blob.In(m.Team.Files).Put
	}
	return subagent.Tool(o)
}

// record returns the team's record, as last received.
func (m *member) record() team.Team {
	if t := m.newest.Load(); t != nil {
		return *t
	}
	return m.Record
}

// openSubagent prepares the conversation of a subagent. Errors: those of [journal.Open].
func (m *member) openSubagent(ctx context.Context, s subagent.Spec) (engine.Options, func(uint64, model.Usage, error), error) {
	record := m.record()
	d, lend := record.Dialect(m.Role), m.lending(s.Role)
	alias := cmp.Or(s.Alias, s.Role.Model, m.Member.Model)
	tools, changes, err := m.subagentTools(s.Role, m.speech(d, alias), lend)
	if err != nil {
		return engine.Options{}, nil, err
	}
	at, err := m.here(ctx, s.Role, lend)
	if err != nil {
		return engine.Options{}, nil, err
	}
	log, _, err := journal.Open(ctx, m.Team, s.Name, m.Member.Incarnation, journal.Options{Keep: m.KeepTranscripts, Place: &at,
		Outlives: func(ctx context.Context, before uint64) error { return audit.Keep(ctx, m.Team, s.Name, before) }})
	if err != nil {
		return engine.Options{}, nil, err
	}
	writes, stop := shutdown.Outlive(ctx, shutdown.Journal)
	run := ulid.Make().String()
	events := runlog.New(m.Team, m.Logger)
	emit := func(b team.EventBody) {
		b.RunID, b.ThreadID = run, string(s.Name)
		events.Emit(writes, team.Event{AgentID: s.Name, RoleName: s.Role.Name, RunID: run, Event: b})
	}
	var began sync.WaitGroup // its work does not wait for that
	began.Go(func() { emit(team.EventBody{Type: team.RunStarted}) })
	m.Logger.InfoContext(ctx, "subagent started", "agent", s.Name, "role", s.Role.Name)
	end := func(turns uint64, used model.Usage, err error) {
		defer stop()
		began.Wait()
		if err != nil {
			m.Logger.WarnContext(ctx, "subagent failed", "agent", s.Name, "err", err)
			emit(team.EventBody{Type: team.RunError, Message: err.Error(), Code: string(team.CodeOf(err))})
			return
		}
		emit(team.EventBody{Type: team.RunFinished, Result: engine.JSON(map[string]any{"turns": turns,
			"usage": map[string]int{"prompt_tokens": used.PromptTokens, "completion_tokens": used.CompletionTokens}})})
	}
	speak := func(id string) engine.TextStream {
		return engine.StreamTo(m.live.Publish, team.Delta{TeamID: m.Team.ID, AgentID: s.Name, Incarnation: m.Member.Incarnation, RunID: run, MessageID: id})
	}
	memory, records := agent.NewPart(d), subagentLog{log, m, run, writes}
	return engine.Options{Name: string(s.Name), System: agent.Subagent(record, m.Member, s.Name, s.Role, at, changes), Alias: alias, Effort: string(s.Role.Effort), Model: m.purse.of(m.Model, true), Tools: tools,
		Journal: records, Conversation: &memory.Conversation.Conversation, Memory: memory, Owner: &lender{member: m, memory: memory, log: records, folders: m.folders(lend)},
		Stream: speak, Store: blob.In(m.Team.Files), Logger: m.Logger}, end, nil
}

// delegation holds the tools of a member's subagents, made at the first: that takes a while.
type delegation struct {
	once  sync.Once
	files []tool.Tool
	set   *tool.Set // behind the member's gates, except that of the permissions
	err   error
}

// lending returns a function that narrows the team's record for a subagent with that role.
func (m *member) lending(r team.Role) func(team.Team) team.Team {
	return func(t team.Team) team.Team { return t.Lending(m.Member.Role, r.Policy) }
}

// subagentTools returns the tools of a subagent with that role: those of its owner's workspace
// tools that its type has, behind its owner's gates, as [team.Team.Lending] narrows them. changes
// reports whether one of them writes.
func (m *member) subagentTools(r team.Role, d team.Dialect, lend func(team.Team) team.Team) (tools engine.Tools, changes bool, err error) {
	l := &m.delegated
	l.once.Do(func() {
		l.files = m.current.Bound()
		l.set, l.err = tool.NewSet(m.Metrics, append(slices.Clone(l.files), m.skillTool(), subagent.None())...)
		if l.err != nil {
			return
		}
		if m.gate != nil {
			l.set = l.set.Behind(m.gate.Pass)
		}
		if m.Member.AgentID == team.Leader {
			l.set = l.set.Behind(m.delegate(l.files, "end, and report what is left to do"))
		}
	})
	if l.err != nil {
		return nil, false, l.err
	}
	names := []string{"subagent"}
	for _, t := range l.files {
		if !slices.Contains(m.names, t.Name) || !has(r, t) || m.Role.Takes(t.Answers) || r.Takes(t.Answers) {
			continue
		}
		names, changes = append(names, t.Name), changes || t.Traits.Writes
	}
	if slices.Contains(names, "read_file") {
		names = append(names, "skill")
	}
	set, err := l.set.Behind(m.passOnceDecided(func(ctx context.Context, r tool.Request) (approval.Judgement, error) { return m.judgeAs(ctx, r, lend) })).Speaking(d).Allow(names)
	return boundTools{set, lend, m.current.Here()}, changes, err
}

// delegationKey is the context key of the function that narrows the team's record for a subagent's call.
type delegationKey struct{}

// delegationOf returns the function that narrows the team's record for a call; for a call of the member,
// [whole].
func delegationOf(ctx context.Context) func(team.Team) team.Team {
	if lend, ok := ctx.Value(delegationKey{}).(func(team.Team) team.Team); ok {
		return lend
	}
	return whole
}

// boundTools run in the folder where their subagent was begun.
type boundTools struct {
	*tool.Set
	delegate func(team.Team) team.Team
	here     func(context.Context) context.Context
}

// Run implements [engine.Tools].
func (b boundTools) Run(ctx context.Context, c tool.Call) tool.Result {
	return b.Set.Run(context.WithValue(b.here(ctx), delegationKey{}, b.delegate), c)
}

// has reports whether a role gives a subagent a tool. Only its owner writes the deliverable, and in
// plan mode no member approves its plan.
func has(r team.Role, t tool.Tool) bool {
	if r.PlanMode && t.Traits.Writes {
		return false
	}
	return len(r.Tools) == 0 || slices.ContainsFunc(r.Tools, func(name string) bool {
		return name == "*" || !strings.HasSuffix(name, team.OnlyDeliverable) && t.Answers(name)
	})
}

// passOnceDecided returns the permission gate of a subagent. It blocks until a person, asked in its
// owner's name, has decided.
func (m *member) passOnceDecided(judge approval.Judge) tool.Gate {
	return func(ctx context.Context, r tool.Request) error {
		for {
			err := m.asks.PassBy(ctx, r, judge)
			w := tool.EffectsOf(err).Await
			if w == nil {
				return err
			}
			job.Asks(ctx, w.Plan)
			err = m.await(ctx, w.Plan)
			job.Asks(ctx, "")
			if err != nil {
				return team.Errorf(team.Unavailable, "%s was not run: %w", r.Called, err)
			}
		}
	}
}

// await returns nil once a plan is decided on, or ctx's cause. It reports progress: a wait for a
// person is not a stall.
func (m *member) await(ctx context.Context, plan string) error {
	for {
		tool.Progress(ctx)
		part, stop := context.WithTimeout(ctx, progressEvery)
		_, err := m.decided(part, plan)
		stop()
		if err == nil || ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// progressEvery is how often progress is reported while a person is waited for.
const progressEvery = 5 * time.Second

// subagentLog is the journal of a subagent; it adds its run and its owner's task to each record.
type subagentLog struct {
	*journal.Journal
	m      *member
	run    string
	writes context.Context // context for storing records; outlives that of the work
}

// Append implements [engine.Journal].
func (l subagentLog) Append(ctx context.Context, r journal.Record) (journal.Record, error) {
	return l.Journal.Append(ctx, l.stamped(r))
}

// Enqueue implements [engine.Journal].
func (l subagentLog) Enqueue(_ context.Context, r journal.Record) journal.Record {
	return l.Journal.Enqueue(l.writes, l.stamped(r))
}

func (l subagentLog) stamped(r journal.Record) journal.Record {
	t, _ := l.m.hand.Task()
	r.RunID, r.TaskID = l.run, t.ID
	return r
}

// lender is the owner of a subagent's engine: the subagent takes no step that the member might not.
// It also shows the subagent the repository's instructions for the folders in which it works.
type lender struct {
	*member
	memory  *agent.Part
	log     engine.Journal
	folders agent.Folders
	touched []string // files since the last request to the model
}

// Leave implements [engine.Owner]: as for the member's own steps, its task is confirmed before a
// step that counts.
func (l *lender) Leave(ctx context.Context, s engine.Step) error {
	if err := l.heart.Certain(ctx); err != nil {
		return err
	}
	if t, holds := l.hand.Task(); holds && s != engine.Read && time.Since(l.hand.Confirmed()) >= l.Record.Lease()/6 {
		if _, err := l.hand.Confirm(ctx, t.ID); err != nil && !errors.Is(err, team.ErrUnreadable) {
			return err
		}
	}
	if s != engine.Ask {
		return nil
	}
	touched := l.touched
	l.touched = nil
	return l.memory.NoteFolders(ctx, touched, l.folders, l.log)
}

// Within implements [engine.Owner].
func (l *lender) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return l.heart.Within(ctx)
}

// Returned implements [engine.Owner].
func (l *lender) Returned(e tool.Effects, _ *journal.ToolResult) {
	if e.Touched != "" {
		l.touched = append(l.touched, e.Touched)
	}
}
