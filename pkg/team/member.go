package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MemberState is the state of a member. The bucket stores Created, Joined, Stopped, WaitingModel and
// WaitingRepair while the member is parked, and Lost after an orderly stop of the process; heartbeats, or
// their absence, show the others.
type MemberState string

// The states of a member.
const (
	Created         MemberState = "created"          // asked for; no process has taken it yet
	Joined          MemberState = "joined"           // a process runs as it
	Running         MemberState = "running"          // in a run: a model call or its tool calls
	Stalled         MemberState = "stalled"          // in a run, without progress for a long time
	Idle            MemberState = "idle"             // nothing to do; waits for mail or a task
	WaitingAnswer   MemberState = "waiting_answer"   // asked somebody and waits, at most 10 minutes
	WaitingUser     MemberState = "waiting_user"     // waits for a person, a seat or the user, as long as it takes
	WaitingApproval MemberState = "waiting_approval" // has submitted a plan and waits for the decision, as long as it takes
	WaitingModel    MemberState = "waiting_model"    // its model endpoint refuses or fails; it tries again
	WaitingBudget   MemberState = "waiting_budget"   // a budget of its model calls is used up; it goes on once that is raised
	WaitingRepair   MemberState = "waiting_repair"   // its journal cannot be read; it goes on once that is repaired
	Lost            MemberState = "lost"             // no beat for the lease, or its process said goodbye
	Stopped         MemberState = "stopped"          // left or was stopped; its name is kept
	Unknown         MemberState = "unknown"          // its process has not answered in time: it may be slow, or gone
	Unreadable      MemberState = "unreadable"       // its record cannot be read, so nothing is known of it
)

// Waits reports whether a member in this state waits for an answer or a decision.
func (s MemberState) Waits() bool {
	return s == WaitingAnswer || s == WaitingUser || s == WaitingApproval || s == WaitingBudget
}

// Backend states what runs a member.
type Backend string

// The backends.
const (
	Pool   Backend = "pool"   // a standby that was asked
	Exec   Backend = "exec"   // a process started for this member
	Person Backend = "person" // a seat without a process
)

// colours are assigned in the order of joining, then again from the first.
var colours = []string{"cyan", "yellow", "magenta", "green", "blue"}

// Colour returns the colour of the n-th member that joined, counted from 0.
func Colour(n int) string { return colours[n%len(colours)] }

// SeatClaim is the last claim that a person's seat announced. While the task is still at
// Revision the claim is open: any client may complete it, or cancel it by rewriting the
// task.
type SeatClaim struct {
	Task     TaskID  `json:"task"`
	Revision uint64  `json:"revision"` // of the task before
	Op       string  `json:"op"`
	By       AgentID `json:"by,omitempty"`   // who assigned the task to the seat; "" if it claims by itself
	Take     bool    `json:"take,omitempty"` // with By: even from another holder
}

// Assignment returns the assignment of t in c while t is at c.Revision; ok is false if the seat itself
// claims.
func (c SeatClaim) Assignment(t Task) (a Assignment, ok bool) {
	return Assignment{Task: t.ID, By: c.By, Take: c.Take, Epoch: t.Epoch}, c.By != ""
}

