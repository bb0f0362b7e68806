package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/agent/engine"
	"agentteam/pkg/model"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// wait bounds what a test waits for.
const wait = brokertest.Longest

// puppet is a model whose answers a test gives.
type puppet struct {
	t       *testing.T
	asked   chan model.Request
	answers chan model.Reply
}

func (p puppet) Complete(ctx context.Context, r model.Request, _ func(string)) (model.Reply, error) {
	select {
	case p.asked <- r:
	case <-ctx.Done():
		return model.Reply{}, ctx.Err()
	}
	select {
	case reply := <-p.answers:
		return reply, nil
	case <-ctx.Done():
		return model.Reply{}, ctx.Err()
	}
}

func (p puppet) Limits(string) model.Limits { return model.Limits{} }

func (p puppet) Meant(name string) (string, string) { return name, "" }

// next returns what the model is asked next, as one text.
func (p puppet) next(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, m := range brokertest.Receive(t, "the model is asked", p.asked).Messages {
		b.WriteString(m.Role + ": " + m.Content + "\n")
	}
	return b.String()
}

// answer has the model answer what it was asked.
func (p puppet) answer(r model.Reply) {
	p.t.Helper()
	brokertest.Send(p.t, "the answer of the model is awaited", p.answers, r)
}

// calls has the model call tools, by name and arguments.
func (p puppet) calls(calls ...string) {
	m := model.Message{Role: "assistant"}
	for i := 0; i < len(calls); i += 2 {
		m.ToolCalls = append(m.ToolCalls, model.ToolCall{ID: calls[i] + calls[i+1], Name: calls[i], Arguments: calls[i+1]})
	}
	p.answer(model.Reply{Message: m, FinishReason: "tool_calls"})
}

// rig is coder-1 at work in a team whose leader is the test.
type rig struct {
	*testing.T
	bt        *broker.Storage
	board     *board.Board
	model     puppet
	workspace string
	end       func() // ends the membership
}

// rigRecord is the record of its team.
var rigRecord = team.Team{ID: "t", LeaseSeconds: 60, Roles: map[string]team.Role{"coder": {Name: "coder"},
	"tester": {Name: "tester", Model: "fast", Policy: team.Policy{Permissions: team.Permissions{Deny: []string{"Read(web/secret/CLAUDE.md)"}}}}}}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	return newRigIn(t, dir, workspace.Shared{Dir: dir, Runner: command.Plain{}})
}

func newRigIn(t *testing.T, dir string, in workspace.Source) *rig {
	t.Helper()
	return newRigAs(t, dir, in, team.Role{Name: "coder"})
}

func newRigAs(t *testing.T, dir string, in workspace.Source, as team.Role) *rig {
	t.Helper()
	p := puppet{t, make(chan model.Request), make(chan model.Reply)}
	r := newRigWith(t, dir, in, as, p)
	r.model = p
	return r
}

func newRigWith(t *testing.T, dir string, in workspace.Source, as team.Role, llm engine.Model) *rig {
	t.Helper()
	r := &rig{T: t, bt: brokertest.Team(t, "t"), workspace: dir}
	r.board = board.New(r.bt.Bucket, board.Options{})
	m, err := roster.New(r.bt).Put(t.Context(), team.Member{AgentID: "coder-1", Role: "coder", Backend: team.Exec, State: team.Joined, Incarnation: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{Process: "p", Team: r.bt, Record: rigRecord, Member: m,
			Role: as, Model: llm, ModelChanged: func() <-chan struct{} { return nil }, Workspaces: in})
	}()
	r.end = sync.OnceFunc(func() {
		cancel()
		if err := brokertest.Receive(t, "the membership ends", ended); err != nil {
			t.Errorf("the membership ended: %v", err)
		}
	})
	t.Cleanup(r.end)
	return r
}

// assign has the leader assign a task, once the member is there.
func (r *rig) assign(id team.TaskID) team.Task {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	for {
		task, err := control.Assign(ctx, r.bt, "coder-1", team.Assignment{Task: id, By: team.Leader})
		if err == nil {
			return task
		}
		if !control.NoResponders(err) && !errors.Is(err, team.Busy) || ctx.Err() != nil {
			r.Fatal(err)
		}
	}
}

func (r *rig) add(titles ...string) (ids []team.TaskID) {
	r.Helper()
	for _, title := range titles {
		tasks, err := r.board.Create(r.Context(), team.Leader, team.NewTask{Title: title})
		if err != nil {
			r.Fatal(err)
		}
		ids = append(ids, tasks[0].ID)
	}
	return ids
}

