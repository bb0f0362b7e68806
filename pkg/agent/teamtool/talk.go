package teamtool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

type sendArgs struct {
	To         string `json:"to" jsonschema:"a member's name, user for the person, or * for everybody (wakes all: use it rarely)"`
	Content    string `json:"content"`
	Summary    string `json:"summary,omitempty" jsonschema:"a few words for lists"`
	AwaitReply bool   `json:"await_reply,omitempty" jsonschema:"true if you cannot go on without the answer; then end your turn. You keep your task. Waits 10 minutes, for a person as long as needed"`
	InReplyTo  string `json:"in_reply_to,omitempty" jsonschema:"id of the mail"`
	Urgent     bool   `json:"urgent,omitempty" jsonschema:"interrupts the receiver now; only to stop or correct work"`

	Type      team.MessageType `json:"type,omitempty"`
	RequestID string           `json:"request_id,omitempty" jsonschema:"of the request that this answers"`
	Approve   *bool            `json:"approve,omitempty" jsonschema:"the answer to it"`
}

type broadcastArgs struct {
	Content string `json:"content"`
	Summary string `json:"summary,omitempty" jsonschema:"a few words for lists"`
}

type askArgs struct {
	Question string   `json:"question"`
	Choices  []string `json:"choices,omitempty" jsonschema:"2 to 10 short answers to choose from"`
}

// answerWithin is how long an agent may wait for an answer while it holds a task.
const answerWithin = 10 * time.Minute

// sendResult is the result of a tool that sends a message.
type sendResult struct {
	MessageID   string         `json:"message_id"`
	DeliveredTo []team.AgentID `json:"delivered_to"`
	RequestID   string         `json:"request_id,omitempty"` // of a request
	Note        string         `json:"note,omitempty"`       // further facts for the sender
}

// teammate is an entry of list_teammates.
type teammate struct {
	AgentID team.AgentID     `json:"agent_id"`
	Role    string           `json:"role"`
	State   team.MemberState `json:"state"`
	Task    team.TaskID      `json:"task,omitempty"`
	Context int              `json:"context_percent,omitempty"` // how full its model's window is
	You     bool             `json:"you,omitempty"`
}

func (t tools) talkTools() []tool.Tool {
	return []tool.Tool{
		tool.New("send_message", "Send a message: a fact, a question or a correction that somebody needs now.", t.send, append(t.sendOptions(), tool.Alias("message"), tool.Traits{Talk: true, Silent: true, Ungated: true})...),
		tool.New("broadcast", "Send a message to everybody. It wakes all of them: use it rarely.", t.broadcast, tool.Traits{Talk: true, Silent: true, Ungated: true}),
		tool.New("ask_user", "Ask the person what only a person can decide, then end your turn. You keep your task and continue when the answer comes, however long that takes.", t.askUser, tool.Traits{Talk: true, Silent: true, Ungated: true}),
		tool.New("read_mail", "Read mail that was shortened or only counted. No arguments: a list; id or number: that one whole.", t.readMail, tool.Traits{Talk: true, ReadOnly: true}),
		tool.New("list_teammates", "List the members: name, role, state, and the task that each works on.", t.listTeammates, tool.Alias("TeamStatus"), tool.Traits{Talk: true, ReadOnly: true, Terse: true}),
	}
}

// sendOptions describe the message types that the member may send.
func (t tools) sendOptions() []tool.Option {
	if t.leads() {
		return []tool.Option{tool.Hidden("request_id", "approve"),
			tool.Enum("type", "message", "shutdown_request"), tool.Describe("type", "default: message. shutdown_request asks a teammate to leave, for the reason in content; it may refuse")}
	}
	return []tool.Option{tool.Hidden("urgent"), tool.Enum("type", "message", "shutdown_response"), tool.Describe("type", "default: message. shutdown_response answers a shutdown_request, with your reason in content")}
}

