package team

import "time"

// MemberState is where a member stands. The bucket holds Created, Joined,
// WaitingModel while the member is parked, Stopped and, after an orderly stop of the
// process, Lost; the others are heard in beats or derived from their absence.
type MemberState string

// The states of a member.
const (
	Created       MemberState = "created"        // asked for; no process has taken it yet
	Joined        MemberState = "joined"         // a process runs as it
	Running       MemberState = "running"        // in a run: a model call or its tool calls
	Idle          MemberState = "idle"           // nothing to do; waits for mail or a task
	WaitingAnswer MemberState = "waiting_answer" // asked somebody and waits, at most 10 minutes
	WaitingModel  MemberState = "waiting_model"  // its model endpoint refuses or fails; it tries again
	Lost          MemberState = "lost"           // no beat for the lease, or its process said goodbye
	Stopped       MemberState = "stopped"        // left or was stopped; its name is kept
)

// Backend is what runs a member.
type Backend string

// The backends.
const (
	Pool   Backend = "pool"   // a standby that was asked
	Exec   Backend = "exec"   // a process started for this member
	Person Backend = "person" // a seat without a process
)

// Colours in order of joining, then again from the first.
var colours = []string{"cyan", "yellow", "magenta", "green", "blue"}

// Colour is the colour of the n-th member that joined, counted from 0.
func Colour(n int) string { return colours[n%len(colours)] }

// SeatClaim is the claim that a person's seat makes, or made last: whoever finds it open,
// with the task still as the claim names it, makes the write to the task in its place, or
// one after which it can be made no more.
type SeatClaim struct {
	Task     TaskID  `json:"task"`
	Revision uint64  `json:"revision"` // of the task before
	Op       string  `json:"op"`
	By       AgentID `json:"by,omitempty"`   // who assigned the task to the seat; "" if it claims by itself
	Take     bool    `json:"take,omitempty"` // also from somebody else who holds it; with By
}

// Assignment is c as the word of whoever assigned t, which is as c names it; ok is
// false if the seat claims by itself.
func (c SeatClaim) Assignment(t Task) (a Assignment, ok bool) {
	return Assignment{Task: t.ID, By: c.By, Take: c.Take, Epoch: t.Epoch}, c.By != ""
}

// Member is the record of one who belongs to a team.
type Member struct {
	V           int         `json:"v"`
	AgentID     AgentID     `json:"agent_id"`
	Role        string      `json:"role"`
	Color       string      `json:"color"`
	State       MemberState `json:"state"`
	Incarnation uint64      `json:"incarnation"` // grows each time a process takes the name
	Op          string      `json:"op"`
	Prompt      string      `json:"prompt,omitempty"` // appended to the role's instructions
	Model       string      `json:"model,omitempty"`  // "" = the role's, else the process's
	Backend     Backend     `json:"backend"`
	Host        string      `json:"host,omitempty"`
	PID         int         `json:"pid,omitempty"`
	Workspace   string      `json:"workspace,omitempty"`
	InboxFrom   uint64      `json:"inbox_from"` // first message sequence it is to hear
	ObeysFrom   uint64      `json:"obeys_from"` // first one whose request to shut down is meant for it as it was made last
	Claim       *SeatClaim  `json:"claim,omitempty"`
	JoinedAt    time.Time   `json:"joined_at"`
	UpdatedAt   time.Time   `json:"updated_at"`
	LastError   string      `json:"last_error,omitempty"`

	Revision uint64 `json:"-"`
	Kept     Extra  `json:"-"` // fields of the stored record that this program does not know
}

// Validate checks what whoever asks for a member may say of it.
func (m Member) Validate() error {
	return checkText("the prompt", m.Prompt, MaxTextBytes)
}

// Holder is m as one that may hold a task.
func (m Member) Holder() Holder {
	return Holder{Agent: m.AgentID, Incarnation: m.Incarnation, Role: m.Role}
}

// HasProcess reports whether beats are to be expected of m.
func (m Member) HasProcess() bool {
	return (m.State == Joined || m.State == WaitingModel) && m.Backend != Person
}

// Parked reports whether m waits for somebody to mend its model endpoint, which
// refuses it; LastError says how.
func (m Member) Parked() bool { return m.State == WaitingModel }

// Counts reports whether m counts against the team's max_teammates.
func (m Member) Counts() bool {
	return m.AgentID != Leader && m.Backend != Person && m.State != Stopped
}

// Beat is a heartbeat: who lives, and what it is at.
type Beat struct {
	AgentID     AgentID     `json:"agent_id"`
	Incarnation uint64      `json:"incarnation"`
	N           uint64      `json:"n"` // grows with each beat of the incarnation
	State       MemberState `json:"state"`
	Role        string      `json:"role"`
	Turn        uint64      `json:"turn"`           // model turns of this incarnation that were completed
	Task        TaskID      `json:"task,omitempty"` // the task it holds
	Epoch       uint64      `json:"epoch,omitempty"`
	Begun       bool        `json:"begun,omitempty"`    // it has begun a turn on that task
	Unseen      bool        `json:"unseen,omitempty"`   // journaled input that the model has not seen
	InboxSeq    uint64      `json:"inbox_seq"`          // last message in its conversation
	BoardSeq    uint64      `json:"board_seq"`          // revision of the board up to which it knows what it holds
	ProgressAt  time.Time   `json:"progress_at"`        // last turn or tool result; for people, never compared
	RetryAt     *time.Time  `json:"retry_at,omitempty"` // parked: when it asks its model endpoint again; for people
	Context     int         `json:"context,omitempty"`  // tokens that its next request holds, about
	Window      int         `json:"window,omitempty"`   // tokens that its model takes; 0: not known
	Nonce       string      `json:"nonce,omitempty"`    // of the ping that this beat answers
}

// Newer reports whether b is to replace last. A stale beat, as arrives in a burst
// after a reconnect, is known by its number and not by its age.
func (b Beat) Newer(last Beat) bool {
	if b.Incarnation != last.Incarnation {
		return b.Incarnation > last.Incarnation
	}
	return b.N > last.N
}

// SameAs reports whether nothing happened to the agent between two beats.
func (b Beat) SameAs(o Beat) bool {
	return b.AgentID == o.AgentID && b.Incarnation == o.Incarnation && b.Turn == o.Turn && b.InboxSeq == o.InboxSeq
}

// Quiet reports whether the agent would do nothing by itself.
func (b Beat) Quiet() bool {
	return (b.State == Idle || b.State == WaitingAnswer) && !b.Unseen || b.Parked()
}

// Fill is how full the window of the agent's model is, in per cent; 0 if that is not
// known.
func (b Beat) Fill() int {
	if b.Window == 0 {
		return 0
	}
	return 100 * b.Context / b.Window
}

// Parked reports whether the agent's model endpoint refuses it: it does nothing
// until somebody has mended that. An agent that waits through an outage is not.
func (b Beat) Parked() bool { return b.State == WaitingModel && b.RetryAt != nil }
