package team

import (
	"slices"
	"strings"
	"time"
)

// MessageType says what a message is. Only the type, never the text, makes
// anything happen beyond the model reading it.
type MessageType string

// The types of messages.
const (
	MsgMessage          MessageType = "message"
	MsgBroadcast        MessageType = "broadcast"
	MsgUser             MessageType = "user_message" // from a person: a goal, or a word in between
	MsgShutdownRequest  MessageType = "shutdown_request"
	MsgShutdownResponse MessageType = "shutdown_response"
	MsgTaskAssigned     MessageType = "task_assigned"
	MsgIdle             MessageType = "idle_notification"
	MsgWatchdog         MessageType = "watchdog"
	MsgTaskNotification MessageType = "task_notification"
)

// Message is one piece of mail.
type Message struct {
	V         int         `json:"v"`
	ID        string      `json:"id"` // ULID
	Type      MessageType `json:"type"`
	From      AgentID     `json:"from"` // set by the connection, never by a tool argument
	To        AgentID     `json:"to"`   // "*" = everyone but the sender
	Content   string      `json:"content"`
	Summary   string      `json:"summary"`
	RequestID string      `json:"request_id,omitempty"`
	Approve   *bool       `json:"approve,omitempty"`
	InReplyTo string      `json:"in_reply_to,omitempty"`
	CreatedAt time.Time   `json:"created_at"`
}

// Validate checks the parts that a sender fills in.
func (m Message) Validate() error {
	if strings.TrimSpace(m.Content) == "" && slices.Contains([]MessageType{MsgMessage, MsgBroadcast, MsgUser}, m.Type) {
		return Errorf(InvalidArgument, "the message is empty").WithHint("give it a text")
	}
	if err := checkText("the message", m.Content, MaxTextBytes); err != nil {
		return err
	}
	return checkText("the summary", m.Summary, MaxTitleBytes)
}

// Wakes reports whether the message makes an idle agent look at it. An idle
// notification waits until something else wakes its reader, or two idle agents
// would keep each other awake.
func (m Message) Wakes() bool { return m.Type != MsgIdle }