// send implements send_message. Errors: PermissionDenied for a type that the member may not send;
// NotFound for an unknown recipient or request; Conflict for an answered request; InvalidState for
// awaiting a stopped member's answer; those of post.
func (t tools) send(ctx context.Context, in sendArgs) (tool.Output, error) {
	m, err := t.compose(in)
	if err != nil {
		return tool.Output{}, err
	}
	switch m.Type {
	case team.MsgShutdownRequest:
		return t.askToLeave(ctx, m)
	case team.MsgShutdownResponse:
		return t.decide(m)
	case team.MsgPlanResponse:
		return t.answerPlan(ctx, m)
	}
	to, err := t.reader(ctx, m.To)
	if err != nil {
		return tool.Output{}, err
	}
	if m.InReplyTo, err = t.answered(ctx, m.InReplyTo); err != nil {
		return tool.Output{}, err
	}
	note := ""
	if to.State == team.Stopped {
		note = string(m.To) + " has stopped: it reads this only if it comes back"
	}
	if note != "" && m.AwaitReply {
		return tool.Output{}, team.Errorf(team.InvalidState, "%s has stopped and would not answer", m.To).
			WithHint("ask somebody else; without await_reply the message is kept until it comes back")
	}
	var until time.Time
	if to.Backend != team.Person {
		until = time.Now().Add(answerWithin)
	}
	return t.post(ctx, m, until, note)
}

// compose returns the message for the arguments. Errors: PermissionDenied for a type that the
// member may not send; InvalidArgument.
func (t tools) compose(in sendArgs) (team.Message, error) {
	m := team.Message{Type: cmp.Or(in.Type, team.MsgMessage), To: team.AgentID(in.To), Content: in.Content, Summary: in.Summary,
		InReplyTo: in.InReplyTo, RequestID: in.RequestID, Approve: in.Approve, AwaitReply: in.AwaitReply, Urgent: in.Urgent}
	sender := team.FromTeammate
	if t.leads() {
		sender = team.FromLeader
	}
	if err := sender.MaySend(m.Type); err != nil {
		return m, err
	}
	if m.Type == team.MsgBroadcast { // whichever member it names: other descriptions of agent teams name one, which is ignored
		m.To = team.Everyone
	}
	if m.To != team.Everyone && m.To != team.UserAgent {
		var err error
		if m.To, err = team.ParseAgentID(in.To); err != nil {
			return m, err
		}
	}
	if m.To == team.Everyone && m.Type == team.MsgMessage {
		m.Type = team.MsgBroadcast
	}
	switch {
	case m.To == team.Everyone && m.Type != team.MsgBroadcast:
		return m, team.Errorf(team.InvalidArgument, "a %s goes to one member", m.Type).WithHint("name one")
	case m.AwaitReply && m.Type == team.MsgBroadcast:
		return m, team.Errorf(team.InvalidArgument, "await_reply needs one member to wait for").WithHint("ask one by name")
	case m.AwaitReply && m.Type != team.MsgMessage:
		return m, team.Errorf(team.InvalidArgument, "await_reply is for messages, not for a %s", m.Type).WithHint("an answer to a request comes as mail")
	}
	return m, nil
}

// askToLeave sends a request to shut down. It does not wait for the answer.
func (t tools) askToLeave(ctx context.Context, m team.Message) (tool.Output, error) {
	if m.RequestID != "" {
		return tool.Output{}, team.Errorf(team.InvalidArgument, "a new %s gets its request_id", m.Type).WithHint("leave request_id out")
	}
	switch to, err := t.reader(ctx, m.To); {
	case err != nil:
		return tool.Output{}, err
	case to.Backend == team.Person:
		return tool.Output{}, team.Errorf(team.InvalidArgument, "%s is a person and is not shut down", m.To)
	case to.State == team.Stopped:
		return tool.Output{}, team.Errorf(team.InvalidState, "%s has stopped already", m.To)
	}
	m.RequestID = ulid.Make().String()
	return t.post(ctx, m, time.Time{}, "")
}

// decided is the result of a shutdown_response. The agent carries it out once it is stored: it
// notifies the requester, and leaves if it approved.
type decided struct {
	RequestID string `json:"request_id"`
	Approve   bool   `json:"approve"`
}

// decide answers a request to shut down. Its sender is notified, whatever m.To is.
func (t tools) decide(m team.Message) (tool.Output, error) {
	if err := m.Validate(); err != nil {
		return tool.Output{}, err
	}
	if strings.TrimSpace(m.Content) == "" && !*m.Approve {
		return tool.Output{}, team.Errorf(team.InvalidArgument, "a refusal needs its reason").WithHint("give it as content")
	}
	if err := t.Asked(m.RequestID); err != nil {
		return tool.Output{}, err
	}
	return tool.Output{Value: decided{m.RequestID, *m.Approve},
		Effects: tool.Effects{Verdict: &team.Verdict{RequestID: m.RequestID, Approve: *m.Approve, Reason: m.Content}}}, nil
}

