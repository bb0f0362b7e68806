// Package subagent implements the tool subagent: it does parts of a member's work in separate
// conversations. Each subagent has a role's instructions, a separate journal, and at most its
// owner's rights; the owner gets its last text.
//
// Its owner's membership decides its tools and permits its steps ([Options].Open). Package tool/job
// keeps the list of running subagents, bounds their number, and keeps the results of those in the
// background.
package subagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
	"agentteam/pkg/team/explain"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/dialect"
	"agentteam/pkg/tool/job"
)

// Options are the parts of a member's subagents. All are required, but Aliases.
type Options struct {
	Owner   team.AgentID
	Jobs    *job.Jobs
	Roles   func() team.Team // the team's roles; "" as type is [team.Team.GeneralRole]
	Aliases []string         // models that a call may name; nil: any
	// Open prepares the conversation of a subagent: all options of its engine but Watcher. end is
	// called once with the error with which it ended, or nil.
	Open func(ctx context.Context, s Spec) (o engine.Options, end func(turns uint64, used model.Usage, err error), err error)
	Keep func(ctx context.Context, text string) (ref string, err error) // stores a text that is too long to be shown
}

// Spec describes a requested subagent.
type Spec struct {
	Name  team.AgentID // of its conversation, see [team.Subagent]
	Role  team.Role
	Alias string // of its model; "": the role's, or its owner's
	Task  team.TaskID
}

type args struct {
	Description string `json:"description,omitempty" jsonschema:"3 to 5 words"`
	Prompt      string `json:"prompt" jsonschema:"all it needs to know, and what it is to report"`
	Type        string `json:"type,omitempty" jsonschema:"its role"`
	Model       string `json:"model,omitempty"`
	Background  *bool  `json:"run_in_background,omitempty" jsonschema:"get its id now, and be told when it has ended"`
}

const (
	description = "Have a subagent do a part of your work in a context apart, in your workspace, with at most your rights; you get its last text. Several calls in one turn run at the same time. For work that others can share, use tasks."
	maxAbout    = 80     // characters
	maxShown    = 30_000 // bytes of its last text that the owner is shown
)

type subagents struct{ Options }

// Tool returns the tool subagent of a member.
func Tool(o Options) tool.Tool {
	s := subagents{o}
	var opts []tool.Option
	if o.Roles != nil {
		opts = append(opts, tool.Enum("type", s.types()...))
	}
	if len(o.Aliases) < 2 {
		opts = append(opts, tool.Hidden("model"))
	} else {
		opts = append(opts, tool.Enum("model", o.Aliases...))
	}
	// Each call of the subagent passes the gates.
	return endpointSettings(tool.New("subagent", description, s.call, append(opts, tool.Traits{Ungated: true, Yields: true, Parallel: true})...))
}

// None returns the tool subagent for a subagent, which refuses each call with the reason.
func None() tool.Tool {
	return endpointSettings(tool.New("subagent", description, func(context.Context, args) (tool.Output, error) {
		return tool.Output{}, team.Errorf(team.PermissionDenied, "a subagent starts no subagents").WithHint("do it yourself, or report in your last text what is left to do")
	}, tool.Traits{ReadOnly: true}, tool.Unlisted()))
}

// endpointSettings adds the forms of Claude Code, whose older name is Task: Task also starts a teammate, but
// then the call names the team.
func endpointSettings(t tool.Tool) tool.Tool {
	form := dialect.Form{Name: "Agent", Dialect: team.Claude, Names: map[string][]string{"type": {"subagent_type"}}, Calls: plain,
		Own: extras, Hidden: []string{"name", "team_name", "mode", "isolation", "resume", "max_turns"}}
	before := form
	before.Name, before.When = "Task", team.StartsSubagent
	return dialect.Translate([]tool.Tool{t}, map[string][]dialect.Form{t.Name: {form, before}})[0]
}

// extras are arguments that only Claude Code's tool has: a teammate's name, and settings that the
// role and the owner decide here.
var extras = []dialect.Argument{{Name: "name", Type: "string"}, {Name: "team_name", Type: "string"}, {Name: "mode", Type: "string"},
	{Name: "isolation", Type: "string"}, {Name: "resume", Type: "string"}, {Name: "max_turns", Type: "integer"}}

// plain returns the call of subagent for a call of Agent. Error: InvalidArgument for a call that
// would do something else.
func plain(_ context.Context, given map[string]any) ([]map[string]any, error) {
	if given["team_name"] != nil && given["team_name"] != "" {
		return nil, team.Errorf(team.InvalidArgument, "Agent starts no teammates").WithHint("leave team_name out; teammates are added by the leader")
	}
	if given["resume"] != nil && given["resume"] != "" {
		return nil, team.Errorf(team.InvalidArgument, "resume: a subagent that has ended is not continued").WithHint("start another one, and put into its prompt what it needs to know")
	}
	for _, a := range extras {
		delete(given, a.Name)
	}
	return []map[string]any{given}, nil
}

// types returns the roles that a subagent may have.
func (s subagents) types() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Roles().Roles)), func(name string) bool { return name == team.LeaderRole })
}

// role returns the role that a type names. Error: NotFound.
func (s subagents) role(named string) (team.Role, error) {
	t := s.Roles()
	name := cmp.Or(team.CanonicalRole(strings.TrimSpace(named)), t.GeneralRole())
	r, ok := t.Roles[name]
	if !ok || name == team.LeaderRole {
		return r, team.Errorf(team.NotFound, "there is no type %q", team.Clean(named, 80)).WithHint("types: %s", strings.Join(s.types(), ", "))
	}
	r.Name = name
	return r, nil
}

