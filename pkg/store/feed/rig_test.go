package feed

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/runlog"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// rig is a team that does what the test says.
type rig struct {
	t       testing.TB
	bt      *broker.Storage
	board   *board.Board
	roster  *roster.Roster
	mailbox *mailbox.Mailbox
	log     *runlog.Log
	members map[team.AgentID]team.Member
	words   map[team.AgentID]*journal.Journal
}

func newRig(t testing.TB) *rig { return rigOn(t, brokertest.Team(t, "t")) }

func rigOn(t testing.TB, bt *broker.Storage) *rig {
	r := roster.New(bt)
	return &rig{t, bt, board.New(bt.Bucket, board.Options{}), r, mailbox.New(bt, mailbox.Options{Members: r}), runlog.New(bt, nil),
		map[team.AgentID]team.Member{}, map[team.AgentID]*journal.Journal{}}
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// member writes the record of a member as being in a state.
func (r *rig) member(a team.AgentID, state team.MemberState, cause string) {
	r.t.Helper()
	m := r.members[a]
	m.AgentID, m.Role, m.Backend, m.State, m.LastError = a, "coder", team.Pool, state, cause
	m.Incarnation = 1
	m, err := r.roster.Put(r.t.Context(), m)
	r.ok(err)
	r.members[a] = m
}

func (r *rig) record(a team.AgentID, rec journal.Record) journal.Record {
	r.t.Helper()
	if r.words[a] == nil {
		j, _, err := journal.Open(r.t.Context(), r.bt, a, 1, journal.Options{})
		r.ok(err)
		r.words[a] = j
	}
	rec.RunID = "run-of-" + string(a)
	rec, err := r.words[a].Append(r.t.Context(), rec)
	r.ok(err)
	return rec
}

// says records a turn with a text and calls of these tools.
func (r *rig) says(a team.AgentID, text string, tools ...string) journal.Record {
	r.t.Helper()
	m := model.Message{Role: "assistant", Content: text}
	for i, name := range tools {
		m.ToolCalls = append(m.ToolCalls, model.ToolCall{ID: fmt.Sprint("call-", i), Name: name, Arguments: "{}"})
	}
	return r.record(a, journal.Record{Kind: journal.Turn, Turn: asJSON(model.Reply{Message: m})})
}

func (r *rig) hears(a team.AgentID, tool, result string) {
	r.t.Helper()
	r.record(a, journal.Record{Kind: journal.Result, Result: &journal.ToolResult{CallID: "call-0", Name: tool, Content: result}})
}

func (r *rig) mails(from, to team.AgentID, text string) {
	r.t.Helper()
	_, _, err := r.mailbox.Send(r.t.Context(), team.Message{Type: team.MsgMessage, From: from, To: to, Content: text})
	r.ok(err)
}

func (r *rig) runs(a team.AgentID, typ team.EventType) {
	r.t.Helper()
	r.log.Emit(r.t.Context(), team.Event{AgentID: a, RoleName: "coder", Event: team.EventBody{Type: typ}})
}

// plan stores the record of a plan.
func (r *rig) plan(a team.Approval) team.Approval {
	r.t.Helper()
	a.V = team.Protocol
	data, err := codec.Encode(a, nil)
	r.ok(err)
	a.Revision, err = r.bt.Bucket.Put(r.t.Context(), subject.KeyPlan(a.ID), data, a.Revision)
	r.ok(err)
	return a
}

// day is a small piece of a team's life, and how the feed tells of it.
func (r *rig) day() (want []string) {
	r.t.Helper()
	ctx, coder := r.t.Context(), team.Holder{Agent: "coder-1", Incarnation: 1}
	r.member("coder-1", team.Created, "")
	r.member("coder-1", team.Joined, "")
	_, err := r.board.Create(ctx, "user", team.NewTask{Title: "写一个测试 🚀"}, team.NewTask{Title: "second"})
	r.ok(err)
	r.runs("coder-1", team.RunStarted)
	r.mails("user", "coder-1", "hello")
	r.record("coder-1", journal.Record{Kind: journal.Note, Text: "not for the feed"})
	task, err := r.board.Claim(ctx, "T-001", coder)
	r.ok(err)
	r.says("coder-1", "I begin.", "bash", "read_file")
	r.hears("coder-1", "bash", "hi")
	r.hears("coder-1", "read_file", "text")
	r.says("coder-1", "", "bash")
	asked := r.plan(team.Approval{ID: "9f0c", AgentID: "coder-1", Status: team.PlanPending})
	asked.Status, asked.DecidedBy = team.PlanApproved, team.Leader
	asked = r.plan(asked)
	asked.Status = team.PlanUsed
	asked = r.plan(asked)
	at := time.Now()
	asked.EndedAt = &at
	r.plan(asked)
	r.plan(team.Approval{ID: "9f0d", AgentID: "coder-1", Status: team.PlanRejected, DecidedBy: "user"})
	_, err = r.board.Release(ctx, "T-001", team.Actor{Holder: coder}, task.Epoch, team.Freed{Reason: "not now"})
	r.ok(err)
	title := "another title"
	_, _, err = r.board.Edit(ctx, "T-001", team.Actor{Holder: team.Holder{Agent: "user"}, Leads: true}, team.Edit{Title: &title})
	r.ok(err)
	r.record("coder-1", journal.Record{Kind: journal.Refused, Refusal: &journal.Refusal{Advice: "park", Reason: "key", Cause: "401: no such key"}})
	r.member("coder-1", team.WaitingModel, "401: no such key")
	r.member("coder-1", team.Joined, "")
	r.record("coder-1", journal.Record{Kind: journal.Compact, Context: json.RawMessage(`{"messages":[]}`)})
	task, err = r.board.Claim(ctx, "T-001", coder)
	r.ok(err)
	for _, to := range []team.AgentID{"coder-2", "coder-1"} { // of the same incarnation
		task, err = r.board.Assign(ctx, team.Assignment{Task: "T-001", By: "user", Take: true, Epoch: task.Epoch}, team.Holder{Agent: to, Incarnation: 1})
		r.ok(err)
	}
	task, err = r.board.Adopt(ctx, "T-001", team.Holder{Agent: "coder-1", Incarnation: 2}, false)
	r.ok(err)
	_, err = r.board.Complete(ctx, "T-001", team.Holder{Agent: "coder-1", Incarnation: 2}, task.Epoch, team.Done{Summary: "done"})
	r.ok(err)
	person := team.Actor{Holder: team.Holder{Agent: "user"}, Leads: true}
	kept, err := r.board.Reserve(ctx, "T-002", "coder-1", person)
	r.ok(err)
	r.ok(r.board.Unreserve(ctx, kept, person))
	_, err = r.board.Cancel(ctx, "T-002", team.Actor{Holder: team.Holder{Agent: "user"}, Leads: true}, "no need")
	r.ok(err)
	r.mails("coder-1", team.Leader, "it is done")
	r.runs("coder-1", team.RunFinished)
	r.member("coder-1", team.Stopped, "")
	return []string{
		"coder-1 MEMBER_CREATED", "coder-1 MEMBER_JOINED", "user TASK_CREATED", "user TASK_CREATED",
		"coder-1 RUN_STARTED", "user MAIL_SENT hello", "coder-1 TASK_CLAIMED",
		"coder-1 TEXT_MESSAGE_CHUNK I begin.", "coder-1 TOOL_CALL_CHUNK bash", "coder-1 TOOL_CALL_CHUNK read_file",
		"coder-1 TOOL_CALL_RESULT hi", "coder-1 TOOL_CALL_RESULT text", "coder-1 TOOL_CALL_CHUNK bash",
		"coder-1 APPROVAL_REQUESTED", "leader APPROVAL_APPROVED", "coder-1 APPROVAL_USED", "coder-1 APPROVAL_ENDED", "user APPROVAL_REJECTED",
		"coder-1 TASK_RELEASED", "coder-1 TASK_UPDATED", "coder-1 RETRY 401: no such key",
		"coder-1 MEMBER_PARKED 401: no such key", "coder-1 MEMBER_RESUMED", "coder-1 COMPACTION_FINISHED",
		"coder-1 TASK_CLAIMED", "coder-2 TASK_ASSIGNED", "coder-1 TASK_ASSIGNED", "coder-1 TASK_ADOPTED", "coder-1 TASK_COMPLETED",
		"coder-1 TASK_ASSIGNED", "user TASK_UPDATED", "user TASK_CANCELLED",
		"coder-1 MAIL_SENT it is done", "coder-1 RUN_FINISHED", "coder-1 MEMBER_STOPPED",
	}
}

// told is an entry in a few words.
func told(e Entry) string {
	b := e.Event.Event
	text := b.Delta + b.Content + b.Message
	if b.Type == team.ToolCallChunk {
		text = b.ToolCallName
	}
	var record struct {
		Content   string `json:"content"`
		LastError string `json:"last_error"`
	}
	if json.Unmarshal(b.Value, &record) == nil && b.Message == "" {
		text += record.Content + record.LastError
	}
	s := fmt.Sprintf("%s %s", e.AgentID, b.Type)
	if b.Name != "" {
		s += " " + b.Name
	}
	if text != "" {
		s += " " + text
	}
	return s
}

func tell(all []Entry) (out []string) {
	for _, e := range all {
		out = append(out, told(e))
	}
	return out
}

// past is the feed up to the present end.
func (r *rig) past(o Options) (all []Entry) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	r.ok(Read(ctx, r.bt, o, func(e Entry) error { all = append(all, e); return nil }))
	return all
}