// reader returns the member to which a message goes; the user is a person, too. The mailbox refuses
// unknown names.
func (t tools) reader(ctx context.Context, to team.AgentID) (team.Member, error) {
	switch to {
	case team.UserAgent:
		return team.Member{AgentID: to, Backend: team.Person}, nil
	case team.Everyone:
		return team.Member{}, nil
	}
	m, err := t.Roster.Get(ctx, to)
	if errors.Is(err, team.NotFound) {
		return team.Member{}, nil
	}
	return m, err
}

func (t tools) askUser(ctx context.Context, in askArgs) (tool.Output, error) {
	return t.post(ctx, team.Message{Type: team.MsgMessage, To: team.UserAgent, Content: in.Question, Choices: in.Choices, AwaitReply: true}, time.Time{}, "")
}

func (t tools) broadcast(ctx context.Context, in broadcastArgs) (tool.Output, error) {
	return t.post(ctx, team.Message{Type: team.MsgBroadcast, To: team.Everyone, Content: in.Content, Summary: in.Summary}, time.Time{}, "")
}

// post sends m. If it awaits the answer, the wait ends at until; zero: there is no limit, since a
// person answers. A non-empty note is added to the result. Errors: those of mailbox.Send.
func (t tools) post(ctx context.Context, m team.Message, until time.Time, note string) (tool.Output, error) {
	m.From = t.Self.AgentID
	if m.AwaitReply && !t.leads() { // the leader waits without a task, too
		if held, ok := t.Slot.Task(); ok {
			m.TaskID = held.ID
		}
	}
	toModels := m.Type == team.MsgBroadcast || m.Type == team.MsgMessage && !until.IsZero()
	if toModels && t.Exchange != nil {
		e, err := t.Exchange(ctx, m.To)
		if err != nil {
			return tool.Output{}, err
		}
		m.Exchange = &e
	}
	m, to, err := t.Mailbox.Send(ctx, m)
	if err != nil {
		return tool.Output{}, err
	}
	var notes []string
	if m.Stored != "" {
		notes = append(notes, "the text was too long for a message: its head and tail were sent, and where the whole is: "+m.Stored)
	}
	if note != "" {
		notes = append(notes, note)
	}
	var out tool.Output
	if m.Exchange != nil {
		out.Effects.Sent = &team.Sent{To: m.To, Exchange: *m.Exchange, Question: m.AwaitReply}
		if m.Exchange.N >= team.HeldFrom && !m.AwaitReply {
			notes = append(notes, fmt.Sprintf("this is message %d in a row without news: it wakes no idle member, who reads it with the next news. "+
				"To wake a member, give it a task, or ask it with await_reply", m.Exchange.N))
		}
	}
	out.Value = sendResult{MessageID: m.ID, DeliveredTo: to, RequestID: m.RequestID, Note: strings.Join(notes, "; ")}
	if m.AwaitReply {
		out.Effects.Await = &team.Await{MessageID: m.ID, From: m.To, About: m.Summary, Until: until}
	}
	return out, nil
}

func (t tools) listTeammates(ctx context.Context, _ struct{}) (tool.Output, error) {
	list, err := t.members(ctx)
	return tool.Output{Value: list}, err
}

// members returns the members that have not left.
func (t tools) members(ctx context.Context) ([]teammate, error) {
	members, err := t.Roster.List(ctx)
	if err != nil {
		return nil, err
	}
	record, err := t.Team(ctx)
	if err != nil {
		return nil, err
	}
	members = slices.DeleteFunc(members, func(m team.Member) bool { return m.State == team.Stopped })
	heard := t.Heard(ctx, members)
	list := []teammate{}
	for _, m := range members {
		h := heard[m.AgentID]
		list = append(list, teammate{AgentID: m.AgentID, Role: m.Role, State: h.State(m, record, time.Now()),
			Task: h.Task, Context: h.Fill(), You: m.AgentID == t.Self.AgentID})
	}
	return list, nil
}
