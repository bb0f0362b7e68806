package team

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Protocol is the version of what programs store and send: the field v of every record, and a mark of every stream. Another
// version is refused with both named, see package codec; no program reads or changes it.
const Protocol = 2

// TaskStatus is the status of a task.
type TaskStatus string

// The statuses of a task. Blocked is not one: it is derived from dependencies.
const (
	Pending    TaskStatus = "pending"
	InProgress TaskStatus = "in_progress"
	Completed  TaskStatus = "completed"
	Failed     TaskStatus = "failed"
	Cancelled  TaskStatus = "cancelled"
)

var taskStatuses = [...]TaskStatus{Pending, InProgress, Completed, Failed, Cancelled}

// TaskStatuses returns every status, in the order of a task's life.
func TaskStatuses() []TaskStatus { return slices.Clone(taskStatuses[:]) }

// otherWords maps other programs' words for a status to ours.
var otherWords = map[string]string{
	"done": "completed", "finished": "completed", "closed": "completed", "doing": "in_progress", "running": "in_progress", "active": "in_progress",
	"todo": "pending", "open": "pending", "aborted": "cancelled",
}

// meantStatus is [meant] for a status.
func meantStatus(s string, among []string, hint string) string {
	s = strings.ToLower(s)
	return meant(cmp.Or(otherWords[s], s), among, hint)
}

// ParseTaskStatus parses s; it reads "deleted" as cancelled.
func ParseTaskStatus(s string) (TaskStatus, error) {
	if s == "deleted" {
		return Cancelled, nil
	}
	if st := TaskStatus(s); st.Valid() {
		return st, nil
	}
	names := Strings(taskStatuses[:]...)
	return "", Errorf(InvalidArgument, "%q is not a task status", Clip(s, 40)).
		WithHint("%s", meantStatus(s, names, "a status is one of "+strings.Join(names, ", ")))
}

// Valid reports whether s is one of the statuses.
func (s TaskStatus) Valid() bool { return slices.Contains(taskStatuses[:], s) }

// Open reports whether a task in this status can still be worked on.
func (s TaskStatus) Open() bool { return s == Pending || s == InProgress }

// MaxAttempts is how often a task may be taken from a holder that had begun it (reaped or adopted, released after a
// nudge or the turn limit) before it fails.
const MaxAttempts = 3

// Task is one entry of the board and the JSON document stored under its id.
type Task struct {
	V               int             `json:"v"`
	ID              TaskID          `json:"id"`
	Title           string          `json:"title"`
	Description     string          `json:"description"`
	Status          TaskStatus      `json:"status"`
	Priority        int             `json:"priority"` // 0 normal, 1 high, 2 critical
	Dependencies    []TaskID        `json:"dependencies"`
	Role            string          `json:"role,omitempty"`         // only this role may claim it; "" = any
	ReservedFor     AgentID         `json:"reserved_for,omitempty"` // while pending: only this member may claim it; "" = any
	Lapses          bool            `json:"lapses,omitempty"`       // the reservation is for a member that lost the task without its doing, and ends after minutes
	Gate            Approver        `json:"gate,omitempty"`         // who approves the plan that its agent needs before it changes anything; "" = it needs none. See [Task.Gated]
	Assignee        AgentID         `json:"assignee"`               // who holds it, or held it last
	Incarnation     uint64          `json:"incarnation"`            // of the assignee when it claimed; 0 for a person
	Epoch           uint64          `json:"epoch"`                  // grows with every claim, adoption and reap
	Attempts        int             `json:"attempts"`               // see MaxAttempts
	Op              string          `json:"op"`                     // id of the write that made this copy
	Check           string          `json:"check,omitempty"`
	Supersedes      []TaskID        `json:"supersedes,omitempty"` // tasks whose checks no longer count once this one is merged
	DeliverablePath string          `json:"deliverable_path"`
	DeliverableReq  bool            `json:"deliverable_required,omitempty"`
	Digest          string          `json:"deliverable_digest,omitempty"` // of the stored deliverable, "sha256:" and hex; "" = none
	Artifacts       []Artifact      `json:"artifacts,omitempty"`          // other files that its holder has stored with the result
	Commit          string          `json:"commit,omitempty"`             // that has its work in the team's line, 40 hexadecimal digits; "" = none
	Undone          string          `json:"undone,omitempty"`             // the commit of the line that takes it back, or InFolder; "" = none
	Unmerged        int             `json:"unmerged,omitempty"`           // how often its work did not go into the line
	Returned        []Try           `json:"returned,omitempty"`           // the work that is not in the line, returned or not finished, without Reason; the newest last
	ResultSummary   string          `json:"result_summary"`
	Reason          string          `json:"reason,omitempty"`   // why it was released, failed or cancelled
	Declined        []Declined      `json:"declined,omitempty"` // who has put it back that could not do it as it stands, the newest last
	Metadata        json.RawMessage `json:"metadata,omitempty"`
	CreatedBy       AgentID         `json:"created_by"`
	CreatedAt       time.Time       `json:"created_at"`
	UpdatedAt       time.Time       `json:"updated_at"`
	UpdatedBy       AgentID         `json:"updated_by"` // who made this copy; of one that only adds work of a former holder, who made the copy before it
	ClaimedAt       *time.Time      `json:"claimed_at"`
	CompletedAt     *time.Time      `json:"completed_at"`

	Revision uint64 `json:"-"` // bucket revision this copy was read at; 0 if never stored
	Kept     Extra  `json:"-"` // fields of the stored record that this program does not know
}