// reader follows a feed.
type reader struct {
	t       testing.TB
	entries chan Entry
	done    chan error
	stop    context.CancelFunc
}

func (r *rig) follow(o Options, streams [kinds]stream) *reader {
	ctx, cancel := context.WithCancel(r.t.Context())
	o.Follow = true
	f := &reader{r.t, make(chan Entry, 10_000), make(chan error, 1), cancel}
	go func() {
		f.done <- newMerge(r.bt, o, streams, func(s Step) error { f.entries <- s.Entry; return nil }).run(ctx)
	}()
	r.t.Cleanup(cancel)
	return f
}

// take returns the next n entries.
func (f *reader) take(n int) (all []Entry) {
	f.t.Helper()
	for len(all) < n {
		select {
		case e := <-f.entries:
			all = append(all, e)
		case err := <-f.done:
			f.t.Fatalf("the feed ended with %v after %q", err, tell(all))
		case <-time.After(brokertest.Longest):
			f.t.Fatalf("no entry after %q", tell(all))
		}
	}
	return all
}

// end stops following; nothing more has come.
func (f *reader) end() {
	f.t.Helper()
	f.stop()
	if err := brokertest.Receive(f.t, "the feed ends", f.done); err != nil {
		f.t.Errorf("a feed that is stopped ends with %v", err)
	}
	if len(f.entries) > 0 {
		f.t.Errorf("then came %s", told(<-f.entries))
	}
}
