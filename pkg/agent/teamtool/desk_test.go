package teamtool_test

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"agentteam/pkg/agent/completion"
	"agentteam/pkg/agent/spawn"
	"agentteam/pkg/agent/teamtool"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/board/index"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/job"
	"agentteam/pkg/tool/workspace"
)

// desk is a team on a real board with the tools of each member: the leader,
// coder-1, coder-2, tester-1, and gone-1, who has left.
type desk struct {
	dir      string // the workspace
	t        *testing.T
	broker   *broker.Storage
	board    *board.Board
	record   team.Team
	pulse    *roster.Pulse
	beats    uint64
	crew     crew
	url      string      // of the server
	more     []tool.Tool // of those that join from now on
	sets     map[team.AgentID]*tool.Set
	hands    map[team.AgentID]*board.ClaimSlot
	jobs     *job.Jobs                                                  // of the leader's subagents
	begun    []string                                                   // their roles
	job      string                                                     // the newest
	plan     string                                                     // the newest request for approval
	plans    []string                                                   // all, with what is read for them
	exchange func(context.Context, team.AgentID) (team.Exchange, error) // nil: each message is the first
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	t.Parallel()
	return deskOf(t)
}

// deskOf is newDesk of a test that has several.
func deskOf(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, url: brokertest.Server(t), pulse: roster.NewPulse(), dir: t.TempDir(),
		record: team.Team{ID: "t", Status: team.Active, LeaseSeconds: 30, Policies: team.Policies{Create: "all"},
			Roles: map[string]team.Role{"coder": {Name: "coder"}, "tester": {Name: "tester"}}},
		sets: map[team.AgentID]*tool.Set{}, hands: map[team.AgentID]*board.ClaimSlot{}}
	d.crew.d = d
	reg, err := registry.Open(t.Context(), brokertest.Connect(t, d.url))
	if err == nil {
		d.broker, _, err = reg.Make(t.Context(), team.Team{ID: "t", Roles: d.record.Roles})
	}
	if err != nil {
		t.Fatal(err)
	}
	d.board = board.New(d.broker.Bucket, board.Options{})
	for _, m := range []team.Member{
		{AgentID: team.Leader, Role: "leader"}, {AgentID: "coder-1", Role: "coder"}, {AgentID: "coder-2", Role: "coder"}, {AgentID: "tester-1", Role: "tester", Prompt: "Be brief.\nAnd kind."},
		{AgentID: "gone-1", Role: "coder", State: team.Stopped},
	} {
		d.join(m)
	}
	return d
}

// join makes m a member with tools.
func (d *desk) join(m team.Member) {
	d.t.Helper()
	if m.State == "" {
		m.State = team.Joined
	}
	m.Incarnation, m.Backend, m.JoinedAt = 1, team.Pool, time.Unix(int64(len(d.sets)), 0).UTC()
	m, err := roster.New(d.broker).Put(d.t.Context(), m)
	if err != nil {
		d.t.Fatal(err)
	}
	d.equip(m)
}

