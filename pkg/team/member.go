package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MemberState is where a member stands. The bucket holds Created, Joined,
// WaitingModel and WaitingRepair while the member is parked, Stopped and, after an orderly
// stop of the process, Lost; the others are heard in beats or derived from their absence.
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
	WaitingRepair   MemberState = "waiting_repair"   // its journal cannot be read; it goes on once that is repaired
	Lost            MemberState = "lost"             // no beat for the lease, or its process said goodbye
	Stopped         MemberState = "stopped"          // left or was stopped; its name is kept
	Unknown         MemberState = "unknown"          // its process has not answered in time: it may be slow, or gone
	Unreadable      MemberState = "unreadable"       // its record cannot be read, so nothing is known of it
)

// Waits reports whether one in this state waits for somebody's word.
func (s MemberState) Waits() bool {
	return s == WaitingAnswer || s == WaitingUser || s == WaitingApproval
}

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

// Assignment returns the assignment that c announces of t, which is still at c.Revision;
// ok is false if the seat claims by itself.
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

// UnreadableMember stands for a member whose record, stored at that time, cannot be read, and
// why. Whoever lists members sees it; nobody is judged by it.
func UnreadableMember(a AgentID, why error, at time.Time) Member {
	return Member{AgentID: a, State: Unreadable, JoinedAt: at, UpdatedAt: at, LastError: Line(why)}
}

// Validate checks what whoever asks for a member may say of it.
func (m Member) Validate() error {
	return cmp.Or(oneOf("the approver", m.Approver), checkText("the prompt", m.Prompt, MaxTextBytes))
}

// Ended reports whether m belonged to an earlier embedded cluster on the storage of this one,
// so that its process, or its spawner, is gone for certain.
func (m Member) Ended(cluster string) bool {
	return (m.HasProcess() || m.State == Created) && Foreign(m.Cluster, cluster)
}

// ToSpawn is m as its next incarnation, which a process of that embedded cluster is about
// to find a process for.
func (m Member) ToSpawn(cluster string) Member {
	m.State, m.Incarnation, m.Cluster, m.Host, m.PID = Created, m.Incarnation+1, cluster, "", 0
	return m
}

// Foreign reports whether a process of one embedded cluster is none of another, which
// runs. Of two that use the same storage the first has ended.
func Foreign(cluster, running string) bool {
	return cluster != "" && running != "" && cluster != running
}

// Holder is m as one that may hold a task.
func (m Member) Holder() Holder {
	return Holder{Agent: m.AgentID, Incarnation: m.Incarnation, Role: m.Role, Gate: m.Gate(Task{})}
}

// HasProcess reports whether beats are to be expected of m.
func (m Member) HasProcess() bool {
	return (m.State == Joined || m.Parked()) && m.Backend != Person
}

// Parked reports whether m waits for somebody to mend its model endpoint, which gives it no usable
// answer, or its journal, which cannot be read; LastError says how.
func (m Member) Parked() bool { return m.State == WaitingModel || m.State == WaitingRepair }

// Absent returns why m will not come to a task that is reserved for it, in a team with these
// policies; "" if it may. A member that is lost and brought back may.
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

// Missing is how many members the team lacks of those of a role that are kept ready; 0 or less = none.
func (t Team) Missing(role Role, members []Member) int {
	missing := role.Ready
	for _, m := range members {
		if m.Role == role.Name && m.Fills(t.Policies) {
			missing--
		}
	}
	return missing
}

// Fills reports whether m counts against max_teammates and max_instances in a team with these
// policies. One that is lost and does not come back without a person has its name only.
func (m Member) Fills(p Policies) bool {
	return m.Counts() && (m.State != Lost || m.Absent(p) == "")
}

// Heartbeat is a heartbeat: who lives, and what it is at.
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

// InstructionFile is a file of the repository whose instructions a member was shown.
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

// Newer reports whether b is to replace last. A stale beat, as arrives in a burst
// after a reconnect, is known by its number and not by its age.
func (b Heartbeat) Newer(last Heartbeat) bool {
	if b.Incarnation != last.Incarnation {
		return b.Incarnation > last.Incarnation
	}
	return b.N > last.N
}

// SameAs reports whether nothing happened to the agent between two beats.
func (b Heartbeat) SameAs(o Heartbeat) bool {
	return b.AgentID == o.AgentID && b.Incarnation == o.Incarnation && b.Turn == o.Turn && b.InboxSeq == o.InboxSeq
}

// Quiet reports whether the agent would do nothing by itself and no job of it holds the team, see [Job.Holds].
func (b Heartbeat) Quiet() bool {
	return !slices.ContainsFunc(b.Jobs, Job.Holds) && ((b.State == Idle || b.State.Waits()) && !b.Unseen || b.Parked() || b.heldUp())
}

// WaitsForPerson reports whether the agent does nothing before a person answers it, or decides
// on its plan or on what a subagent asks for whose end it waits for.
func (b Heartbeat) WaitsForPerson() bool {
	return b.State == WaitingUser || b.State == WaitingApproval && b.Awaits == UserAgent || b.heldUp()
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

// Stalled reports whether the agent is at work and has made no progress for d. Who waits
// for an answer or a person, is idle or is parked makes none and has not stalled.
func (b Heartbeat) Stalled(d time.Duration) bool {
	works := b.State == Running || b.State == WaitingModel && !b.Parked() && b.Unseen
	return works && time.Duration(b.Still)*time.Second >= d
}

// Fill is how full the window of the agent's model is, in per cent; 0 if that is not
// known.
func (b Heartbeat) Fill() int {
	if b.Window == 0 {
		return 0
	}
	return 100 * b.Context / b.Window
}

// Parked reports whether the agent's model endpoint refuses it, or its journal cannot be
// read: it does nothing until somebody has mended that. An agent that waits through an
// outage is not.
func (b Heartbeat) Parked() bool {
	return b.State == WaitingModel && b.RetryAt != nil || b.State == WaitingRepair
}

// PromptMail is what the member was spawned with, as the first of its mail, which is stored in
// no stream; false if that is nothing. It is from whoever asked for the member.
func (m Member) PromptMail() (Message, bool) {
	mail := Message{ID: fmt.Sprintf("prompt-%d", max(m.PromptFor, 1)), Type: MsgMessage, From: cmp.Or(m.SpawnedBy, Leader), To: m.AgentID,
		Content: m.Prompt, Summary: Summarize(m.Prompt), CreatedAt: m.JoinedAt}
	if mail.From == UserAgent {
		mail.Type = MsgUser
	}
	return mail, strings.TrimSpace(m.Prompt) != ""
}
