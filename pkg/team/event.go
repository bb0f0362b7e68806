package team

import (
	"encoding/json"
	"time"
)

// EventType is an AG-UI event type. Text and tool calls come as the protocol's
// chunk events, one a turn, since a turn is announced only once it is complete.
type EventType string

// The events an agent stores.
const (
	RunStarted     EventType = "RUN_STARTED"
	RunFinished    EventType = "RUN_FINISHED"
	RunError       EventType = "RUN_ERROR"
	TextChunk      EventType = "TEXT_MESSAGE_CHUNK"
	ToolCallChunk  EventType = "TOOL_CALL_CHUNK"
	ToolCallResult EventType = "TOOL_CALL_RESULT"
	Custom         EventType = "CUSTOM"
)

// EventBody is the event itself, with AG-UI's field names; which are set depends
// on the type.
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
}

// Event is an entry of a team's event log.
type Event struct {
	TeamID   TeamID    `json:"team_id"`
	AgentID  AgentID   `json:"agent_id"`
	RoleName string    `json:"role_name"`
	RunID    string    `json:"run_id"` // ULID made at waking
	Event    EventBody `json:"event"`

	Seq uint64 `json:"-"` // in the event stream
}

// Stamp returns b with its timestamp set.
func (b EventBody) Stamp(now time.Time) EventBody {
	b.Timestamp = now.UnixMilli()
	return b
}