// equip gives a member its tools.
func (d *desk) equip(m team.Member) {
	d.t.Helper()
	r := roster.New(d.broker)
	box := mailbox.New(d.broker, mailbox.Options{Members: r})
	ws, err := workspace.Open(d.dir, command.Plain{}, workspace.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { ws.Close() })
	o := teamtool.Options{
		Self: m, Team: func(context.Context) (team.Team, error) { return d.record, nil }, Board: d.board,
		Plans: approval.New(d.broker.Bucket, approval.Options{Tasks: d.board, Members: r, Post: box}), Slot: board.NewClaimSlot(d.t.Context(), d.board, m.Holder()),
		Mailbox: box, Roster: r, Heard: func(context.Context, []team.Member) map[team.AgentID]roster.Heard { return d.pulse.Last() },
		List: func(ctx context.Context, q team.Query) (team.Page, error) {
			return index.List(ctx, d.broker, d.board, q)
		},
		Asked: func(id string) error {
			switch id {
			case "asked":
				return nil
			case "answered":
				return team.Errorf(team.Conflict, "answered")
			}
			return team.Errorf(team.NotFound, "no")
		},
		Exchange: func(ctx context.Context, to team.AgentID) (team.Exchange, error) {
			if d.exchange == nil {
				return team.Exchange{N: 1}, nil
			}
			return d.exchange(ctx, to)
		},
		Verify: func(ctx context.Context, task team.Task, artifacts []string) (digest string, kept []team.Artifact, err error) {
			if digest, err = completion.Verify(ctx, task, ws, d.broker.Files); err == nil {
				kept, err = completion.Keep(ctx, task, ws, d.broker.Files, artifacts)
			}
			return digest, kept, err
		},
	}
	if m.AgentID == team.Leader {
		o.Admin, o.Aliases = &d.crew, []string{"big", "small"}
	}
	tools := teamtool.New(o)
	set, err := tool.NewSet(nil, append(d.more, tools...)...)
	if err == nil {
		set, err = set.Allow(append(names(d.more), teamtool.Allowed(m, tools)...))
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.sets[m.AgentID], d.hands[m.AgentID] = set.Speaking(team.Native), o.Slot
}

func names(tools []tool.Tool) (names []string) {
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return names
}

// call calls a tool as a model does that speaks the dialect of its name. No answer names a tool that this model does not have.
func (d *desk) call(who team.AgentID, name, arguments string) tool.Result {
	d.t.Helper()
	dialect := team.Native
	if unicode.IsUpper(rune(name[0])) {
		dialect = team.Claude
	}
	set := d.sets[who].Speaking(dialect)
	res := set.Run(d.t.Context(), tool.Call{ID: "call-1", Name: name, Arguments: arguments})
	var has []string
	for _, s := range set.Specs() {
		has = append(has, s.Name)
	}
	for _, word := range anyTool.FindAllString(res.Content, -1) {
		if set.Has(word) && !slices.Contains(has, word) && !strings.Contains(arguments, word) && word != name {
			d.t.Errorf("%s by %s with %s names %s, which its model does not have: %s", name, who, arguments, word, res.Content)
		}
	}
	if key := ourKey.FindString(res.Content); key != "" && dialect == team.Claude {
		d.t.Errorf("%s by %s with %s has %s: %s", name, who, arguments, key, res.Content)
	}
	return res
}

// ourKey finds a field of a task by our name, which Claude's tools call otherwise.
var ourKey = regexp.MustCompile(`"(?:title|assignee|dependencies|waiting_for)":`)

// anyTool finds the names of tools in a text, those that are no English.
var anyTool = regexp.MustCompile(`\b(?:[a-z]+_(?:mail|user|tasks?|teammates?|message|plan|team)|(?:Task|Team)[A-Z][a-z]+|SendMessage|ExitPlanMode)\b`)

// ok is a call that must succeed; its value is decoded into out, unless that is nil.
func (d *desk) ok(out any, who team.AgentID, name, arguments string) tool.Result {
	d.t.Helper()
	res := d.call(who, name, arguments)
	if res.IsError {
		d.t.Fatalf("%s by %s with %s: %s", name, who, arguments, res.Content)
	}
	if out == nil {
		return res
	}
	value, err := json.Marshal(res.Value)
	if err == nil {
		err = json.Unmarshal(value, out)
	}
	if err != nil {
		d.t.Fatalf("%s answered %s: %v", name, res.Content, err)
	}
	return res
}

// refused is a call that must fail with this code, in the shape that models see.
func (d *desk) refused(code team.Code, who team.AgentID, name, arguments string) {
	d.t.Helper()
	res := d.call(who, name, arguments)
	var shape struct{ Error, Code, Status string }
	if err := json.Unmarshal([]byte(res.Content), &shape); err != nil {
		d.t.Errorf("%s by %s with %s answered %s: %v", name, who, arguments, res.Content, err)
	}
	if !res.IsError || res.Code != code || shape.Code != string(code) || shape.Status != "error" || shape.Error == "" {
		d.t.Errorf("%s by %s with %s: %s, want %s", name, who, arguments, res.Content, code)
	}
}

// task returns a task as the board has it.
func (d *desk) task(id team.TaskID) team.Task {
	d.t.Helper()
	task, err := d.board.Get(d.t.Context(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	return task
}

// crew is the leader's process: it records what it is asked, and assigns for real.
type crew struct {
	d       *desk
	err     error // of the next call
	spawned []team.Member
	answer  spawn.Answer // to a request to leave
	leaves  bool         // who is asked to leave has left
	joins   bool         // who is spawned is there
	summary string
	givenUp []team.TaskID

	unspawnable team.AgentID // no process takes it

	mu      sync.Mutex // of what several calls may ask for at the same time
	removed []team.AgentID
}

func (c *crew) Spawn(_ context.Context, m team.Member) (team.Member, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.AgentID == "" {
		m.AgentID = team.AgentID(m.Role + "-9")
	}
	c.spawned = append(c.spawned, m)
	if m.AgentID == c.unspawnable {
		return m, team.Errorf(team.Unavailable, "no standby is free")
	}
	if c.joins {
		c.d.join(m)
	}
	if m.Incarnation = 1; c.joins && m.PlanMode {
		c.d.gated(m)
	}
	return m, c.err
}

func (c *crew) Remove(ctx context.Context, a team.AgentID, _ string) (spawn.Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removed = append(c.removed, a)
	if c.leaves {
		if err := roster.New(c.d.broker).Leave(ctx, a, 1, ""); err != nil {
			return spawn.Answer{}, err
		}
	}
	return c.answer, c.err
}

func (c *crew) Assign(ctx context.Context, a team.AgentID, id team.TaskID) (team.Task, error) {
	if c.err != nil {
		return team.Task{}, c.err
	}
	m, err := roster.New(c.d.broker).Get(ctx, a)
	if err != nil {
		return team.Task{}, err
	}
	return c.d.board.Give(ctx, m, c.d.record.Policies, team.Assignment{Task: id, By: team.Leader}, func(ctx context.Context, order team.Assignment) (team.Task, error) {
		task, _, err := c.d.hands[a].Assign(ctx, order)
		return task, err
	})
}

func (c *crew) Describe(_ context.Context, name, text string) error {
	c.d.record.Call(name)
	c.d.record.Description = text
	return c.err
}

func (c *crew) Finish(_ context.Context, summary string, givenUp []team.TaskID) error {
	c.summary, c.givenUp = summary, givenUp
	return c.err
}
