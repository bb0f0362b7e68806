package state

import "agentteam/pkg/team"

// Change is one change: a [RunBegan], [RunEnded], [Chunk], [CallBegan], [CallEnded], [TaskChanged], [MailSent], [PlanChanged] or
// [MemberChanged]. Changes come in the order in which a reader of a stream gets them; MemberChanged comes last.
type Change any

// Of is the run to which a change belongs.
type Of struct {
	AgentID team.AgentID
	RunID   string // "" = the entry names none
	Late    bool   // it was over before
}

// Whose returns o; each change that belongs to a run has it.
func (o Of) Whose() Of { return o }

// RunBegan reports the first entry of a run, its beginning or another, and the beginning of a run that was known by another
// entry.
type RunBegan struct {
	Of
	First    bool   // nothing of the run was reported before
	Started  bool   // this is its beginning
	ThreadID string // with Started
}

// RunEnded reports the end of a run, once.
type RunEnded struct {
	Of
	Started bool           // its beginning was reported
	Body    team.EventBody // of the entry that ended it; of type "" by [Team.Close]
}

// ChunkKind is the effect of a Piece on its text.
type ChunkKind int

// The kinds of pieces. A text begins, has any number of pieces, and ends.
const (
	Begin ChunkKind = iota
	More
	End
)

// Chunk is a part of an agent's text, for protocols in which a text has a beginning and an end of its own. See [Team.Write].
type Chunk struct {
	Of
	Kind      ChunkKind
	MessageID string
	Text      string // of More; not empty
}

// CallBegan reports a call of a tool.
type CallBegan struct {
	Of
	Call *Call
}

// CallEnded reports the result of a call, or that its run has ended without one.
type CallEnded struct {
	Of
	Call      *Call // nil = its beginning was not seen
	CallID    string
	Answered  bool   // there is a result
	MessageID string // of the result
	Content   string // of the result
}

// TaskChanged reports a new record of a task.
type TaskChanged struct {
	Before *Task // nil = the task was not known
	After  *Task
}

// MailSent reports a message.
type MailSent struct{ team.Message }

// PlanChanged reports a new record of a plan.
type PlanChanged struct{ team.Approval }

// MemberChanged reports a change of a member's state.
type MemberChanged struct{ Before, After Member }
