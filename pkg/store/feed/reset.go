package feed

import (
	"encoding/json"
	"time"

	"agentteam/pkg/team"
)

// Reset is the value of the event that lists the entries that a reader has missed.
type Reset struct {
	Missing []Missing `json:"missing"`
}

// Missing is a part of the feed that was removed before the reader came to it.
type Missing struct {
	Source string `json:"source"`         // events, conversations, mail or board
	Why    string `json:"why"`            // forgotten, or made_anew: a backup or another team of that name
	From   uint64 `json:"from,omitempty"` // forgotten: the first sequence that is missing, and the last
	To     uint64 `json:"to,omitempty"`
}

const resetName = "reset"

func (r Reset) event(id team.TeamID, now time.Time) team.Event {
	value, _ := json.Marshal(r) // texts and numbers only
	return team.Event{TeamID: id, Event: team.EventBody{Type: team.Custom, Name: resetName, Value: value}.Stamp(now)}
}

// IsReset reports whether an event of the feed lists missing entries.
func IsReset(e team.Event) bool {
	return e.Event.Type == team.Custom && e.Event.Name == resetName && e.AgentID == ""
}
