package teamtool_test

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/agent/engine"
	"agentteam/pkg/agent/subagent"
	"agentteam/pkg/cluster/archive"
	"agentteam/pkg/model"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/job"
)

// line is one call of a conversation: by the words of the document that shows it, and by ours.
type line struct {
	who              team.AgentID
	theirs, ours     string // the tool and its arguments
	refused          team.Code
	says             string // in the answer to theirs
	notice           string // in what comes by itself: a subagent has ended
	running, resting team.AgentID
}

// The conversations that the descriptions of agent teams show come to the same board, the same mail, the same members and the
// same end as our own calls.
func TestConversations(t *testing.T) {
	const l = team.Leader
	for name, lines := range map[string][]line{
		"teammates and their mail": {
			{who: l, theirs: `TeamCreate {"name":"rest-to-graphql"}`},
			{who: l, theirs: `TaskCreate {"subject":"Analyze REST endpoints"}`, ours: `create_task {"title":"Analyze REST endpoints"}`},
			{who: l, theirs: `TaskCreate {"subject":"Design GraphQL schema","blockedBy":["#1"]}`, ours: `create_task {"title":"Design GraphQL schema","dependencies":["T-001"]}`},
			{who: l, theirs: `TaskCreate {"subject":"Implement resolvers","blockedBy":["#2"]}`, ours: `create_task {"title":"Implement resolvers","dependencies":["T-002"]}`},
			{who: l, theirs: `TaskCreate {"subject":"Update frontend","blockedBy":["#3"]}`, ours: `create_task {"title":"Update frontend","dependencies":["T-003"]}`},
			{who: l, theirs: `Task {"name":"analyst","team_name":"rest-to-graphql","prompt":"Look."}`, ours: `spawn_teammate {"role":"coder","name":"analyst","prompt":"Look."}`},
			{who: l, theirs: `Task {"name":"backend","team_name":"rest-to-graphql","prompt":"Build."}`, ours: `spawn_teammate {"role":"coder","name":"backend","prompt":"Build."}`},
			{who: l, theirs: `Task {"name":"frontend","team_name":"rest-to-graphql","prompt":"Show."}`, ours: `spawn_teammate {"role":"coder","name":"frontend","prompt":"Show."}`},
			{who: l, theirs: `Task {"prompt":"Both at once.","mode":"parallel"}`, refused: team.InvalidArgument, says: "TeamFanout"},
			{who: "analyst", theirs: `TaskUpdate {"taskId":"1","owner":"analyst","status":"in_progress"}`, ours: `claim_task {"task_id":"T-001"}`},
			{who: "backend", theirs: `TaskUpdate {"taskId":"2","owner":"backend"}`, ours: `claim_task {"task_id":"T-002"}`, refused: team.Blocked, says: "T-001"},
			{who: "analyst", theirs: `TaskUpdate {"taskId":"1","status":"completed","result_summary":"12 endpoints"}`, ours: `update_task {"task_id":"T-001","status":"completed","result_summary":"12 endpoints"}`},
			{who: "analyst", theirs: `SendMessage {"recipient":"backend","content":"Database schema is ready"}`, ours: `send_message {"to":"backend","content":"Database schema is ready"}`},
			{who: l, theirs: `SendMessage {"recipient":"anyone","content":"Schema is final","type":"broadcast","team_name":"rest-to-graphql"}`, ours: `broadcast {"content":"Schema is final"}`},
			{who: l, theirs: `SendMessage {"recipient":"","content":"Really","type":"broadcast"}`, ours: `send_message {"to":"backend","type":"broadcast","content":"Really"}`},
			{who: "backend", theirs: `TaskUpdate {"taskId":"2","owner":"backend"}`, ours: `update_task {"task_id":"T-002","status":"in_progress"}`},
			{who: l, theirs: `TeamDelete {"name":"rest-to-graphql"}`, refused: team.InvalidState, says: "3 tasks open, such as T-002"},
			{who: "backend", theirs: `TaskUpdate {"taskId":"2","status":"completed","result_summary":"done"}`, ours: `update_task {"task_id":"T-002","status":"completed","result_summary":"done"}`},
			{who: "backend", theirs: `TaskUpdate {"taskId":"3","owner":"backend"}`, ours: `claim_task {"task_id":"T-003"}`},
			{who: "frontend", theirs: `TaskUpdate {"taskId":"4","owner":"frontend","status":"in_progress"}`, ours: `claim_task {"task_id":"T-004"}`, refused: team.Blocked, says: "T-003"},
			{who: "backend", theirs: `TaskUpdate {"taskId":"3","status":"completed"}`, ours: `update_task {"task_id":"T-003","status":"completed","result_summary":"done; no summary was given"}`},
			{who: "frontend", theirs: `TaskUpdate {"taskId":"4","owner":"frontend","status":"in_progress"}`, ours: `claim_task {"task_id":"T-004"}`},
			{who: "frontend", theirs: `TaskUpdate {"taskId":"4","status":"completed","result_summary":"shown"}`, ours: `update_task {"task_id":"T-004","status":"completed","result_summary":"shown"}`},
			{who: l, theirs: `SendMessage {"type":"shutdown_request","recipient":"analyst","content":"All is done."}`, ours: `send_message {"type":"shutdown_request","to":"analyst","content":"All is done."}`},
			{who: l, theirs: `SendMessage {"type":"shutdown_request","recipient":"backend","content":"All is done."}`, ours: `send_message {"type":"shutdown_request","to":"backend","content":"All is done."}`},
			{who: l, theirs: `SendMessage {"type":"shutdown_request","recipient":"frontend","content":"All is done."}`, ours: `send_message {"type":"shutdown_request","to":"frontend","content":"All is done."}`},
			{who: l, theirs: `TeamDelete {"name":"rest-to-graphql"}`, refused: team.Conflict, says: "backend (running)", running: "backend"},
			{who: "analyst", theirs: `SendMessage {"type":"shutdown_response","request_id":"asked","approve":true}`, ours: `send_message {"to":"leader","content":"","type":"shutdown_response","request_id":"asked","approve":true}`},
			{who: "backend", theirs: `SendMessage {"type":"shutdown_response","request_id":"asked","approve":true}`, ours: `send_message {"to":"leader","content":"","type":"shutdown_response","request_id":"asked","approve":true}`},
			{who: "frontend", theirs: `SendMessage {"type":"shutdown_response","request_id":"asked","approve":false,"content":"I still show."}`, ours: `send_message {"to":"leader","content":"I still show.","type":"shutdown_response","request_id":"asked","approve":false}`},
			{who: l, theirs: `TeamDelete {"name":"rest-to-graphql"}`, ours: `finish_team {"summary":"all four"}`, says: "teamctl teams rm", resting: "backend"},
		},
		"types, models and owners": {
			{who: l, theirs: `TeamCreate {"team_name":"shop","description":"Moves the shop"}`},
			{who: l, theirs: `Task {"subagent_type":"general-purpose","name":"worker-1","team_name":"shop","prompt":"Work.","model":"sonnet"}`, ours: `spawn_teammate {"role":"coder","name":"worker-1","prompt":"Work."}`},
			{who: l, theirs: `Task {"subagent_type":"Explore","name":"eye","team_name":"shop","prompt":"Look."}`, ours: `spawn_teammate {"role":"explorer","name":"eye","prompt":"Look."}`},
			{who: l, theirs: `Task {"subagent_type":"Plan","name":"head","team_name":"shop","prompt":"Plan."}`, ours: `spawn_teammate {"role":"planner","name":"head","prompt":"Plan.","plan_mode":true}`},
			{who: l, theirs: `Task {"subagent_type":"Bash","name":"hand","team_name":"shop","prompt":"Run."}`, ours: `spawn_teammate {"role":"bash","name":"hand","prompt":"Run."}`},
			{who: l, theirs: `TeamFanout {"tasks":[{"key":"a","subject":"First"},{"subject":"Second","blockedBy":["a"]}]}`, ours: `create_tasks {"tasks":[{"key":"a","title":"First"},{"key":"b","title":"Second","dependencies":["a"]}]}`},
			{who: "worker-1", theirs: `TaskUpdate {"taskId":"1","owner":"worker-1"}`, ours: `claim_task {"task_id":"1"}`},
			{who: "eye", theirs: `TaskUpdate {"taskId":"1","owner":"eye"}`, ours: `claim_task {"task_id":"1"}`, refused: team.Conflict, says: "worker-1"},
			{who: "worker-1", theirs: `TaskUpdate {"taskId":"1","status":"completed","result_summary":"ok"}`, ours: `update_task {"task_id":"1","status":"completed","result_summary":"ok"}`},
			{who: "worker-1", theirs: `SendMessage {"type":"message","recipient":"leader","content":"First is done","summary":"done"}`, ours: `send_message {"to":"leader","content":"First is done","summary":"done"}`},
			{who: l, theirs: `TaskUpdate {"taskId":"2","status":"deleted"}`, ours: `update_task {"task_id":"2","status":"cancelled"}`},
			{who: l, theirs: `TeamDelete {"team_name":"shop"}`, ours: `finish_team {"summary":"x"}`},
		},
		"three modes of Task": {
			{who: l, theirs: `Task {"description":"count","prompt":"Count.","subagent_type":"Explore"}`, ours: `subagent {"prompt":"Count.","type":"explorer"}`, says: "There are four."},
			{who: l, theirs: `Task {"prompt":"Count again.","run_in_background":true}`, ours: `subagent {"prompt":"Count again.","run_in_background":true}`, says: "works in the background", notice: "There are four."},
			{who: l, theirs: `Task {"prompt":"Wait.","run_in_background":true}`, ours: `subagent {"prompt":"Wait.","run_in_background":true}`},
			{who: l, theirs: `TaskOutput {"task_id":"JOB","block":false}`, ours: `task_output {"task_id":"JOB","block":false}`, says: "works for"},
			{who: l, theirs: `TaskStop {"task_id":"JOB"}`, ours: `task_stop {"task_id":"JOB"}`, says: "JOB"},
			{who: l, theirs: `TaskOutput {"task_id":"JOB"}`, ours: `task_output {"task_id":"JOB"}`, says: "has ended"},
			{who: l, theirs: `Task {"prompt":"Count.","team_name":"t","name":"counter"}`, ours: `spawn_teammate {"role":"coder","name":"counter","prompt":"Count."}`},
			{who: l, theirs: `Task {"prompt":"Both at once.","mode":"parallel"}`, refused: team.InvalidArgument, says: "TeamFanout"},
		},
		"a plan is decided by mail, and the team moves": {
			{who: l, theirs: `Task {"subagent_type":"Plan","name":"head","team_name":"t","prompt":"Plan."}`, ours: `spawn_teammate {"role":"planner","name":"head","prompt":"Plan.","plan_mode":true}`},
			{who: l, theirs: `TaskCreate {"subject":"Move"}`, ours: `create_task {"title":"Move"}`},
			{who: l, theirs: `TaskCreate {"subject":"Look at it","blockedBy":["1"]}`, ours: `create_task {"title":"Look at it","dependencies":["1"]}`},
			{who: l, theirs: `TaskUpdate {"taskId":"1","owner":"head"}`, ours: `update_task {"task_id":"1","assignee":"head"}`},
			{who: "head", theirs: `TaskUpdate {"taskId":"1","status":"completed","result_summary":"moved"}`, ours: `update_task {"task_id":"1","status":"completed","result_summary":"moved"}`, refused: team.PermissionDenied, says: "ExitPlanMode"},
			{who: "head", theirs: `ExitPlanMode {"plan":"move it"}`, ours: `submit_plan {"plan":"move it"}`},
			{who: l, theirs: `SendMessage {"type":"plan_approval_response","recipient":"head","request_id":"PLAN","approve":false,"content":"add tests"}`, ours: `approve_plan {"request_id":"PLAN","approve":false,"feedback":"add tests"}`},
			{who: "head", theirs: `ExitPlanMode {"plan":"move it, with tests"}`, ours: `submit_plan {"plan":"move it, with tests"}`},
			{who: l, theirs: `SendMessage {"recipient":"head","message":{"type":"plan_approval_response","request_id":"PLAN","approve":true}}`, ours: `send_message {"to":"head","content":"","type":"plan_approval_response","request_id":"PLAN","approve":true}`},
			{who: "head", theirs: `TaskUpdate {"taskId":"1","status":"completed","result_summary":"moved"}`, ours: `update_task {"task_id":"1","status":"completed","result_summary":"moved"}`},
			{theirs: "save and load"},
			{who: "coder-1", theirs: `TaskUpdate {"taskId":"2","owner":"coder-1"}`, ours: `claim_task {"task_id":"2"}`},
			{who: "coder-2", theirs: `TaskUpdate {"taskId":"2","owner":"coder-2"}`, ours: `claim_task {"task_id":"2"}`, refused: team.Conflict, says: "coder-1"},
		},
		"a leader by the RFC": {
			{who: l, theirs: `spawn_teammate {"role_name":"coder"}`, ours: `spawn_teammate {"role":"coder"}`},
			{who: l, theirs: `create_task {"title":"Page","description":"Build it","priority":"high","dependencies":[]}`, ours: `create_tasks {"tasks":[{"key":"p","title":"Page","description":"Build it","priority":1}]}`},
			{who: l, theirs: `message {"to_agent_id":"coder-9","content":"Begin"}`, ours: `send_message {"to":"coder-9","content":"Begin"}`},
			{who: "coder-9", theirs: `claim_task {"task_id":"T-001"}`, ours: `update_task {"task_id":"T-001","status":"in_progress"}`},
			{who: "coder-9", theirs: `release_task {"task_id":"T-001"}`, ours: `update_task {"task_id":"T-001","status":"pending"}`},
			{who: "coder-9", theirs: `claim_task {"task_id":"T-001"}`},
			{who: "coder-9", theirs: `update_task_status {"task_id":"T-001","status":"completed","result_summary":"built"}`, ours: `update_task {"task_id":"T-001","status":"completed","result_summary":"built"}`},
			{who: l, theirs: `create_task {"title":"Text","dependencies":["T-001"]}`},
			{who: l, theirs: `claim_task {"task_id":"T-002","assignee_agent_id":"coder-9"}`, ours: `update_task {"task_id":"T-002","assignee":"coder-9"}`},
			{who: "coder-9", theirs: `update_task_status {"task_id":"T-002","status":"failed","reason":"no words"}`, ours: `update_task {"task_id":"T-002","status":"failed","reason":"no words"}`},
			{who: "coder-9", theirs: `list_tasks {}`}, {who: "coder-9", theirs: `list_teammates {}`},
			{who: l, theirs: `broadcast {"content":"Thanks"}`, ours: `send_message {"to":"*","content":"Thanks"}`},
			{who: l, theirs: `finish_team {"summary":"x"}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			theirs, ours := newConversation(t), newConversation(t)
			for _, x := range lines {
				theirs.speaks(x, x.theirs)
				if x.ours == "" && !strings.HasPrefix(x.theirs, "Team") && !strings.HasPrefix(x.theirs, "Task ") {
					x.ours = x.theirs
				}
				if x.ours != "" {
					ours.speaks(x, x.ours)
				}
			}
			if a, b := theirs.end(), ours.end(); a != b {
				t.Errorf("by the document:\n%s\nby our calls:\n%s", a, b)
			}
		})
	}
}

// newConversation is a desk as [desk.converses] makes it.
func newConversation(t *testing.T) *desk {
	t.Helper()
	d := deskOf(t)
	d.converses()
	return d
}

// converses gives the team the roles of the documents and subagents, and lets those join who are spawned.
func (d *desk) converses() {
	for _, r := range []string{"explorer", "planner", "bash"} {
		d.record.Roles[r] = team.Role{Name: r}
	}
	d.crew.joins = true
	d.jobs = job.New(job.Options{})
	d.t.Cleanup(d.jobs.Close)
	lent, err := tool.NewSet(nil, subagent.None())
	if err != nil {
		d.t.Fatal(err)
	}
	d.more = append(d.jobs.Tools(), subagent.Tool(subagent.Options{Owner: team.Leader, Jobs: d.jobs, Roles: func() team.Team { return d.record },
		Open: func(_ context.Context, s subagent.Spec) (engine.Options, func(uint64, model.Usage, error), error) {
			d.begun = append(d.begun, s.Role.Name)
			return engine.Options{Name: string(s.Name), System: "You count.", Model: counter{}, Tools: lent, Journal: nowhere{}, Conversation: engine.NewConversation(), Owner: free{}}, func(uint64, model.Usage, error) {}, nil
		},
		Keep: func(context.Context, string) (string, error) { return "kept", nil }}))
	d.equip(team.Member{AgentID: team.Leader, Role: "leader", Incarnation: 1})
}

// counter is the model of subagents.
type counter struct{}

func (counter) Complete(ctx context.Context, r model.Request, _ func(string)) (model.Reply, error) {
	if strings.Contains(r.Messages[len(r.Messages)-1].Content, "Wait.") {
		<-ctx.Done()
		return model.Reply{}, ctx.Err()
	}
	return model.Reply{Message: model.Message{Role: "assistant", Content: "There are four."}}, nil
}

func (counter) Limits(string) model.Limits { return model.Limits{} }

func (counter) Meant(name string) (string, string) { return name, "counter" }

// nowhere is the journal of subagents, and free lets each of their steps begin.
type (
	nowhere struct{}
	free    struct{}
)

func (nowhere) Append(_ context.Context, r journal.Record) (journal.Record, error) { return r, nil }
func (nowhere) Enqueue(_ context.Context, r journal.Record) journal.Record         { return r }
func (nowhere) Flush() error                                                       { return nil }

func (free) Leave(context.Context, engine.Step) error { return nil }
func (free) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return ctx, func() {}
}
func (free) Returned(tool.Effects, *journal.ToolResult) {}

// moves saves the team and loads it at another server, where its members have tools again.
func (d *desk) moves() {
	d.t.Helper()
	ctx, file := d.t.Context(), filepath.Join(d.t.TempDir(), "team.save")
	from, err := archive.Connect(ctx, archive.Options{URL: d.url})
	if err != nil {
		d.t.Fatal(err)
	}
	defer from.Close()
	if _, err := from.Save(ctx, "t", file, false); err != nil {
		d.t.Fatal(err)
	}
	d.url = brokertest.Server(d.t)
	to, err := archive.Connect(ctx, archive.Options{URL: d.url})
	if err != nil {
		d.t.Fatal(err)
	}
	defer to.Close()
	f, err := archive.Open(file)
	if err == nil {
		_, err = to.Load(ctx, f)
	}
	var reg *registry.Registry
	if err == nil {
		reg, err = registry.Open(ctx, brokertest.Connect(d.t, d.url))
	}
	if err == nil {
		d.broker, err = reg.Storage(ctx, "t")
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.board = board.New(d.broker.Bucket, board.Options{})
	members, err := roster.New(d.broker).List(ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, m := range members {
		d.equip(m)
	}
}

var jobID = regexp.MustCompile(`\b[ab][0-9a-f]{6}\b`)

// speaks makes one call of a conversation.
func (d *desk) speaks(x line, call string) {
	d.t.Helper()
	if x.who == "" {
		d.moves()
		return
	}
	for a, s := range map[team.AgentID]team.MemberState{x.running: team.Running, x.resting: team.Idle} {
		if a != "" {
			d.beats++
			d.pulse.Hear(team.Heartbeat{AgentID: a, Incarnation: 1, N: d.beats, State: s})
		}
	}
	filled := strings.NewReplacer("JOB", d.job, "PLAN", d.plan)
	name, arguments, _ := strings.Cut(filled.Replace(call), " ")
	res := d.call(x.who, name, arguments)
	if res.Code != x.refused || call == x.theirs && !strings.Contains(res.Content, filled.Replace(x.says)) {
		d.t.Fatalf("%s by %s: %q, want %q with %q", call, x.who, res.Content, x.refused, x.says)
	}
	d.job = cmp.Or(jobID.FindString(res.Content), d.job)
	if w := res.Effects.Await; w != nil && w.Plan != "" {
		d.plan = w.Plan
		d.plans = append(d.plans, w.Plan, "PLAN")
	}
	if x.notice != "" {
		if end := brokertest.Receive(d.t, "the subagent ends", d.jobs.Ended()); !strings.Contains(end.Text, x.notice) {
			d.t.Errorf("%s: the notice is %+v", call, end)
		}
	}
}

// end is what a conversation has come to.
func (d *desk) end() string {
	d.t.Helper()
	var b strings.Builder
	tasks, err := d.board.All(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	for _, task := range tasks {
		fmt.Fprintln(&b, task.ID, task.Title, task.Description, task.Status, task.Assignee, task.Dependencies, task.Priority, task.ResultSummary)
	}
	for _, a := range append([]team.AgentID{"leader"}, d.crew.names()...) {
		for _, m := range d.inbox(a) {
			fmt.Fprintln(&b, a, "has from", m.From, m.Type, m.Content)
		}
	}
	for _, m := range d.crew.spawned {
		fmt.Fprintln(&b, m.AgentID, m.Role, m.Prompt, m.PlanMode)
	}
	fmt.Fprintln(&b, "subagents:", d.begun, "ended:", d.crew.summary != "")
	return strings.NewReplacer(d.plans...).Replace(b.String())
}

func (c *crew) names() (names []team.AgentID) {
	for _, m := range c.spawned {
		names = append(names, m.AgentID)
	}
	slices.Sort(names)
	return names
}