// Member is the record of a member of a team.
type Member struct {
	V           int         `json:"v"`
	AgentID     AgentID     `json:"agent_id"`
	Role        string      `json:"role"`
	Color       string      `json:"color"`
	State       MemberState `json:"state"`
	Incarnation uint64      `json:"incarnation"` // grows each time a process takes the name
	Op          string      `json:"op"`
	Prompt      string      `json:"prompt,omitempty"`     // its first input, as mail of SpawnedBy
	PromptFor   uint64      `json:"prompt_for,omitempty"` // the incarnation that was spawned with the prompt
	SpawnedBy   AgentID     `json:"spawned_by,omitempty"` // who asked for it last; "" = not known
	Call        string      `json:"call,omitempty"`       // id of the repeatable call that asked for it; "" = none
	Model       string      `json:"model,omitempty"`      // "" = the role's, else the process's
	Program     string      `json:"program,omitempty"`    // the only program that may play it; "" = ours
	PlanMode    bool        `json:"plan_mode,omitempty"`  // it changes nothing before its plan is approved
	Approver    Approver    `json:"approver,omitempty"`   // of its plans; "" = ByLeader
	Backend     Backend     `json:"backend"`
	Host        string      `json:"host,omitempty"`
	PID         int         `json:"pid,omitempty"`
	Server      string      `json:"server,omitempty"`  // the id of the one NATS server that ran when the process joined; "" = not known, or there are several
	Cluster     string      `json:"cluster,omitempty"` // the embedded cluster that the process ends with, or while created its spawner; "" = none
	Workspace   string      `json:"workspace,omitempty"`
	InboxFrom   uint64      `json:"inbox_from"` // first message sequence that it reads
	ObeysFrom   uint64      `json:"obeys_from"` // first message sequence at which a shutdown request is for this incarnation
	Claim       *SeatClaim  `json:"claim,omitempty"`
	JoinedAt    time.Time   `json:"joined_at"`
	UpdatedAt   time.Time   `json:"updated_at"`
	LastError   string      `json:"last_error,omitempty"`
	Idled       bool        `json:"idled,omitempty"`      // left since it had no work; last_error states for how long
	TakenBack   bool        `json:"taken_back,omitempty"` // stopped since its spawn failed: it does not count as one that was there
	Losses      int         `json:"losses,omitempty"`     // how often in a row it was lost soon after it had joined, before this incarnation

	Revision uint64 `json:"-"`
	Kept     Extra  `json:"-"` // fields of the stored record that this program does not know
}

// UnreadableMember returns a stand-in for a member whose record, stored at that time, cannot be read because
// of why. It is listed; no rule judges by it.
func UnreadableMember(a AgentID, why error, at time.Time) Member {
	return Member{AgentID: a, State: Unreadable, JoinedAt: at, UpdatedAt: at, LastError: Line(why)}
}

// Validate checks the fields that a spawn sets.
func (m Member) Validate() error {
	return cmp.Or(oneOf("the approver", m.Approver), checkText("the prompt", m.Prompt, MaxTextBytes))
}

// Ended reports whether m belonged to an earlier embedded cluster on this storage, so that its process, or
// its spawner, has certainly ended.
func (m Member) Ended(cluster string) bool {
	return (m.HasProcess() || m.State == Created) && Foreign(m.Cluster, cluster)
}

// ToSpawn returns m as its next incarnation, for which that embedded cluster is about to find a process.
func (m Member) ToSpawn(cluster string) Member {
	m.State, m.Incarnation, m.Cluster, m.Host, m.PID = Created, m.Incarnation+1, cluster, "", 0
	return m
}

// Foreign reports whether cluster is another embedded cluster than running. Of two on the same storage the
// first has ended.
func Foreign(cluster, running string) bool {
	return cluster != "" && running != "" && cluster != running
}

// Holder returns m as the holder of a task.
func (m Member) Holder() Holder {
	return Holder{Agent: m.AgentID, Incarnation: m.Incarnation, Role: m.Role, Gate: m.Gate(Task{})}
}

// HasProcess reports whether m is expected to send heartbeats.
func (m Member) HasProcess() bool {
	return (m.State == Joined || m.Parked()) && m.Backend != Person
}

// Parked reports whether m waits for a fix of its model endpoint, which gives no usable answer, or of its
// journal, which cannot be read; LastError has the cause.
func (m Member) Parked() bool { return m.State == WaitingModel || m.State == WaitingRepair }

// Absent returns why m will not come to a task that is reserved for it, in a team with these policies; "" if
// it may. A lost member that is respawned may.
func (m Member) Absent(p Policies) string {
	switch {
	case m.State == Stopped:
		return "has stopped"
	case m.State == WaitingRepair:
		return "is parked, since its journal cannot be read"
	case m.Parked():
		return "is parked, without a usable answer from its model"
	case m.State == Lost && p.Respawn == RespawnAsk && m.Program == "":
		return "is lost, and a person is asked whether to bring it back"
	case m.State == Lost && (p.Respawn == RespawnRelease || m.Program != ""):
		return "is lost, and nobody brings it back"
	}
	return ""
}