// call implements the tool subagent. Errors: InvalidArgument; NotFound for an unknown type; Busy if
// too many are in the background; Unavailable if it did not end normally, with its usage.
func (s subagents) call(ctx context.Context, in args) (tool.Output, error) {
	if strings.TrimSpace(in.Prompt) == "" {
		return tool.Output{}, team.Errorf(team.InvalidArgument, "prompt: empty").WithHint("state what it is to do, and what to report")
	}
	r, err := s.role(in.Type)
	if err != nil {
		return tool.Output{}, err
	}
	alias := in.Model
	if alias == team.Inherit || s.Aliases != nil && !slices.Contains(s.Aliases, alias) { // as with teammates: models name aliases that do not exist
		alias = ""
	}
	is := team.Job{Kind: team.JobSubagent, Type: r.Name, About: team.OneLine(team.Clean(cmp.Or(in.Description, in.Prompt), maxAbout))}
	background := r.Background
	if in.Background != nil {
		background = *in.Background
	}
	if background {
		begun, err := s.Jobs.Begin(is, func(ctx context.Context, j *job.Job) string {
			text, err := s.work(ctx, j, Spec{Role: r, Alias: alias}, in.Prompt)
			_, _ = j.Write([]byte(text)) // never fails
			return how(err)
		})
		return tool.Output{Value: begun, Brief: begun.ID + " works in the background; a notice comes when it has ended", Effects: tool.Effects{Jobs: []team.Job{begun}}}, err
	}
	var text string
	var failed error
	ended, err := s.Jobs.Run(ctx, is, func(ctx context.Context, j *job.Job) string {
		text, failed = s.work(ctx, j, Spec{Role: r, Alias: alias}, in.Prompt)
		return how(failed)
	})
	effects := tool.Effects{Jobs: []team.Job{ended}}
	switch {
	case err != nil:
		return tool.Output{}, err
	case failed != nil:
		return tool.Output{}, tool.With(team.Errorf(cmp.Or(team.CodeOf(failed), team.Unavailable), "subagent %s did not come to an end after %s: %w", ended.ID, explain.Counted(int(ended.Turns), "turn"), failed).
			WithModelHint("what it has done until then stays"), effects)
	}
	return tool.Output{Value: ended, Brief: fmt.Sprintf("%s\n[%s: %s, %s]", blob.Shown(ctx, text, text, maxShown, s.Keep), ended.ID, explain.Counted(int(ended.Turns), "turn"), explain.Counted(int(ended.Tokens), "token")), Effects: effects}, nil
}

// how describes the end of a subagent, in a few words.
func how(err error) string {
	if err == nil {
		return "done"
	}
	return team.OneLine(team.Clean(err.Error(), 200))
}

// work has a subagent follow a prompt and returns its last text.
func (s subagents) work(ctx context.Context, j *job.Job, spec Spec, prompt string) (text string, err error) {
	is := j.Is()
	spec.Name, spec.Task = team.Subagent(s.Owner, is.ID), is.Task
	o, end, err := s.Open(ctx, spec)
	if err != nil {
		return "", err
	}
	w := &watcher{ctx: ctx, job: j, conv: o.Conversation}
	o.Watcher = w
	o.Owner = &limited{Owner: o.Owner, most: spec.Role.MaxTurns}
	text, err = engine.New(o).Run(ctx, prompt)
	w.Changed("")
	if flushed := o.Journal.Flush(); err == nil {
		err = flushed
	}
	if ctx.Err() != nil {
		err = team.Errorf(team.Unavailable, "it was ended: %w", context.Cause(ctx))
	}
	if refusal, ok := errors.AsType[*model.Refusal](err); ok {
		err = team.Errorf(team.Unavailable, "its model gives no answer: %s", engine.Cause(refusal))
	}
	end(w.conv.Turns, w.conv.Usage, err)
	if err == nil && strings.TrimSpace(text) == "" {
		text = "(it said nothing)"
	}
	return text, err
}

// watcher reports a subagent's progress to its job, and to the call that waits for it.
type watcher struct {
	ctx  context.Context
	job  *job.Job
	conv *engine.Conversation // used by the engine's goroutine
}

// Changed implements [engine.Watcher].
func (w *watcher) Changed(string) {
	w.job.Moved(w.conv.Turns, w.conv.Usage.PromptTokens+w.conv.Usage.CompletionTokens)
}

// Progress implements [engine.Watcher]. It counts as progress of the waiting owner, too.
func (w *watcher) Progress() {
	w.job.Progress()
	tool.Progress(w.ctx)
}

// Retry implements [engine.Watcher]: it does nothing.
func (w *watcher) Retry(model.Retry) {}

// limited is an owner that bounds the turns of its subagent; 0: any number.
type limited struct {
	engine.Owner
	most, turns int
}

// Leave implements [engine.Owner].
func (l *limited) Leave(ctx context.Context, s engine.Step) error {
	if s == engine.Ask {
		if l.turns++; l.most > 0 && l.turns > l.most {
			return team.Errorf(team.BudgetExceeded, "it reached the limit of %d turns of its role", l.most)
		}
	}
	return l.Owner.Leave(ctx, s)
}
