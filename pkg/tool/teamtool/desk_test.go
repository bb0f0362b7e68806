package teamtool_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/approval"
	"agentteam/pkg/board"
	"agentteam/pkg/board/index"
	"agentteam/pkg/broker"
	"agentteam/pkg/broker/brokertest"
	"agentteam/pkg/command"
	"agentteam/pkg/completion"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/roster"
	"agentteam/pkg/spawn"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/teamtool"
	"agentteam/pkg/tool/workspace"
)

// desk is a team on a real board with the tools of each member: the leader,
// coder-1, coder-2, tester-1, and gone-1, who has left.
type desk struct {
	dir    string // the workspace
	t      *testing.T
	broker *broker.Storage
	board  *board.Board
	record team.Team
	pulse  *roster.Pulse
	crew   crew
	sets   map[team.AgentID]*tool.Set
	hands  map[team.AgentID]*board.Hand
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	t.Parallel()
	bt := brokertest.Team(t, "t")
	d := &desk{t: t, broker: bt, board: board.New(bt.Bucket, board.Options{}), pulse: roster.NewPulse(),
		record: team.Team{ID: "t", Status: team.Active, LeaseSeconds: 30, Policies: team.Policies{Create: "all"},
			Roles: map[string]team.Role{"coder": {Name: "coder"}, "tester": {Name: "tester"}}},
		sets: map[team.AgentID]*tool.Set{}, hands: map[team.AgentID]*board.Hand{}}
	r := roster.New(bt)
	d.crew.d = d
	d.dir = t.TempDir()
	ws, err := workspace.Open(d.dir, command.Plain{}, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	box := mailbox.New(bt, mailbox.Options{Members: r})
	plans := approval.New(bt.Bucket, approval.Options{Tasks: d.board, Members: r, Post: box})
	for i, m := range []team.Member{
		{AgentID: team.Leader, Role: "leader"}, {AgentID: "coder-1", Role: "coder"}, {AgentID: "coder-2", Role: "coder"}, {AgentID: "tester-1", Role: "tester", Prompt: "Be brief.\nAnd kind."},
		{AgentID: "gone-1", Role: "coder", State: team.Stopped},
	} {
		if m.State == "" {
			m.State = team.Joined
		}
		m.Incarnation, m.Backend, m.JoinedAt = 1, team.Pool, time.Unix(int64(i), 0).UTC()
		m, err := r.Put(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		o := teamtool.Options{
			Self: m, Team: func(context.Context) (team.Team, error) { return d.record, nil }, Board: d.board,
			Plans: plans, Hand: board.NewHand(t.Context(), d.board, m.Holder()), Mailbox: box, Roster: r, Heard: func(context.Context, []team.Member) map[team.AgentID]roster.Heard { return d.pulse.Last() },
			List: func(ctx context.Context, q team.Query) (team.Page, error) { return index.List(ctx, bt, d.board, q) },
			Asked: func(id string) error {
				switch id {
				case "asked":
					return nil
				case "answered":
					return team.Errorf(team.Conflict, "answered")
				}
				return team.Errorf(team.NotFound, "no")
			},
			Verify: func(ctx context.Context, task team.Task) (string, error) {
				return completion.Verify(ctx, task, ws, bt.Files)
			},
		}
		if m.AgentID == team.Leader {
			o.Crew, o.Aliases = &d.crew, []string{"big", "small"}
		}
		tools := teamtool.New(o)
		set, err := tool.NewSet(nil, tools...)
		if err != nil {
			t.Fatal(err)
		}
		if set, err = set.Allow(teamtool.Allowed(m, tools)); err != nil {
			t.Fatal(err)
		}
		d.sets[m.AgentID], d.hands[m.AgentID] = set.Speaking(team.Native), o.Hand
	}
	return d
}

// call calls a tool as a model does.
func (d *desk) call(who team.AgentID, name, arguments string) tool.Result {
	d.t.Helper()
	return d.sets[who].Run(d.t.Context(), tool.Call{ID: "call-1", Name: name, Arguments: arguments})
}

// ok is a call that must succeed; its value is decoded into out, unless that is nil.
func (d *desk) ok(out any, who team.AgentID, name, arguments string) {
	d.t.Helper()
	res := d.call(who, name, arguments)
	if res.IsError {
		d.t.Fatalf("%s by %s with %s: %s", name, who, arguments, res.Content)
	}
	if out == nil {
		return
	}
	value, err := json.Marshal(res.Value)
	if err == nil {
		err = json.Unmarshal(value, out)
	}
	if err != nil {
		d.t.Fatalf("%s answered %s: %v", name, res.Content, err)
	}
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
