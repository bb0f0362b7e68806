package teamtool

import (
	"context"
	"slices"
	"time"

	"agentteam/pkg/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

type sendArgs struct {
	To         string `json:"to" jsonschema:"the member's name, or leader"`
	Content    string `json:"content" jsonschema:"the message"`
	Summary    string `json:"summary,omitempty" jsonschema:"a few words that stand for it in lists"`
	AwaitReply bool   `json:"await_reply,omitempty" jsonschema:"you need the answer to go on: keep your task while you are idle, 10 minutes at most"`
	InReplyTo  string `json:"in_reply_to,omitempty" jsonschema:"id of the message that this one answers"`
}

type broadcastArgs struct {
	Content string `json:"content" jsonschema:"the message"`
	Summary string `json:"summary,omitempty" jsonschema:"a few words that stand for it in lists"`
}

// answerWithin is how long an agent may wait for an answer with a task in hand.
const answerWithin = 10 * time.Minute

// sent is the result of send_message and broadcast.
type sent struct {
	MessageID   string         `json:"message_id"`
	DeliveredTo []team.AgentID `json:"delivered_to"`

	await *journal.Await
}

// Awaits tells the agent that it waits for an answer.
func (s sent) Awaits() *journal.Await { return s.await }

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
		tool.New("send_message", "Send a message to one member of the team. It is kept until that member reads it.", t.send, tool.Alias("SendMessage", "message")),
		tool.New("broadcast", "Send a message to everybody in the team. It wakes all of them: use it rarely.", t.broadcast),
		tool.New("list_teammates", "List the members of the team: name, role, state, and the task each works on.", t.listTeammates, tool.Alias("TeamStatus")),
	}
}

func (t tools) send(ctx context.Context, in sendArgs) (any, error) {
	if in.To == string(team.Everyone) {
		return nil, team.Errorf(team.InvalidArgument, "send_message goes to one member").WithHint("use broadcast to reach everybody")
	}
	name, err := team.ParseAgentID(in.To)
	if err != nil {
		return nil, err
	}
	m, to, err := t.Mailbox.Send(ctx, team.Message{
		Type: team.MsgMessage, From: t.Self.AgentID, To: name, Content: in.Content, Summary: in.Summary, InReplyTo: in.InReplyTo,
	})
	if err != nil {
		return nil, err
	}
	s := sent{MessageID: m.ID, DeliveredTo: to}
	if in.AwaitReply {
		s.await = &journal.Await{MessageID: m.ID, From: m.To, Until: time.Now().Add(answerWithin)}
	}
	return s, nil
}

func (t tools) broadcast(ctx context.Context, in broadcastArgs) (any, error) {
	m, to, err := t.Mailbox.Send(ctx, team.Message{
		Type: team.MsgBroadcast, From: t.Self.AgentID, To: team.Everyone, Content: in.Content, Summary: in.Summary,
	})
	if err != nil {
		return nil, err
	}
	return sent{MessageID: m.ID, DeliveredTo: to}, nil
}

func (t tools) listTeammates(ctx context.Context, _ struct{}) (any, error) {
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
		list = append(list, teammate{AgentID: m.AgentID, Role: m.Role, State: h.State(m, record.Lease(), time.Now()),
			Task: h.Task, Context: h.Fill(), You: m.AgentID == t.Self.AgentID})
	}
	return list, nil
}
