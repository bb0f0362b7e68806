package engine

import (
	"encoding/json"

	"agentteam/pkg/model"
	"agentteam/pkg/store/journal"
)

// Memory is the whole of what an owner remembers, of which the engine's conversation is a part. It
// takes in the records, and knows what stays when the conversation is made shorter.
type Memory interface {
	// Add takes in the next record, and gives it to [Conversation.Add]. Error: [team.ErrUnreadable].
	Add(r journal.Record) error
	// Kept returns what a shorter conversation keeps beside the messages that stay.
	Kept(c Cut) Kept
	// Context returns the memory with next as its conversation, as the Context of a record.
	Context(next Conversation, c Cut) json.RawMessage
}

// Cut is what is left out of a conversation.
type Cut struct {
	Rung  Rung             // [Whole]: what the model has seen and is old; [Undone]: results only, or one turn; further down: all messages
	Stay  []*model.Message // the messages that stay
	Room  int              // about how many tokens what is kept beside them may have
	Words bool             // what others wrote may be quoted; else it may be what the endpoint refuses
}

// Kept is what a shorter conversation keeps. Each text may be "".
type Kept struct {
	Name    string   // what the work is called, such as "your task"; "": "what you are at"
	Before  string   // what came before and still counts, first of all
	Work    []string // what the owner is at, as it was told
	Orders  string   // what people have said that still holds
	Asked   string   // what the model has yet to answer, last of all
	Missing string   // what is left out before the model has seen it, and where it finds that
}

// alone is the memory of an engine without an owner: it keeps the text that came first.
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