// Counts reports whether m is a teammate that has not left the team.
func (m Member) Counts() bool {
	return m.AgentID != Leader && m.Backend != Person && m.State != Stopped
}

// Missing returns how many members of a role the team lacks to have role.Ready of them; 0 or less: none.
func (t Team) Missing(role Role, members []Member) int {
	missing := role.Ready
	for _, m := range members {
		if m.Role == role.Name && m.Fills(t.Policies) {
			missing--
		}
	}
	return missing
}

// Fills reports whether m counts against max_teammates and max_instances in a team with these policies. A
// lost member that only a person can bring back does not.
func (m Member) Fills(p Policies) bool {
	return m.Counts() && (m.State != Lost || m.Absent(p) == "")
}

// Heartbeat is the periodic report of a member's process: its state and its work.
type Heartbeat struct {
	AgentID     AgentID           `json:"agent_id"`
	Incarnation uint64            `json:"incarnation"`
	N           uint64            `json:"n"` // grows with each beat of the incarnation
	State       MemberState       `json:"state"`
	Role        string            `json:"role"`
	Turn        uint64            `json:"turn"`           // model turns of this incarnation that were completed
	Task        TaskID            `json:"task,omitempty"` // the task it holds
	Epoch       uint64            `json:"epoch,omitempty"`
	Begun       bool              `json:"begun,omitempty"`    // it has begun a turn on that task
	Unseen      bool              `json:"unseen,omitempty"`   // journaled input that the model has not seen
	InboxSeq    uint64            `json:"inbox_seq"`          // last message in its conversation
	HeardSeq    uint64            `json:"heard_seq"`          // the last of those that woke it, and is not from the watchdog
	BoardSeq    uint64            `json:"board_seq"`          // revision of the board up to which it knows what it holds
	ProgressAt  time.Time         `json:"progress_at"`        // last progress; for people, never compared
	Still       int               `json:"still,omitempty"`    // seconds without progress, by the process's own clock
	Tool        string            `json:"tool,omitempty"`     // of the call that runs; "" = none
	ToolAt      *time.Time        `json:"tool_at,omitempty"`  // since when it runs; for people
	Alias       string            `json:"alias,omitempty"`    // of its model, as it answered last
	Model       string            `json:"model,omitempty"`    // the alias's, by the endpoint's name
	Tokens      int               `json:"tokens,omitempty"`   // that its turns so far have used
	Trouble     string            `json:"trouble,omitempty"`  // why its model gives no answer, while it tries again
	Storage     string            `json:"storage,omitempty"`  // why NATS has not stored lately what its process wrote
	Awaits      AgentID           `json:"awaits,omitempty"`   // whose answer it waits for
	Asked       string            `json:"asked,omitempty"`    // id of the message that is to be answered, or of the plan that is to be decided on
	About       string            `json:"about,omitempty"`    // its first words
	Drains      bool              `json:"drains,omitempty"`   // it was asked to leave once it has no task
	Back        bool              `json:"back,omitempty"`     // its connection was lost, and is back just now: what was sent to it meanwhile did not arrive
	RetryAt     *time.Time        `json:"retry_at,omitempty"` // parked: when it asks its model endpoint again; for people
	Context     int               `json:"context,omitempty"`  // tokens that its next request holds, about
	Window      int               `json:"window,omitempty"`   // tokens that its model takes; 0: not known
	Project     []InstructionFile `json:"project,omitempty"`  // the files with instructions that the repository gives it
	Jobs        []Job             `json:"jobs,omitempty"`     // its subagents and commands in the background, the oldest first
	Nonce       string            `json:"nonce,omitempty"`    // of the ping that this beat answers
	Clock       *time.Time        `json:"clock,omitempty"`    // in the answer to a ping: the process's own time
}

