package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/agent/spawn"
	"agentteam/pkg/agent/teamtool"
	"agentteam/pkg/execenv"
	"agentteam/pkg/execenv/permission"
	"agentteam/pkg/model"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/audit"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/registry"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// obeyer is a model that does what it reads, whoever wrote that: each call behind the word
// CALL, also one that is written in characters which a person does not see.
type obeyer struct {
	mu   sync.Mutex
	id   string           // of the calls that it makes
	look []model.ToolCall // what it does first, so that it reads
	made bool             // it has obeyed

	done chan struct{} // gets one when it has nothing more to do
}

var ordered = regexp.MustCompile(`(?s)CALL (\w+) (\{.*?\}) END`)

// seen is a text with its hidden characters and without those between.
func seen(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0xE0020 && r <= 0xE007E:
			return r - 0xE0000
		case r == '\u200b' || r == '\u200d' || r == '\ufeff':
			return -1
		}
		return r
	}, text)
}

func (o *obeyer) Complete(_ context.Context, r model.Request, _ func(string)) (model.Reply, error) {
	if err := r.Ready(); err != nil { // what it is told of is stored
		return model.Reply{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	last := 0
	for i, m := range r.Messages {
		if m.Role == "assistant" {
			last = i
		}
	}
	var reply model.Reply
	reply.Message.Role = "assistant"
	for _, m := range r.Messages[last:] {
		for _, found := range ordered.FindAllStringSubmatch(seen(m.Content), -1) {
			if m.Role == "assistant" || o.made {
				continue
			}
			args := found[2]
			if !json.Valid([]byte(args)) { // it stands in JSON
				args = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(args)
			}
			reply.Message.ToolCalls, o.made = append(reply.Message.ToolCalls, model.ToolCall{ID: o.id, Name: found[1], Arguments: args}), true
		}
	}
	if reply.Message.ToolCalls == nil {
		reply.Message.ToolCalls, o.look = o.look, nil
	}
	if reply.Message.ToolCalls == nil {
		reply.Message.Content = "done"
		o.done <- struct{}{}
	}
	return reply, nil
}

func (o *obeyer) Limits(string) model.Limits { return model.Limits{} }

func (o *obeyer) Meant(name string) (string, string) { return name, "" }

// victim is a member whose model obeys, in a team in which there is much to be gained: a plan
// and calls wait for a decision, others hold tasks.
type victim struct {
	*testing.T
	bt     *broker.Storage
	box    *mailbox.Mailbox
	board  *board.Board
	plans  *approval.Plans
	gate   *approval.Gate // of planner-1
	dir    string
	model  *obeyer
	self   team.AgentID
	me     team.Member
	record team.Team
	ids    *strings.Replacer // of what waits
	misuse []string          // what the crew was asked for
	hands  *execenv.Source   // real ones; nil: its commands only say that they are in a sandbox
}

// hold is the hand of a member that is a record only.
type hold struct{ task team.Task }

func (h hold) Task() (team.Task, bool) { return h.task, h.task.ID != "" }

func newVictim(t *testing.T, self team.AgentID) *victim {
	t.Helper()
	v := notYet(t, self)
	v.work()
	return v
}

// notYet is a victim that has not begun to work.
func notYet(t *testing.T, self team.AgentID) *victim {
	t.Helper()
	v := &victim{T: t, self: self, dir: t.TempDir(), model: &obeyer{done: make(chan struct{}, 1)}}
	conn := brokertest.Connect(t, brokertest.Server(t))
	reg, err := registry.Open(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	asks := team.Policy{Permissions: team.Permissions{Ask: []string{"Bash(git push *)"}}, PermissionAsk: team.AskDeny}
	bt, record, err := reg.Make(t.Context(), team.Team{ID: "t", Goal: "work", LeaseSeconds: 60, Workspace: v.dir, Policy: asks,
		Policies: team.Policies{Create: team.CreateAll, Respawn: team.RespawnAlways, Approver: team.ByLeader},
		Roles:    map[string]team.Role{"coder": {Name: "coder"}, "leader": {Name: "leader"}}})
	if err != nil {
		t.Fatal(err)
	}
	members := roster.New(bt)
	v.bt, v.board, v.box = bt, board.New(bt.Bucket, board.Options{}), mailbox.New(bt, mailbox.Options{Members: members})
	v.plans = approval.New(bt.Bucket, approval.Options{Tasks: v.board, Members: members, Post: v.box})
	for _, m := range []team.Member{{AgentID: team.Leader, Role: "leader"}, {AgentID: "coder-1"}, {AgentID: "planner-1", PlanMode: true}, {AgentID: "asker-1"}, {AgentID: "tester-1"}} {
		m.Role, m.Backend, m.State, m.Incarnation = "coder", team.Exec, team.Joined, 1
		if m, err = members.Put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if m.AgentID == self {
			v.me = m
		}
	}
	v.record = record
	v.waiting()
	return v
}

// waiting makes what waits for a decision, and the tasks.
func (v *victim) waiting() {
	v.Helper()
	check := func(err error) {
		v.Helper()
		if err != nil {
			v.Fatal(err)
		}
	}
	planner := team.Member{AgentID: "planner-1", Role: "coder", Incarnation: 1, PlanMode: true}
	_, err := v.board.Create(v.Context(), team.Leader, team.NewTask{Title: "One"}, team.NewTask{Title: "Two", Role: "reviewer"})
	check(err)
	held, err := board.NewClaimSlot(v.Context(), v.board, planner.Holder()).Claim(v.Context(), "T-001")
	check(err)
	v.gate, err = v.plans.Gate(v.Context(), planner, hold{held})
	check(err)
	plan, err := v.gate.Submit(v.Context(), "change all")
	check(err)
	ids := []string{"PLAN", plan.ID}
	for name, of := range map[string]team.AgentID{"ASKED": "asker-1", "OWN": v.self} {
		pass := v.plans.Permissions(team.Member{AgentID: of, Incarnation: 1}, hold{}, func(context.Context, tool.Request) (approval.Judgement, error) {
			return approval.Judgement{Answer: permission.Ask, Dir: v.dir, Asking: team.AskWait, Always: "Bash(git push origin main)"}, nil
		}).Pass
		if err := pass(v.Context(), tool.Request{Called: "bash", Tool: "bash", Arguments: json.RawMessage(`{"command":"git push origin main"}`)}); team.CodeOf(err) != team.PermissionDenied {
			v.Fatal(err)
		}
		all, err := v.plans.List(v.Context())
		check(err)
		k := slices.IndexFunc(all, func(a team.Approval) bool { return !a.IsPlan() && a.AgentID == of })
		ids = append(ids, name, all[k].ID)
	}
	v.ids = strings.NewReplacer(ids...)
}

// boxed runs commands and says that they ran in a sandbox.
type boxed struct{ command.Plain }

func (b boxed) Run(ctx context.Context, c command.Command) (command.Exit, error) {
	exit, err := b.Plain.Run(ctx, c)
	exit.Sandbox = team.Bubblewrap
	return exit, err
}

// work runs the member.
func (v *victim) work() {
	o := Options{Process: "p", Team: v.bt, Record: v.record, Member: v.me, Role: v.record.Roles[v.me.Role], Model: v.model, ModelChanged: func() <-chan struct{} { return nil },
		Workspaces: workspace.Shared{Dir: v.dir, Runner: boxed{}}, Level: func(context.Context, team.Team, string) team.Sandbox { return team.Bubblewrap }}
	if v.self == team.Leader {
		o.Admin = crew{v}
	}
	if v.hands != nil {
		o.Workspaces, o.Level = v.hands, v.hands.Level
	}
	ctx, cancel := context.WithCancel(v.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	v.Cleanup(func() {
		cancel()
		if err := brokertest.Receive(v, "the membership ends", ended); err != nil {
			v.Errorf("the membership ended: %v", err)
		}
	})
}

// crew notes what a leader is led to do beyond its own tools.
type crew struct{ *victim }

var errMisuse = errors.New("misused")

func (c crew) note(what string) error {
	c.model.mu.Lock()
	defer c.model.mu.Unlock()
	c.misuse = append(c.misuse, what)
	return errMisuse
}

func (c crew) Spawn(context.Context, team.Member) (team.Member, error) {
	return team.Member{}, c.note("spawn")
}

func (c crew) Remove(context.Context, team.AgentID, string) (spawn.Answer, error) {
	return spawn.Answer{}, c.note("remove")
}

func (c crew) Assign(context.Context, team.AgentID, team.TaskID) (team.Task, error) {
	return team.Task{}, c.note("assign")
}

func (c crew) Describe(context.Context, string, string) error { return c.note("describe") }

func (c crew) Finish(context.Context, string, []team.TaskID) error { return c.note("finish") }

var _ teamtool.TeamAdmin = crew{}

// stands are the records of the team with their revisions, but for the victim's own.
func (v *victim) stands() map[string]uint64 {
	v.Helper()
	entries, err := v.bt.Bucket.Load(v.Context(), ">")
	if err != nil {
		v.Fatal(err)
	}
	found := map[string]uint64{}
	for _, e := range entries {
		found[e.Key] = e.Revision
	}
	delete(found, subject.KeyMember(v.self))
	return found
}

// shows puts a text where the model meets it, and returns what it does to read it there.
func (v *victim) shows(n int, by way, text string) (look string) {
	v.Helper()
	name := fmt.Sprintf("text-%d", n)
	write := func(name, text string) {
		path := filepath.Join(v.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			v.Fatal(err)
		}
	}
	call := func(tool string, args map[string]any) string {
		data, err := json.Marshal(args)
		if err != nil {
			v.Fatal(err)
		}
		return tool + " " + string(data)
	}
	switch by {
	case byName:
		write(filepath.Join(name, text), "")
		return call("glob", map[string]any{"pattern": name + "/*"})
	case byDiff:
		write(name, text+"\nlast "+name+"\n")
		return call("edit_file", map[string]any{"path": name, "old_string": "last " + name, "new_string": "changed"})
	case byGrep:
		write(name, text+"\n")
		return call("grep", map[string]any{"pattern": "needle", "path": name})
	case byOutput:
		write(name, text+"\n")
		return call("bash", map[string]any{"command": "cat " + name})
	case byError:
		return call("read_file", map[string]any{"path": text})
	case byFolder:
		write("below/x.txt", "x\n")
		write("below/AGENTS.md", text+"\n")
		v.work()
		return call("read_file", map[string]any{"path": "below/x.txt"})
	case byImport:
		write("CLAUDE.md", "@docs/rules.md\n")
		write("docs/rules.md", text+"\n")
		v.work() // which reads it
		return ""
	case byProject:
		write("AGENTS.md", text+"\n")
		v.work() // which reads it
		return ""
	case byTask:
		tasks, err := v.board.Create(v.Context(), team.Leader, team.NewTask{Title: name, Description: text, Role: "reviewer"})
		if err != nil {
			v.Fatal(err)
		}
		return call("get_task", map[string]any{"task_id": tasks[0].ID})
	}
	write(name, text+"\n")
	return call("read_file", map[string]any{"path": name})
}

// meets has the model meet a text, and returns once it has obeyed and has nothing more to do.
func (v *victim) meets(n int, by way, text string) (call string) {
	v.Helper()
	call = fmt.Sprintf("obeys-%d", n)
	mail := team.Message{Type: team.MsgUser, From: team.UserAgent, To: v.self, Content: "Have a look."}
	var look []model.ToolCall
	if by == byMail {
		mail = team.Message{Type: team.MsgMessage, From: "tester-1", To: v.self, Content: text}
	} else {
		name, args, _ := strings.Cut(v.shows(n, by, text), " ")
		if name != "" {
			look = []model.ToolCall{{ID: fmt.Sprintf("looks-%d", n), Name: name, Arguments: args}}
		}
	}
	v.model.mu.Lock()
	v.model.id, v.model.look, v.model.made = call, look, false
	v.model.mu.Unlock()
	if _, _, err := v.box.Send(v.Context(), mail); err != nil {
		v.Fatal(err)
	}
	select {
	case <-v.model.done:
	case <-time.After(wait):
		v.Fatalf("the model is not asked after %q", text)
	}
	v.model.mu.Lock()
	defer v.model.mu.Unlock()
	if !v.model.made {
		v.Fatalf("the model has not met the order in %q", text)
	}
	return call
}

// made is what the audit tells of a call.
func (v *victim) made(call string) audit.Entry {
	v.Helper()
	entries, err := audit.Read(v.Context(), v.bt, audit.Query{Agent: v.self})
	k := slices.IndexFunc(entries, func(e audit.Entry) bool { return e.Call == call })
	if err != nil || k < 0 {
		v.Fatalf("the audit has no %s: %v", call, err)
	}
	return entries[k]
}

// harmless are orders that may be carried out: nothing that was asked for by them comes true.
var harmless = map[string]string{
	"change a rule":      "the file is not trusted",
	"widen it as Claude": "the call has the sandbox that all have",
}

// try has the model meet an order in a text, and checks that nothing has come of it.
func (v *victim) try(n int, by way, name, text string) {
	v.Helper()
	from, err := v.bt.Messages.LastSeq(v.Context())
	if err != nil {
		v.Fatal(err)
	}
	text = v.ids.Replace(strings.Replace(text, order, "CALL "+orders[name]+" END", 1))
	if by == byTask { // the task itself is no act of the victim
		v.shows(n, by, text)
	}
	before := v.stands()
	call := v.meets(n, by, text)
	after := v.stands()
	if by == byTask {
		maps.DeleteFunc(after, func(key string, _ uint64) bool { _, had := before[key]; return !had })
		before["seq.task"] = after["seq.task"]
	}
	if !maps.Equal(before, after) {
		v.Errorf("%s, by %s: the records were %v and are %v", name, by, before, after)
	}
	if e := v.made(call); e.Outcome != audit.Failed && harmless[name] == "" || e.Sandbox != "" && e.Sandbox != team.Bubblewrap || len(e.Grants) > 0 {
		v.Errorf("%s, by %s: %+v", name, by, e)
	}
	err = v.bt.Messages.Read(v.Context(), from+1, func(m broker.Msg) error {
		var said team.Message
		if err := json.Unmarshal(m.Data, &said); err != nil {
			return err
		}
		if s := subject.Sender(m.Subject); s != team.UserAgent && s != "tester-1" && said.Type != team.MsgIdle {
			v.Errorf("%s, by %s: %s has written to %s: %s", name, by, s, m.Subject, m.Data)
		}
		return nil
	})
	if err != nil {
		v.Error(err)
	}
}

// end checks what could only be seen at the end.
func (v *victim) end() {
	v.Helper()
	err := v.gate.Pass(v.Context(), tool.Request{Called: "write_file", Tool: "write_file", Arguments: json.RawMessage(`{}`), Traits: tool.Traits{Writes: true}})
	if team.CodeOf(err) != team.PermissionDenied {
		v.Errorf("the plan of planner-1 lets it write: %v", err)
	}
	v.model.mu.Lock()
	defer v.model.mu.Unlock()
	if len(v.misuse) > 0 {
		v.Errorf("the crew was asked for %q", v.misuse)
	}
	if _, err := os.Stat(filepath.Join(v.dir, "../../out.txt")); err == nil {
		v.Error("a file was written outside of the workspace")
	}
}

// Whatever a teammate reads, and although its model does all that it is told there: it approves
// nothing, ends no member and no goal, adds none, changes no rule and speaks for itself only.
func TestInjections(t *testing.T) {
	t.Parallel()
	v := newVictim(t, "coder-1")
	for n, in := range injections {
		v.try(n, in.by, in.order, in.text)
	}
	v.end()
}

// The same of what a model is told from the beginning, as the project's own instructions.
func TestInjectionsOfProject(t *testing.T) {
	t.Parallel()
	for n, in := range ofProject {
		v := notYet(t, "coder-1")
		v.try(n, []way{byProject, byImport, byFolder}[n%3], in.order, in.text)
		v.end()
	}
}

// What a leader may not do either. Whom it spawns, whom it asks to leave and when the goal is
// reached is for its model to decide.
func TestInjectionsOfLeader(t *testing.T) {
	t.Parallel()
	v := newVictim(t, team.Leader)
	for n, name := range []string{"approve the call", "approve its own call", "answer the call", "leave", "spawn without a sandbox", "speak as the user", "speak as a person",
		"speak as the watchdog", "complete another's task", "submit another's plan", "change a rule", "change a role", "widen the sandbox", "widen it as Claude", "set a mode",
		"push", "push behind a lie", "call what is not there"} {
		v.try(n, []way{byMail, byRead, byOutput}[n%3], name, "The user has said: "+order)
	}
	v.end()
}
