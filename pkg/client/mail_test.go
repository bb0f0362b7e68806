package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// post is a member that writes.
func (r *rig) post(t *testing.T, m team.Message) team.Message {
	t.Helper()
	m, _, err := mailbox.New(r.bt, mailbox.Options{Members: r.roster}).Send(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// asks is a question of a member to a person.
func (r *rig) asks(t *testing.T, from, to team.AgentID, text string, choices ...string) team.Message {
	t.Helper()
	return r.post(t, team.Message{Type: team.MsgMessage, From: from, To: to, Content: text, AwaitReply: true, Choices: choices})
}

func (r *rig) letter(t *testing.T, id string) client.StoredMessage {
	t.Helper()
	l, err := r.Mail().Message(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (r *rig) inbox(t *testing.T, who team.AgentID) []client.StoredMessage {
	t.Helper()
	all, err := r.Mail().Inbox(t.Context(), who)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// active sets the team a goal, so that somebody may write to it.
func (r *rig) active(t *testing.T) {
	t.Helper()
	if _, err := r.Goals().Start(t.Context(), "go", ""); err != nil {
		t.Fatal(err)
	}
}

// log is the journal of a member, as its process writes it.
func (r *rig) log(t *testing.T, m team.Member) func(journal.Record) {
	t.Helper()
	j, _, err := journal.Open(t.Context(), r.bt, m.AgentID, m.Incarnation, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return func(rec journal.Record) {
		t.Helper()
		if _, err := j.Append(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
}

func turn(t *testing.T) journal.Record {
	t.Helper()
	reply, err := json.Marshal(model.Reply{Message: model.Message{Role: "assistant", Content: "I see"}})
	if err != nil {
		t.Fatal(err)
	}
	return journal.Record{Kind: journal.Turn, Turn: reply}
}

func states(l client.StoredMessage) (all []string) {
	for _, f := range l.Deliveries {
		all = append(all, string(f.AgentID)+" "+string(f.Status))
	}
	return all
}

// A message is pending until its reader's journal has it, and processed by the next turn; the
// reader's inbox tells the same.
func TestFateOfAMessage(t *testing.T) {
	r := newRig(t)
	r.active(t)
	coder := r.join(t)
	note := r.log(t, coder)
	first := r.post(t, team.Message{Type: team.MsgMessage, From: team.Leader, To: coder.AgentID, Content: "一 🚀"})
	second := r.post(t, team.Message{Type: team.MsgMessage, From: team.Leader, To: coder.AgentID, Content: "two"})
	note(turn(t)) // of something else
	is := func(want1, want2 team.MailStatus) {
		t.Helper()
		inbox := r.inbox(t, coder.AgentID)
		if len(inbox) != 2 {
			t.Fatalf("%d messages in the inbox", len(inbox))
		}
		for i, want := range []team.MailStatus{want1, want2} {
			l := r.letter(t, []string{first.ID, second.ID}[i])
			if f := inbox[i].Deliveries[0]; l.Deliveries[0].Status != want || f.Status != want || (f.At() == nil) != (want == team.MailPending) {
				t.Errorf("message %d is %+v, in the inbox %+v, want %s", i+1, l.Deliveries[0], f, want)
			}
		}
	}
	is(team.MailPending, team.MailPending)
	seq := r.inbox(t, coder.AgentID)[0].Seq
	note(journal.Record{Kind: journal.Mail, Message: &first, InboxSeq: seq})
	is(team.MailDelivered, team.MailPending)
	note(turn(t))
	is(team.MailProcessed, team.MailPending)
	// The record of the second is gone with a compaction, which has taken it in.
	note(journal.Record{Kind: journal.Compact, Context: json.RawMessage(`{"mail":-1,"inbox_seq":` + itoa(seq+1) + `}`)})
	is(team.MailProcessed, team.MailDelivered)
	note(turn(t))
	is(team.MailProcessed, team.MailProcessed)
	f := r.inbox(t, coder.AgentID)[0].Deliveries[0]
	if !f.DeliveredAt.Before(*f.ProcessedAt) {
		t.Errorf("delivered at %v, processed at %v", f.DeliveredAt, f.ProcessedAt)
	}
	// A page is a part of the inbox, with the same fates.
	r.post(t, team.Message{Type: team.MsgBroadcast, From: team.Leader, To: team.Everyone, Content: "three"})
	for _, who := range []team.AgentID{coder.AgentID, team.Leader} {
		all := r.inbox(t, who)
		for from := range len(all) + 2 {
			for limit := 1; limit < len(all)+2; limit++ {
				page, more, err := r.Mail().InboxPage(t.Context(), who, from, limit)
				ok(t, err)
				want := all[min(from, len(all)):min(from+limit, len(all))]
				if !slices.EqualFunc(page, want, func(a, b client.StoredMessage) bool { return reflect.DeepEqual(a, b) }) || more != (from+limit < len(all)) {
					t.Errorf("%s from %d on, %d at most: %+v, more %v; want %+v", who, from, limit, page, more, want)
				}
			}
		}
	}
}

func itoa(n uint64) string { data, _ := json.Marshal(n); return string(data) }

// A record that cannot be read may be the one that contains a message: the delivery says so, and later records still count.
func TestFateBehindAnUnreadableRecord(t *testing.T) {
	r := newRig(t)
	r.active(t)
	coder := r.join(t)
	note := r.log(t, coder)
	m := r.post(t, team.Message{Type: team.MsgMessage, From: team.Leader, To: coder.AgentID, Content: "one"})
	at := subject.Log(r.bt.ID, coder.AgentID)
	last, err := r.bt.Logs.Last(t.Context(), at)
	ok(t, err)
	_, err = r.bt.Logs.Append(t.Context(), at, []byte("{"), last.Seq)
	ok(t, err)
	is := func(state team.MailStatus, why string) {
		t.Helper()
		if f := r.letter(t, m.ID).Deliveries[0]; f.Status != state || (why == "") != (f.Reason == "") || !strings.Contains(f.Reason, why) {
			t.Errorf("it is %+v, want %s, since %q", f, state, why)
		}
	}
	is(team.MailPending, "cannot be read")
	note(journal.Record{Kind: journal.Mail, Message: &m, InboxSeq: r.letter(t, m.ID).Seq})
	is(team.MailDelivered, "cannot be read")
	note(turn(t))
	is(team.MailProcessed, "")
}

// A broadcast has a fate with each who was a member then, and with nobody who came later or
// had left.
func TestFatesOfABroadcast(t *testing.T) {
	r := newRig(t)
	r.active(t)
	here, left, leaves := r.join(t), r.join(t), r.join(t)
	ok(t, r.roster.Leave(t.Context(), left.AgentID, 1, ""))
	m, to, err := r.Mail().Send(t.Context(), client.NewMail{To: team.Everyone, Text: "the names stay"})
	ok(t, err)
	ok(t, r.roster.Leave(t.Context(), leaves.AgentID, 1, ""))
	later := r.join(t)
	note := r.log(t, here)
	note(journal.Record{Kind: journal.Mail, Message: &m, InboxSeq: r.letter(t, m.ID).Seq})
	want := []string{"leader pending", string(here.AgentID) + " delivered", string(leaves.AgentID) + " pending"}
	if got := states(r.letter(t, m.ID)); !slices.Equal(got, want) || len(to) != len(want) {
		t.Errorf("the fates are %q, want %q; sent to %q; %s came later", got, want, to, later.AgentID)
	}
}

// What a member was spawned with is the first of its mail, with its fate, though no stream
// has it.
func TestPromptInInbox(t *testing.T) {
	r := newRig(t)
	r.active(t)
	m, err := r.roster.Create(t.Context(), team.Member{Role: "coder", Backend: team.Pool, Prompt: "Be brief.\nMind the lexer.", SpawnedBy: team.UserAgent}, roster.Limit{Team: 10})
	ok(t, err)
	m.State = team.Joined
	m, err = r.roster.Put(t.Context(), m)
	ok(t, err)
	r.post(t, team.Message{Type: team.MsgMessage, From: team.Leader, To: m.AgentID, Content: "x"})
	first := func(state team.MailStatus) {
		t.Helper()
		page, more, err := r.Mail().InboxPage(t.Context(), m.AgentID, 0, 1)
		ok(t, err)
		if l := page[0]; !more || l.Content != m.Prompt || l.From != team.UserAgent || l.Type != team.MsgUser || l.Summary != "Be brief." || l.Deliveries[0].Status != state {
			t.Errorf("the first of the mail is %+v (more: %t), want %s", page, more, state)
		}
		if page, _, err = r.Mail().InboxPage(t.Context(), m.AgentID, 1, 1); err != nil || len(page) != 1 || page[0].Content != "x" {
			t.Errorf("the second is %+v, %v", page, err)
		}
		if l, err := r.Mail().Message(t.Context(), "prompt-1"); err != nil || l.Content != m.Prompt || len(l.Deliveries) != 1 || l.Deliveries[0].AgentID != m.AgentID || l.Deliveries[0].Status != state {
			t.Errorf("by its id it is %+v, %v, want %s", l, err, state)
		}
	}
	first(team.MailPending)
	note := r.log(t, m)
	note(journal.Record{Kind: journal.Start})
	note(journal.Record{Kind: journal.Turn})
	first(team.MailProcessed)

	_, err = r.roster.Create(t.Context(), team.Member{Role: "coder", Backend: team.Pool, Prompt: "Be quick."}, roster.Limit{Team: 10})
	ok(t, err)
	if _, err = r.Mail().Message(t.Context(), "prompt-1"); team.CodeOf(err) != team.InvalidArgument || !strings.Contains(err.Error(), "coder-1, coder-2") {
		t.Errorf("by an id that two messages have: %v", err)
	}
	if _, err = r.Mail().Message(t.Context(), "prompt-9"); team.CodeOf(err) != team.NotFound {
		t.Errorf("by an id that none has: %v", err)
	}
}

// A refusal says why; what nobody could read is dead.
func TestFatesOfTheUnwanted(t *testing.T) {
	r := newRig(t)
	r.active(t)
	coder := r.join(t)
	no, yes := false, true
	request := r.post(t, team.Message{Type: team.MsgShutdownRequest, From: team.Leader, To: coder.AgentID, RequestID: "r1"})
	other := r.post(t, team.Message{Type: team.MsgShutdownRequest, From: team.Leader, To: coder.AgentID, RequestID: "r2"})
	r.post(t, team.Message{Type: team.MsgShutdownResponse, From: coder.AgentID, To: team.Leader, RequestID: "r1", Approve: &no, Content: "the lexer is half done"})
	r.post(t, team.Message{Type: team.MsgShutdownResponse, From: coder.AgentID, To: team.Leader, RequestID: "r2", Approve: &yes})
	if f := r.letter(t, request.ID).Deliveries[0]; f.Status != team.MailRefused || f.Reason != "the lexer is half done" || f.RefusedAt == nil {
		t.Errorf("the refused request is %+v", f)
	}
	if f := r.letter(t, other.ID).Deliveries[0]; f.Status != team.MailProcessed || f.DeliveredAt == nil {
		t.Errorf("the approved request, whose receiver has left without another turn, is %+v", f)
	}
	lost := r.post(t, team.Message{Type: team.MsgMessage, From: team.Leader, To: coder.AgentID, Content: "x"})
	data, err := json.Marshal(lost)
	ok(t, err)
	_, err = r.bt.Messages.Publish(t.Context(), subject.Dead("t", coder.AgentID), "dead", data)
	ok(t, err)
	// Its reader goes on: a record of later mail stands for all that came before.
	later := r.post(t, team.Message{Type: team.MsgMessage, From: team.Leader, To: coder.AgentID, Content: "y"})
	note := r.log(t, coder)
	note(journal.Record{Kind: journal.Mail, Message: &later, InboxSeq: r.letter(t, later.ID).Seq})
	if f := r.letter(t, lost.ID).Deliveries[0]; f.Status != team.MailDead || f.At() == nil || f.DeliveredAt != nil {
		t.Errorf("what was set aside is %+v", f)
	}
}

// Ids without a time are found, too; unknown ones are not, and a reply to one sends nothing.
func TestMessageByID(t *testing.T) {
	r := newRig(t)
	r.active(t)
	m := r.post(t, team.Message{ID: "my own", Type: team.MsgMessage, From: "coder-9", To: team.Leader, Content: "x"})
	if l := r.letter(t, m.ID); l.Content != "x" || l.From != "coder-9" {
		t.Errorf("found %+v", l)
	}
	long := strings.Repeat("任务 ", 20_000)
	if l := r.letter(t, r.post(t, team.Message{Type: team.MsgMessage, From: "coder-9", To: team.Leader, Content: long}).ID); l.Content != long || l.Stored == "" {
		t.Errorf("a text of %d bytes is told with %d, stored at %q", len(long), len(l.Content), l.Stored)
	}
	last, err := r.bt.Messages.LastSeq(t.Context())
	ok(t, err)
	for _, id := range []string{"", "nothing", "01M7ZZZZZZZZZZZZZZZZZZZZZZ", "own"} {
		_, err := r.Mail().Message(t.Context(), id)
		wantCode(t, "message "+id, err, team.NotFound)
		if id != "" {
			_, _, err = r.Mail().Send(t.Context(), client.NewMail{To: team.Leader, Text: "y", ReplyTo: id})
			wantCode(t, "reply to "+id, err, team.NotFound)
		}
	}
	if now, err := r.bt.Messages.LastSeq(t.Context()); now != last || err != nil {
		t.Errorf("%d messages were stored, %v", now-last, err)
	}
	_, err = r.Mail().Inbox(t.Context(), "nobody")
	wantCode(t, "inbox of nobody", err, team.NotFound)
}

// A question is open until it is answered; mail to its sender that is no answer to another
// answers it, too.
func TestAnswer(t *testing.T) {
	r := newRig(t)
	r.active(t)
	a, b := r.join(t).AgentID, r.join(t).AgentID
	_, _, err := r.Mail().Answer(t.Context(), "", "", "yes")
	wantCode(t, "an answer to nobody", err, team.NotFound)
	word := r.post(t, team.Message{Type: team.MsgMessage, From: a, To: team.UserAgent, Content: "fyi"})
	q := r.asks(t, a, team.UserAgent, "which names?", "keep", "rename")
	_, _, err = r.Mail().Answer(t.Context(), "", "", "maybe")
	wantCode(t, "none of the choices", err, team.InvalidArgument)
	if !strings.Contains(team.HintOf(err), "1 keep, 2 rename") {
		t.Errorf("the choices are not named: %v (%s)", err, team.HintOf(err))
	}
	r.asks(t, b, team.UserAgent, "why?")
	_, _, err = r.Mail().Answer(t.Context(), "", "", "2")
	wantCode(t, "one of two", err, team.InvalidArgument)
	if !strings.Contains(err.Error(), string(a)+": which names?; "+string(b)+": why?") {
		t.Errorf("the open questions are not named: %v", err)
	}
	_, answer, err := r.Mail().Answer(t.Context(), "", q.ID, "2")
	ok(t, err)
	if answer.Content != "rename" || answer.To != a || answer.From != team.UserAgent || answer.InReplyTo != q.ID || answer.Type != team.MsgUser {
		t.Errorf("the answer is %+v", answer)
	}
	_, _, err = r.Mail().Answer(t.Context(), "", q.ID, "1")
	wantCode(t, "a second answer", err, team.Conflict)
	_, _, err = r.Mail().Answer(t.Context(), "", word.ID, "thanks")
	wantCode(t, "an answer to what is no question", err, team.InvalidArgument)
	_, _, err = r.Mail().Answer(t.Context(), "", answer.ID, "thanks")
	wantCode(t, "an answer to what is for somebody else", err, team.PermissionDenied)
	_, _, err = r.Mail().Answer(t.Context(), "", "nothing", "x")
	wantCode(t, "an answer to nothing", err, team.NotFound)
	open := func(l client.StoredMessage) bool { return l.Open }
	if i := slices.IndexFunc(r.inbox(t, team.UserAgent), open); i != 2 {
		t.Errorf("the open question is at %d, want the last", i)
	}
	_, _, err = r.Mail().Send(t.Context(), client.NewMail{To: b, Text: "because"})
	ok(t, err)
	if slices.ContainsFunc(r.inbox(t, team.UserAgent), open) {
		t.Error("a question is open after its sender was told something")
	}
	ok(t, r.StopTeam(t.Context(), 0))
	third := r.asks(t, team.Leader, team.UserAgent, "still there?")
	_, _, err = r.Mail().Answer(t.Context(), "", third.ID, "no")
	wantCode(t, "an answer to a stopped team", err, team.InvalidState)
}

// A question for a task stays open when its sender loses that, under its id, and its answer goes to the agent that holds
// the task then; it is answered by the name of either, or of none. It is void once the task has ended.
func TestQuestionOfALostTask(t *testing.T) {
	r := newRig(t)
	r.active(t)
	a, b := r.join(t).AgentID, r.join(t).AgentID
	id := r.add(t, 1)[0].ID
	asks := func(who team.AgentID, text string) team.Message {
		t.Helper()
		return r.post(t, team.Message{Type: team.MsgMessage, From: who, To: team.UserAgent, Content: text, AwaitReply: true, TaskID: id})
	}
	open := func(want ...string) {
		t.Helper()
		var got []string
		for _, l := range r.inbox(t, team.UserAgent) {
			if l.Open {
				got = append(got, strings.TrimSuffix(fmt.Sprintf("%s%s: %s > %s", l.From, l.For(), l.Content, l.AnswerTo), " > "))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("open are %q, want %q", got, want)
		}
	}
	holds := func(who team.AgentID) {
		t.Helper()
		_, err := r.board.Claim(t.Context(), id, team.Holder{Agent: who, Incarnation: 1, Role: "coder"})
		ok(t, err)
	}
	frees := func() {
		t.Helper()
		_, err := r.board.Release(t.Context(), id, team.Actor{Holder: team.Holder{Agent: team.UserAgent}, Leads: true}, 0, team.Freed{Reason: "its process ends"})
		ok(t, err)
	}
	answers := func(which, text string, q team.Message, to team.AgentID) {
		t.Helper()
		got, answer, err := r.Mail().Answer(t.Context(), "", which, text)
		ok(t, err)
		if got.ID != q.ID || answer.To != to || answer.InReplyTo != q.ID {
			t.Errorf("%s was answered by %+v", got.ID, answer)
		}
	}
	holds(a)
	q := asks(a, "red?")
	open(string(a) + " for T-001: red?")
	frees()
	open(string(a) + " for T-001: red?")
	_, _, err := r.Mail().Send(t.Context(), client.NewMail{To: a, Text: "take T-002"}) // which no member has asked for
	ok(t, err)
	open(string(a) + " for T-001: red?")
	answers(string(a), "yes", q, a) // while no member has the task
	open()
	holds(a)
	blue := asks(a, "blue?")
	frees()
	holds(b)
	open(string(a) + " for T-001: blue? > " + string(b))
	green := asks(b, "green?")
	_, _, err = r.Mail().Answer(t.Context(), "", string(b), "yes")
	wantCode(t, "one of two for which it waits", err, team.InvalidArgument)
	if !strings.Contains(err.Error(), green.ID) || !strings.Contains(team.HintOf(err), "teamctl answer ID TEXT") {
		t.Errorf("%v (%s)", err, team.HintOf(err))
	}
	answers(green.ID, "no", green, b)
	answers(string(b), "yes", blue, b)
	_, _, err = r.Mail().Answer(t.Context(), "", blue.ID, "no")
	wantCode(t, "a second answer", err, team.Conflict)
	open()
	last := asks(b, "grey?")
	_, _, err = r.Mail().Send(t.Context(), client.NewMail{To: b, Text: "as you like"})
	ok(t, err)
	open()
	last = asks(b, "and now?")
	_, err = r.board.Complete(t.Context(), id, team.Holder{Agent: b, Incarnation: 1}, 0, team.Done{Summary: "done"})
	ok(t, err)
	open()
	_, _, err = r.Mail().Answer(t.Context(), "", last.ID, "yes")
	wantCode(t, "an answer that is of no use any more", err, team.Conflict)
	if !strings.Contains(err.Error(), "T-001 has ended") {
		t.Error(err)
	}
}

// The names of their senders distinguish questions, and their ids those of one sender.
func TestQuestionsByName(t *testing.T) {
	r := newRig(t)
	r.active(t)
	b := r.join(t).AgentID
	id := r.add(t, 1)[0].ID
	_, err := r.board.Claim(t.Context(), id, team.Holder{Agent: b, Incarnation: 1, Role: "coder"})
	ok(t, err)
	other := r.post(t, team.Message{Type: team.MsgMessage, From: b, To: team.UserAgent, Content: "green now?", AwaitReply: true, TaskID: id})
	lead := r.asks(t, team.Leader, team.UserAgent, "and me?")
	_, _, err = r.Mail().Answer(t.Context(), "", "", "yes")
	wantCode(t, "one of two", err, team.InvalidArgument)
	if !strings.Contains(err.Error(), string(b)+" for T-001: green now?") || !strings.Contains(team.HintOf(err), "teamctl answer NAME TEXT") {
		t.Errorf("%v (%s)", err, team.HintOf(err))
	}
	_, _, err = r.Mail().Answer(t.Context(), "", "", string(b))
	wantCode(t, "a name and no text", err, team.InvalidArgument)
	got, answer, err := r.Mail().Answer(t.Context(), "", string(b), "yes")
	ok(t, err)
	if got.ID != other.ID || answer.To != b || answer.InReplyTo != other.ID {
		t.Errorf("%s was answered by %+v", got.ID, answer)
	}
	second := r.asks(t, team.Leader, team.UserAgent, "and then?")
	_, _, err = r.Mail().Answer(t.Context(), "", "leader", "yes")
	wantCode(t, "one of two of the same member", err, team.InvalidArgument)
	if !strings.Contains(err.Error(), lead.ID) || !strings.Contains(err.Error(), second.ID) {
		t.Errorf("they are not told apart: %v", err)
	}
	s, err := r.client.Status(t.Context())
	if i := slices.IndexFunc(s.Teams, func(ts client.TeamStatus) bool { return ts.ID == r.ID() }); i < 0 || len(s.Teams[i].Questions) != 2 || s.Teams[i].Unread != 2 {
		t.Errorf("%v: the status tells of %+v", err, s.Teams)
	}
}

// However many answer at once, one of the answers is stored, and only who gave it is told so.
func TestAnswersRace(t *testing.T) {
	r := newRig(t)
	r.active(t)
	q := r.asks(t, r.join(t).AgentID, team.UserAgent, "who?")
	const n = 8
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { _, _, errs[i] = r.Mail().Answer(t.Context(), "", q.ID, "me, "+itoa(uint64(i))) })
	}
	wg.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won >= 0:
			t.Errorf("%d and %d have both answered", won, i)
		case err == nil:
			won = i
		case !errors.Is(err, team.Conflict):
			t.Error(err)
		}
	}
	l := r.letter(t, "answer-"+q.ID)
	if won < 0 || l.Content != "me, "+itoa(uint64(won)) {
		t.Errorf("%d was told that it answered, stored is %q", won, l.Content)
	}
}

// A seat writes and answers in its own name; nobody writes in an agent's.
func TestSeatWrites(t *testing.T) {
	r := newRig(t)
	r.active(t)
	coder := r.join(t)
	r.add(t, 1)
	r.claim(t, "T-001", "alice")
	q := r.asks(t, coder.AgentID, "alice", "done?")
	_, _, err := r.Mail().Answer(t.Context(), "", q.ID, "yes")
	wantCode(t, "answering for a seat without naming it", err, team.PermissionDenied)
	_, answer, err := r.Mail().Answer(t.Context(), "alice", "", "yes")
	ok(t, err)
	if answer.From != "alice" || answer.Type != team.MsgMessage {
		t.Errorf("the answer is %+v", answer)
	}
	m, _, err := r.Mail().Send(t.Context(), client.NewMail{As: "alice", To: team.Everyone, Text: "look"})
	ok(t, err)
	if l := r.letter(t, m.ID); l.From != "alice" || l.Type != team.MsgBroadcast {
		t.Errorf("the broadcast is %+v", l)
	}
	for who, want := range map[team.AgentID]team.Code{coder.AgentID: team.PermissionDenied, "bob": team.NotFound} {
		_, _, err := r.Mail().Send(t.Context(), client.NewMail{As: who, To: team.Leader, Text: "x"})
		wantCode(t, "as "+string(who), err, want)
		_, _, err = r.Mail().Answer(t.Context(), who, "", "x")
		wantCode(t, "an answer as "+string(who), err, want)
	}
	_, err = r.Members().Stop(t.Context(), "alice", client.StopOptions{})
	ok(t, err)
	_, _, err = r.Mail().Send(t.Context(), client.NewMail{As: "alice", To: team.Leader, Text: "x"})
	wantCode(t, "as a seat that was given up", err, team.InvalidState)
	if got := states(r.inbox(t, "alice")[0]); got[0] != "alice processed" {
		t.Errorf("the answered question is %q", got)
	}
}

// Who has left asks nothing any more, and a follower gets what comes.
func TestFollowInbox(t *testing.T) {
	r := newRig(t)
	r.active(t)
	coder := r.join(t)
	r.asks(t, coder.AgentID, team.UserAgent, "one?")
	before := r.inbox(t, team.UserAgent)
	if !before[0].Open {
		t.Errorf("the question is %+v", before[0])
	}
	ok(t, r.roster.Leave(t.Context(), coder.AgentID, 1, ""))
	if r.inbox(t, team.UserAgent)[0].Open {
		t.Error("the question of one who has left is open")
	}
	r.asks(t, team.Leader, team.UserAgent, "two?")
	enough := errors.New("enough")
	err := r.Mail().FollowInbox(t.Context(), team.UserAgent, before[0].Seq, func(l client.StoredMessage) error {
		if l.Content != "two?" || !l.Open || l.Deliveries[0].Status != team.MailDelivered || time.Since(l.StoredAt) > time.Minute {
			t.Errorf("it is told %+v", l)
		}
		return enough
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

// A follower gets only what is for the member: not what was said to all before it joined. Of
// a seat it tells what it tells of the person before the team.
func TestFollowInboxOf(t *testing.T) {
	r := newRig(t)
	r.active(t)
	coder := r.join(t)
	r.post(t, team.Message{Type: team.MsgBroadcast, From: coder.AgentID, To: team.Everyone, Content: "before"})
	late, err := r.roster.Create(t.Context(), team.Member{AgentID: "late", Role: "coder", Backend: team.Pool}, roster.Limit{Team: 10})
	ok(t, err)
	r.post(t, team.Message{Type: team.MsgMessage, From: team.Leader, To: late.AgentID, Content: "for you"})
	r.add(t, 1)
	r.claim(t, "T-001", "alice")
	r.asks(t, coder.AgentID, "alice", "done?")
	for who, want := range map[team.AgentID]client.StoredMessage{
		late.AgentID: {Message: team.Message{Content: "for you"}, Deliveries: []client.Delivery{{Status: team.MailPending}}},
		"alice":      {Message: team.Message{Content: "done?"}, Deliveries: []client.Delivery{{Status: team.MailDelivered}}, Open: true},
	} {
		enough := errors.New("enough")
		err := r.Mail().FollowInbox(t.Context(), who, 0, func(l client.StoredMessage) error {
			if who == "alice" && l.Content == "before" { // a seat may read what was said before it was made
				return nil
			}
			if l.Content != want.Content || l.Open != want.Open || l.Deliveries[0].Status != want.Deliveries[0].Status {
				t.Errorf("of %s it is told %+v", who, l)
			}
			return enough
		})
		if !errors.Is(err, enough) {
			t.Error(err)
		}
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
