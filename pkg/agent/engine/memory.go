package engine

import (
	"encoding/json"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
)

// Memory is all that an owner remembers, of which the engine's conversation is a part. It takes in
// the records, and decides what stays when the conversation is made shorter.
type Memory interface {
	// Add takes in the next record, and passes it to [Conversation.Add]. Error:
	// [team.ErrUnreadable].
	Add(r journal.Record) error
	// Kept returns the texts that a shorter conversation keeps in addition to its remaining
	// messages.
	Kept(c Cut) Kept
	// Context returns the memory with next as its conversation, as the Context of a record.
	Context(next Conversation, c Cut) json.RawMessage
}

// Cut describes the removed part of a conversation.
type Cut struct {
	Rung  Rung             // [Whole]: old messages that the model has seen; [Undone]: results only, or one turn; lower rungs: all messages
	Stay  []*model.Message // the messages that stay
	Room  int              // about how many tokens the other kept texts may have
	Words bool             // texts of others may be quoted; else the endpoint may refuse them
}

// Kept is the texts that a shorter conversation keeps. Each may be "".
type Kept struct {
	Name    string   // a name for the work, such as "your task"; "": "what you are at"
	Before  string   // history that still counts; comes first
	Work    []string // the owner's current work, as the model was given it
	Orders  string   // instructions of people that still hold
	Asked   string   // requests that the model has yet to answer; comes last
	Missing string   // input that was left out before the model saw it, and where it finds that
}

// alone is the memory of an engine without an owner: it keeps the first note.
type alone struct {
	*Conversation
	work string
}

func (a *alone) Add(r journal.Record) error {
	if r.Kind == journal.Note && a.work == "" {
		a.work = r.Text
	}
	return a.Conversation.Add(r)
}

func (a *alone) Kept(Cut) Kept {
	if a.work == "" {
		return Kept{}
	}
	return Kept{Work: []string{a.work}}
}

func (a *alone) Context(next Conversation, _ Cut) json.RawMessage { return JSON(next) }