// InstructionFile is a file of the repository with instructions that a member was shown.
type InstructionFile struct {
	File    string `json:"file"`               // relative to the workspace
	Bytes   int    `json:"bytes"`              // of what was told
	LeftOut int    `json:"left_out,omitempty"` // bytes that were not
	Faults  int    `json:"faults,omitempty"`   // imports of it that were not followed
}

func (t InstructionFile) String() string {
	text := fmt.Sprintf("%s %d B", t.File, t.Bytes)
	if t.LeftOut > 0 {
		text += fmt.Sprintf(" (%d left out)", t.LeftOut)
	}
	switch {
	case t.Faults == 1:
		text += " (1 import not followed)"
	case t.Faults > 1:
		text += fmt.Sprintf(" (%d imports not followed)", t.Faults)
	}
	return text
}

// Newer reports whether b replaces last. The number, not the age, shows that a heartbeat is stale, as in a
// burst after a reconnect.
func (b Heartbeat) Newer(last Heartbeat) bool {
	if b.Incarnation != last.Incarnation {
		return b.Incarnation > last.Incarnation
	}
	return b.N > last.N
}

// SameAs reports whether nothing happened to the agent between two heartbeats.
func (b Heartbeat) SameAs(o Heartbeat) bool {
	return b.AgentID == o.AgentID && b.Incarnation == o.Incarnation && b.Turn == o.Turn && b.InboxSeq == o.InboxSeq
}

// Quiet reports whether the agent does nothing without news and no job of it holds the team, see [Job.Holds].
func (b Heartbeat) Quiet() bool {
	return !slices.ContainsFunc(b.Jobs, Job.Holds) && ((b.State == Idle || b.State.Waits()) && !b.Unseen || b.State == WaitingBudget || b.Parked() || b.heldUp())
}

// WaitsForPerson reports whether the agent does nothing before a person answers it, raises its budget, or decides on its plan or
// on a request of a subagent that it waits for.
func (b Heartbeat) WaitsForPerson() bool {
	return b.State == WaitingUser || b.State == WaitingBudget || b.State == WaitingApproval && b.Awaits == UserAgent || b.heldUp()
}

// heldUp reports whether the agent waits in a call for subagents that all wait for a person.
func (b Heartbeat) heldUp() bool {
	return b.State == Running && !slices.ContainsFunc(b.Jobs, Job.Holds) &&
		slices.ContainsFunc(b.Jobs, func(j Job) bool { return !j.Background && j.Asked != "" })
}

// JobAsks reports whether a subagent of the agent waits for a person.
func (b Heartbeat) JobAsks() bool {
	return slices.ContainsFunc(b.Jobs, func(j Job) bool { return j.Asked != "" })
}

// Stalled reports whether the agent is at work and has made no progress for d. An agent that waits, is idle
// or is parked has not stalled.
func (b Heartbeat) Stalled(d time.Duration) bool {
	works := b.State == Running || b.State == WaitingModel && !b.Parked() && b.Unseen
	return works && time.Duration(b.Still)*time.Second >= d
}

// Fill returns how full the window of the agent's model is, in per cent; 0 if unknown.
func (b Heartbeat) Fill() int {
	if b.Window == 0 {
		return 0
	}
	return 100 * b.Context / b.Window
}

// Parked reports whether the agent's model endpoint refuses it, or its journal cannot be read: it does
// nothing until that is fixed. An agent that waits through an outage is not parked.
func (b Heartbeat) Parked() bool {
	return b.State == WaitingModel && b.RetryAt != nil || b.State == WaitingRepair
}

// PromptMail returns the prompt of the member's spawn as its first mail, which no stream stores; false if it
// is empty. The sender is the member that asked for the spawn.
func (m Member) PromptMail() (Message, bool) {
	mail := Message{ID: fmt.Sprintf("prompt-%d", max(m.PromptFor, 1)), Type: MsgMessage, From: cmp.Or(m.SpawnedBy, Leader), To: m.AgentID,
		Content: m.Prompt, Summary: Summarize(m.Prompt), CreatedAt: m.JoinedAt}
	if mail.From == UserAgent {
		mail.Type = MsgUser
	}
	return mail, strings.TrimSpace(m.Prompt) != ""
}
