package team

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// EventType is an AG-UI event type, or one of the team's own. Text and tool calls use the protocol's chunk
// events, one a turn, since a turn is announced only once it is complete.
type EventType string

// The events an agent stores.
const (
	RunStarted  EventType = "RUN_STARTED"
	RunFinished EventType = "RUN_FINISHED"
	RunError    EventType = "RUN_ERROR"
	Custom      EventType = "CUSTOM" // Name says what; "reset" is the feed's own
)

// RunStopped is the code of a [RunError] that ends the run of an agent which was stopped, or whose process
// died, at work. No process stores it: package feed adds it.
const RunStopped = "stopped"

// The events that package feed derives from conversations, mail and records; they are not stored as events.
const (
	TextChunk      EventType = "TEXT_MESSAGE_CHUNK"
	ToolCallChunk  EventType = "TOOL_CALL_CHUNK"
	ToolCallResult EventType = "TOOL_CALL_RESULT"
	Retry          EventType = "RETRY"               // the model endpoint gave no turn, or not at the first try ([Retrying])
	Compacted      EventType = "COMPACTION_FINISHED" // the conversation was made shorter

	MailSent EventType = "MAIL_SENT"

	TaskCreated   EventType = "TASK_CREATED"
	TaskUpdated   EventType = "TASK_UPDATED"
	TaskClaimed   EventType = "TASK_CLAIMED"
	TaskAssigned  EventType = "TASK_ASSIGNED" // given to a member by somebody else: it has it, or it is reserved for it
	TaskAdopted   EventType = "TASK_ADOPTED"
	TaskReleased  EventType = "TASK_RELEASED"
	TaskCompleted EventType = "TASK_COMPLETED"
	TaskFailed    EventType = "TASK_FAILED"
	TaskCancelled EventType = "TASK_CANCELLED"

	MemberCreated EventType = "MEMBER_CREATED"
	MemberJoined  EventType = "MEMBER_JOINED"
	MemberUpdated EventType = "MEMBER_UPDATED"
	MemberParked  EventType = "MEMBER_PARKED"  // its model endpoint refuses it
	MemberResumed EventType = "MEMBER_RESUMED" // it is parked no more
	MemberLost    EventType = "MEMBER_LOST"
	MemberStopped EventType = "MEMBER_STOPPED"
	MemberRemoved EventType = "MEMBER_REMOVED"

	ApprovalRequested EventType = "APPROVAL_REQUESTED"
	ApprovalApproved  EventType = "APPROVAL_APPROVED"
	ApprovalRejected  EventType = "APPROVAL_REJECTED"
	ApprovalUsed      EventType = "APPROVAL_USED"  // the plan is being carried out
	ApprovalEnded     EventType = "APPROVAL_ENDED" // it is good for nothing more
)

var eventTypes = []EventType{
	RunStarted, RunFinished, RunError, Custom, TextChunk, ToolCallChunk, ToolCallResult, Retry, Compacted, MailSent,
	TaskCreated, TaskUpdated, TaskClaimed, TaskAssigned, TaskAdopted, TaskReleased, TaskCompleted, TaskFailed, TaskCancelled,
	MemberCreated, MemberJoined, MemberUpdated, MemberParked, MemberResumed, MemberLost, MemberStopped, MemberRemoved,
	ApprovalRequested, ApprovalApproved, ApprovalRejected, ApprovalUsed, ApprovalEnded,
}

// EventTypes returns every type that a team's feed may have.
func EventTypes() []EventType { return slices.Clone(eventTypes) }

// ParseEventType parses s in upper or lower case. Error: InvalidArgument, which names the types.
func ParseEventType(s string) (EventType, error) {
	if t := EventType(strings.ToUpper(s)); slices.Contains(eventTypes, t) {
		return t, nil
	}
	return "", Errorf(InvalidArgument, "%q is not an event type", Clip(s, 40)).WithHint("a type is one of %s", strings.Join(Strings(eventTypes...), ", "))
}

// EventBody is the event itself, with AG-UI's field names; its type decides which are set.
type EventBody struct {
	Type         EventType       `json:"type"`
	Timestamp    int64           `json:"timestamp"` // milliseconds since 1970
	ThreadID     string          `json:"threadId,omitempty"`
	RunID        string          `json:"runId,omitempty"`
	MessageID    string          `json:"messageId,omitempty"`
	Role         string          `json:"role,omitempty"`
	Delta        string          `json:"delta,omitempty"`
	ToolCallID   string          `json:"toolCallId,omitempty"`
	ToolCallName string          `json:"toolCallName,omitempty"`
	Content      string          `json:"content,omitempty"`
	Message      string          `json:"message,omitempty"`
	Code         string          `json:"code,omitempty"`
	Name         string          `json:"name,omitempty"`
	Value        json.RawMessage `json:"value,omitempty"`
	Result       json.RawMessage `json:"result,omitempty"`
	Tokens       int             `json:"tokens,omitempty"` // on the first event of a turn: what the model call used
}

// Event is an event with the agent that it belongs to.
type Event struct {
	TeamID   TeamID    `json:"team_id"`
	AgentID  AgentID   `json:"agent_id"`
	RoleName string    `json:"role_name"`
	RunID    string    `json:"run_id"` // ULID made at waking
	Event    EventBody `json:"event"`
}

// Retrying is the value of a [Retry] that an agent publishes while one call of its model is still being
// tried: once a call, at its first failure.
type Retrying struct {
	Tried       int     `json:"tried"` // tries that have failed; not 0
	Of          int     `json:"of"`    // how often it is tried at most
	WaitSeconds float64 `json:"wait_seconds"`
}

// Stamp returns b with its timestamp set.
func (b EventBody) Stamp(now time.Time) EventBody {
	b.Timestamp = now.UnixMilli()
	return b
}
