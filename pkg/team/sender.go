package team

import (
	"slices"
	"strings"
)

// Sender is a class of senders; it determines which types of message they may send.
type Sender string

// The kinds of senders. Messages that a member's process sends automatically are the runtime's, not its model's.
const (
	FromLeader   Sender = "the leader"
	FromTeammate Sender = "a teammate"
	FromPerson   Sender = "a person"
	FromRuntime  Sender = "the runtime"
)

// senders lists who may send which type. Only the receiver of a request may respond to it; the request decides that.
var senders = []struct {
	kind MessageType
	by   []Sender
}{
	{MsgMessage, []Sender{FromLeader, FromTeammate, FromPerson}},
	{MsgBroadcast, []Sender{FromLeader, FromTeammate, FromPerson}},
	{MsgUser, []Sender{FromPerson}},
	{MsgShutdownRequest, []Sender{FromLeader, FromPerson}},
	{MsgShutdownResponse, []Sender{FromTeammate, FromRuntime}}, // of one that has nothing to do
	{MsgPlanRequest, []Sender{FromRuntime}},                    // for submit_plan
	{MsgPlanResponse, []Sender{FromLeader, FromPerson}},
	{MsgTaskAssigned, []Sender{FromRuntime}},
	{MsgIdle, []Sender{FromRuntime}},
	{MsgWatchdog, []Sender{FromRuntime}},
	{MsgTaskNotification, []Sender{FromRuntime}},
}

// MessageTypes returns all types of messages.
func MessageTypes() []MessageType {
	all := make([]MessageType, len(senders))
	for i, s := range senders {
		all[i] = s.kind
	}
	return all
}

// MaySend returns nil if s may send messages of type t. Errors: InvalidArgument if there is
// no such type; PermissionDenied. The hint names the types that s may send.
func (s Sender) MaySend(t MessageType) error {
	var may []string
	known := false
	for _, row := range senders {
		if slices.Contains(row.by, s) {
			if row.kind == t {
				return nil
			}
			may = append(may, string(row.kind))
		}
		known = known || row.kind == t
	}
	hint := string(s) + " may send: " + strings.Join(may, ", ")
	if !known {
		return Errorf(InvalidArgument, "there is no message type %q", Clean(string(t), MaxTitleBytes)).WithHint("%s", hint)
	}
	return Errorf(PermissionDenied, "%s may not send a %s", s, t).WithHint("%s", hint)
}