// Whoever had no answer assigns the task once more: it is not begun a second time.
func TestAssignedAgain(t *testing.T) {
	r := newRig(t)
	id := r.add("once")[0]
	first := r.assign(id)
	r.model.next(t)
	if again := r.assign(id); again.Epoch != first.Epoch || again.Revision != first.Revision {
		t.Errorf("assigned as %+v, then as %+v", first, again)
	}
	r.model.calls("list_tasks", "{}")
	if heard := r.model.next(t); strings.Count(heard, "title: once") != 1 {
		t.Errorf("the model was told\n%s", heard)
	}
}

// A task is taken away, and before the word of that comes the agent is given another: it
// stops with the one all the same, what its turn asked for besides is not begun, and its
// model is told.
func TestAssignedBeforeRevoked(t *testing.T) {
	r := newRig(t)
	ids := r.add("first", "second")
	r.assign(ids[0])
	r.model.next(t)
	pipe := filepath.Join(r.workspace, "begun")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	begun := make(chan error, 1)
	go func() {
		_, err := os.ReadFile(pipe)
		begun <- err
	}()
	r.model.calls("bash", `{"command":"echo > begun; sleep 1000","timeout":600}`, "write_file", `{"path":"late.txt","content":"x"}`)
	select {
	case err := <-begun:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(wait):
		t.Fatal("the command does not begin")
	}
	// There is no index here that would tell of it.
	if _, err := r.board.Cancel(t.Context(), ids[0], team.Actor{Holder: team.Holder{Agent: team.Leader}, Leads: true}, "not needed"); err != nil {
		t.Fatal(err)
	}
	r.assign(ids[1])
	heard := r.model.next(t)
	for _, want := range []string{"write_file was not started", "T-001 was taken from you: T-001 is already cancelled"} {
		if !strings.Contains(heard, want) {
			t.Errorf("the model was not told %q, but\n%s", want, heard)
		}
	}
	if _, err := os.Stat(filepath.Join(r.workspace, "late.txt")); err == nil {
		t.Error("it wrote for a task that it no longer had")
	}
	// The late word. Sent as a request, it is answered once it was heard.
	if _, err := r.bt.Conn.NATS().Request(subject.Control("t", "coder-1", subject.Revoked), []byte(`"T-001"`), wait); err != nil {
		t.Fatal(err)
	}
	r.model.calls("list_tasks", "{}")
	if heard := r.model.next(t); strings.Count(heard, "was taken from you") != 1 || strings.Count(heard, "title: second") != 1 {
		t.Errorf("the model was told\n%s", heard)
	}
}

// The same if the agent itself takes another task before it has heard: that it has it is
// not lost.
func TestClaimedBeforeRevoked(t *testing.T) {
	r := newRig(t)
	ids := r.add("first", "second")
	r.assign(ids[0])
	r.model.next(t)
	if _, err := r.board.Cancel(t.Context(), ids[0], team.Actor{Holder: team.Holder{Agent: team.Leader}, Leads: true}, "not needed"); err != nil {
		t.Fatal(err)
	}
	r.model.calls("claim_task", `{"task_id":"T-002"}`)
	heard := r.model.next(t)
	for _, want := range []string{`"id":"T-002","title":"second","status":"in_progress"`, "T-001 was taken from you", "title: second"} {
		if !strings.Contains(heard, want) {
			t.Errorf("the model was not told %q, but\n%s", want, heard)
		}
	}
	if task, err := r.board.Get(t.Context(), ids[1]); err != nil || task.Assignee != "coder-1" {
		t.Errorf("T-002 is held by %q, %v", task.Assignee, err)
	}
}

// A member that claims a task which needs an approved plan reads in the answer how it is submitted, in its dialect.
func TestClaimOfGatedTaskInItsDialect(t *testing.T) {
	dir := t.TempDir()
	r := newRigAs(t, dir, workspace.Shared{Dir: dir, Runner: command.Plain{}}, team.Role{Name: "coder", Dialect: team.Claude})
	ids := r.add("first", "gated")
	planner := board.NewClaimSlot(t.Context(), r.board, team.Member{AgentID: "planner-1", Incarnation: 1, PlanMode: true}.Holder())
	_, err := planner.Claim(t.Context(), ids[1])
	if err == nil {
		_, err = planner.Release(t.Context(), ids[1], team.Freed{Reason: "lost"})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.assign(ids[0])
	r.model.next(t)
	r.model.calls("TaskUpdate", `{"taskId":"1","status":"completed","result_summary":"done"}`, "TaskUpdate", `{"taskId":"2","owner":"coder-1"}`)
	if heard := r.model.next(t); !strings.Contains(heard, "then call ExitPlanMode") || strings.Contains(heard, "submit_plan") {
		t.Errorf("the model was told\n%s", heard)
	}
}