// Artifact is a file that is stored with the result of a task, beside its deliverable.
type Artifact struct {
	Path   string `json:"path"`   // in the workspace
	Digest string `json:"digest"` // "sha256:" and hex
	Bytes  int64  `json:"bytes"`
}

// Fits reports whether t is for a member of this name and role: reserved for it, or unreserved and for any role or this
// one.
func (t Task) Fits(name AgentID, role string) bool {
	if t.ReservedFor != "" {
		return t.ReservedFor == name
	}
	return t.Role == "" || t.Role == role
}

// Before reports whether t is to be worked on before u: higher priority first,
// then the lower id as a number.
func (t Task) Before(u Task) bool { return t.Compare(u) < 0 }

// Compare orders tasks for work: it is negative if t comes before u.
func (t Task) Compare(u Task) int {
	return cmp.Or(cmp.Compare(u.Priority, t.Priority), cmp.Compare(t.ID.Number(), u.ID.Number()))
}

// Input is a dependency of a task with its result.
type Input struct {
	Task    TaskID  `json:"task"`
	Path    string  `json:"path,omitempty"` // of its deliverable; "" if there is none
	Title   string  `json:"title,omitempty"`
	By      AgentID `json:"by,omitempty"`      // who completed it
	Summary string  `json:"summary,omitempty"` // of its result
}

// Input returns the result of t, which is completed.
func (t Task) Input() Input {
	in := Input{Task: t.ID, Title: t.Title, By: t.Assignee, Summary: t.ResultSummary}
	if t.Digest != "" {
		in.Path = t.DeliverablePath
	}
	return in
}

// Holder is an incarnation of an agent, which may hold one task. Incarnation 0 is a person's seat, which has no
// process.
type Holder struct {
	Agent       AgentID  `json:"agent_id"`
	Incarnation uint64   `json:"incarnation"`
	Role        string   `json:"role,omitempty"`
	Gate        Approver `json:"gate,omitempty"` // who approves its plans, if it is in plan mode; "" = it is not
}

// HeldBy reports whether h holds t.
func (t Task) HeldBy(h Holder) bool {
	return t.Status == InProgress && t.Assignee == h.Agent && t.Incarnation == h.Incarnation
}

// Untouched reports whether t is unchanged since its creation.
func (t Task) Untouched() bool {
	return t.Status == Pending && t.Epoch == 0 && t.UpdatedAt.Equal(t.CreatedAt)
}
