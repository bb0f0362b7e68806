package team

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// MessageType is the type of a message. Only the type, never the text, has an effect beyond the model reading
// it.
type MessageType string

// The types of messages.
const (
	MsgMessage          MessageType = "message"
	MsgBroadcast        MessageType = "broadcast"
	MsgUser             MessageType = "user_message" // from a person: a goal, or a word in between
	MsgShutdownRequest  MessageType = "shutdown_request"
	MsgShutdownResponse MessageType = "shutdown_response"
	MsgPlanRequest      MessageType = "plan_approval_request"
	MsgPlanResponse     MessageType = "plan_approval_response"
	MsgTaskAssigned     MessageType = "task_assigned"
	MsgIdle             MessageType = "idle_notification"
	MsgWatchdog         MessageType = "watchdog"
	MsgTaskNotification MessageType = "task_notification"
)

// Asks reports whether a message of this type is a request, which has a request_id and is
// answered by a response with the same one.
func (t MessageType) Asks() bool { return t == MsgShutdownRequest || t == MsgPlanRequest }

// Answers reports whether a message of this type is the response to a request: it has the request's
// request_id and an approve field.
func (t MessageType) Answers() bool { return t == MsgShutdownResponse || t == MsgPlanResponse }

// AllIdle begins the watchdog's notice to the leader that no member is active.
const AllIdle = "[All Idle]"

// Message is a piece of mail.
type Message struct {
	V          int         `json:"v"`
	ID         string      `json:"id"` // ULID
	Type       MessageType `json:"type"`
	From       AgentID     `json:"from"` // set by the connection, never by a tool argument
	To         AgentID     `json:"to"`   // "*" = everyone but the sender
	Content    string      `json:"content"`
	Summary    string      `json:"summary"`
	RequestID  string      `json:"request_id,omitempty"` // of requests and responses
	Approve    *bool       `json:"approve,omitempty"`    // of responses
	InReplyTo  string      `json:"in_reply_to,omitempty"`
	AwaitReply bool        `json:"await_reply,omitempty"` // its sender waits for the answer
	Choices    []string    `json:"choices,omitempty"`     // of a question: the answers that it takes; none: any
	TaskID     TaskID      `json:"task_id,omitempty"`     // of a question: the task that a teammate asks it for; "" = none
	Drain      bool        `json:"drain,omitempty"`       // of a shutdown_request: the member leaves once it has no task, and is not asked
	Urgent     bool        `json:"urgent,omitempty"`      // its reader is to see it before it goes on
	Stored     string      `json:"stored,omitempty"`      // where the whole text lies, "stored:" and a digest, if content is only its head and tail
	Exchange   *Exchange   `json:"exchange,omitempty"`    // of a model's message to other models
	CreatedAt  time.Time   `json:"created_at"`
}

// ShortID returns the id of a message as a model sees it: the last six characters of a ULID, which are
// random; any other id whole.
func ShortID(id string) string {
	const ulid = 26
	if len(id) != ulid || strings.Trim(id, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") != "" {
		return id
	}
	return id[ulid-6:]
}

// Validate checks the fields that a sender fills in. [Sender.MaySend] checks who may send what.
func (m Message) Validate() error {
	if err := m.validateExchange(); err != nil {
		return err
	}
	if strings.TrimSpace(m.Content) == "" && slices.Contains([]MessageType{MsgMessage, MsgBroadcast, MsgUser}, m.Type) {
		return Errorf(InvalidArgument, "the message is empty").WithHint("give it a text")
	}
	if err := checkText("the message", m.Content, MaxMessageBytes); err != nil {
		return err
	}
	if err := checkText("the summary", m.Summary, MaxTitleBytes); err != nil {
		return err
	}
	return checkChoices(m.Choices)
}

// Limits that let a person take in the choices of a question at a glance.
const (
	minChoices     = 2
	maxChoices     = 10
	maxChoiceBytes = 200
)

// checkChoices refuses choices that a person could not choose from.
func checkChoices(choices []string) error {
	if n := len(choices); n > 0 && (n < minChoices || n > maxChoices) {
		return Errorf(InvalidArgument, "a question has %d to %d choices, not %d", minChoices, maxChoices, n).
			WithHint("without choices the person answers in words")
	}
	for i, c := range choices {
		what := fmt.Sprintf("choice %d", i+1)
		switch {
		case !strings.ContainsFunc(c, visible):
			return Errorf(InvalidArgument, "%s is empty", what).WithHint("give each choice a text")
		case strings.ContainsAny(c, "\n\r\u2028\u2029"):
			return Errorf(InvalidArgument, "%s has more than one line", what).WithHint("say it shorter, and the rest in the question")
		case slices.ContainsFunc(choices[:i], func(o string) bool { return strings.EqualFold(strings.TrimSpace(o), strings.TrimSpace(c)) }):
			return Errorf(InvalidArgument, "%s, %q, is there twice", what, c).WithHint("give each choice once")
		}
		if err := checkText(what, c, maxChoiceBytes); err != nil {
			return err
		}
	}
	return nil
}

// validateExchange checks what only requests and responses have.
func (m Message) validateExchange() error {
	if !m.Type.Asks() && !m.Type.Answers() {
		if m.RequestID != "" || m.Approve != nil {
			return Errorf(InvalidArgument, "a %s has no request_id and no approve", m.Type).WithHint("they belong to a response: give its type")
		}
		return nil
	}
	var missing []string
	if m.RequestID == "" {
		missing = append(missing, "request_id")
	}
	if m.Type.Answers() && m.Approve == nil {
		missing = append(missing, "approve")
	}
	switch {
	case missing != nil:
		return Errorf(InvalidArgument, "a %s needs %s", m.Type, strings.Join(missing, " and "))
	case m.Type.Asks() && m.Approve != nil:
		return Errorf(InvalidArgument, "a %s has no approve", m.Type).WithHint("that is for the one who is asked")
	}
	return checkText("the request_id", m.RequestID, MaxTitleBytes)
}

// Wakes reports whether the message wakes an idle agent. An idle notification waits until something else
// wakes its reader: else two idle agents would keep each other awake. A drain asks the model nothing.
func (m Message) Wakes() bool { return m.Type != MsgIdle && !m.Drain }
