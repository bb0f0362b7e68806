package team

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Protocol is the version in the field v of every record. A record of another
// version is refused, with both named.
const Protocol = 1

// TaskStatus is where a task stands.
type TaskStatus string

// The statuses of a task. Blocked is not one: it is derived from dependencies.
const (
	Pending    TaskStatus = "pending"
	InProgress TaskStatus = "in_progress"
	Completed  TaskStatus = "completed"
	Failed     TaskStatus = "failed"
	Cancelled  TaskStatus = "cancelled"
)

// taskStatuses lists every status, in the order of a task's life.
var taskStatuses = []TaskStatus{Pending, InProgress, Completed, Failed, Cancelled}

// ParseTaskStatus checks s; "deleted" is read as cancelled.
func ParseTaskStatus(s string) (TaskStatus, error) {
	if s == "deleted" {
		return Cancelled, nil
	}
	if st := TaskStatus(s); slices.Contains(taskStatuses, st) {
		return st, nil
	}
	return "", Errorf(InvalidArgument, "%q is not a task status", clip(s, 40)).
		WithHint("a status is one of pending, in_progress, completed, failed, cancelled")
}

// Open reports whether the task can still change by somebody working on it.
func (s TaskStatus) Open() bool { return s == Pending || s == InProgress }

// MaxAttempts is how often a task may be taken away from somebody who had begun
// it (reaped, released after a nudge or the turn limit) before it is failed.
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
	Role            string          `json:"role,omitempty"` // only this role may claim it; "" = any
	Assignee        AgentID         `json:"assignee"`       // who holds it, or held it last
	Incarnation     uint64          `json:"incarnation"`    // of the assignee when it claimed; 0 for a person
	Epoch           uint64          `json:"epoch"`          // grows with every claim, adoption and reap
	Attempts        int             `json:"attempts"`       // see MaxAttempts
	Op              string          `json:"op"`             // id of the write that made this copy
	Check           string          `json:"check,omitempty"`
	DeliverablePath string          `json:"deliverable_path"`
	DeliverableReq  bool            `json:"deliverable_required,omitempty"`
	ResultSummary   string          `json:"result_summary"`
	Reason          string          `json:"reason,omitempty"` // why it was released, failed or cancelled
	Metadata        json.RawMessage `json:"metadata,omitempty"`
	CreatedBy       AgentID         `json:"created_by"`
	CreatedAt       time.Time       `json:"created_at"`
	UpdatedAt       time.Time       `json:"updated_at"`
	ClaimedAt       *time.Time      `json:"claimed_at"`
	CompletedAt     *time.Time      `json:"completed_at"`

	Revision uint64 `json:"-"` // bucket revision this copy was read at; 0 if never stored
	Kept     Extra  `json:"-"` // fields of the stored record that this program does not know
}

// NewTask is what a creator says of a task; the board adds the rest.
type NewTask struct {
	Title          string
	Description    string
	Priority       int
	Dependencies   []TaskID
	Role           string
	Check          string
	DeliverableReq bool
	Metadata       json.RawMessage
}

// Validate checks everything that can be checked without the board.
func (n NewTask) Validate() error {
	if err := checkTitle(n.Title); err != nil {
		return err
	}
	if err := checkText("the description", n.Description, MaxTextBytes); err != nil {
		return err
	}
	if err := checkText("the check", n.Check, MaxTextBytes); err != nil {
		return err
	}
	if n.Priority < 0 || n.Priority > 2 {
		return Errorf(InvalidArgument, "priority %d is out of range", n.Priority).WithHint("0 is normal, 1 high, 2 critical")
	}
	if len(n.Dependencies) > MaxDependencies {
		return Errorf(InvalidArgument, "%d dependencies are too many, the limit is %d", len(n.Dependencies), MaxDependencies)
	}
	if err := checkMetadata(n.Metadata); err != nil {
		return err
	}
	if n.Role != "" {
		return checkName("role", n.Role)
	}
	return nil
}

// Task returns the n as the pending task with this id.
func (n NewTask) Task(id TaskID, by AgentID, now time.Time) Task {
	deps := slices.Clone(n.Dependencies)
	slices.SortFunc(deps, func(a, b TaskID) int { return cmp.Compare(a.Number(), b.Number()) })
	return Task{
		V: Protocol, ID: id, Title: n.Title, Description: n.Description, Status: Pending,
		Priority: n.Priority, Dependencies: slices.Compact(deps), Role: n.Role, Check: n.Check,
		DeliverableReq: n.DeliverableReq, DeliverablePath: deliverablePath(id, n.Title),
		Metadata: n.Metadata, CreatedBy: by, CreatedAt: now, UpdatedAt: now,
	}
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

func deliverablePath(id TaskID, title string) string {
	slug := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(title), "-"), "-")
	if len(slug) > 60 {
		slug = strings.TrimRight(slug[:60], "-")
	}
	return fmt.Sprintf("deliverables/%s-%s.md", id, cmp.Or(slug, "task"))
}

// Before reports whether t is to be worked on before u: higher priority first,
// then the lower id as a number.
func (t Task) Before(u Task) bool { return t.Compare(u) < 0 }

// Compare orders tasks for work: it is negative if t comes before u.
func (t Task) Compare(u Task) int {
	return cmp.Or(cmp.Compare(u.Priority, t.Priority), cmp.Compare(t.ID.Number(), u.ID.Number()))
}

// Input is a dependency of a task and where its result lies.
type Input struct {
	Task TaskID `json:"task"`
	Path string `json:"path"`
}

// Holder is one incarnation of an agent, which may hold one task. Incarnation 0
// is a person's seat, which has no process.
type Holder struct {
	Agent       AgentID `json:"agent_id"`
	Incarnation uint64  `json:"incarnation"`
	Role        string  `json:"role,omitempty"`
}

// HeldBy reports whether h holds t right now.
func (t Task) HeldBy(h Holder) bool {
	return t.Status == InProgress && t.Assignee == h.Agent && t.Incarnation == h.Incarnation
}

// Actor is who asks for a change of a task.
type Actor struct {
	Holder
	Leads bool // has the leader's rights: the leader, or a person outside a seat
}

// Claim returns t as it is once h has claimed it. Dependencies are not t's own
// and are judged by the board. Errors: Conflict if somebody holds it or has
// completed it, InvalidState if it failed or was cancelled, PermissionDenied for a
// role that is not h's.
func (t Task) Claim(h Holder, now time.Time) (Task, error) {
	switch {
	case t.Status == InProgress:
		return t, Errorf(Conflict, "%s is held by %s", t.ID, t.Assignee).WithHint("choose another task")
	case t.Status == Completed:
		// A loser must not be told something else only because the winner was quick.
		return t, Errorf(Conflict, "%s was completed by %s", t.ID, t.Assignee).WithHint("choose another task")
	case t.Status != Pending:
		return t, Errorf(InvalidState, "%s is %s and cannot be claimed", t.ID, t.Status)
	case t.Role != "" && h.Role != "" && t.Role != h.Role:
		return t, Errorf(PermissionDenied, "%s is for role %s, %s is a %s", t.ID, t.Role, h.Agent, h.Role).
			WithHint("the leader may assign it")
	}
	t.Status, t.Assignee, t.Incarnation, t.Epoch = InProgress, h.Agent, h.Incarnation, t.Epoch+1
	t.ClaimedAt, t.UpdatedAt, t.Reason = &now, now, ""
	return t, nil
}

// Adopt returns t as taken over by a later incarnation of its holder. It is no
// attempt: the work goes on from the journal.
func (t Task) Adopt(h Holder, now time.Time) (Task, error) {
	if t.Status != InProgress || t.Assignee != h.Agent || t.Incarnation >= h.Incarnation {
		return t, Errorf(InvalidState, "%s is not held by an earlier incarnation of %s", t.ID, h.Agent)
	}
	t.Incarnation, t.Epoch, t.UpdatedAt = h.Incarnation, t.Epoch+1, now
	return t, nil
}

// Complete returns t as completed by its holder. A former holder gets Conflict,
// naming the present one; one who never held it PermissionDenied.
func (t Task) Complete(h Holder, epoch uint64, summary string, now time.Time) (Task, error) {
	if err := t.mayWrite(h, epoch); err != nil {
		return t, err
	}
	if strings.TrimSpace(summary) == "" {
		return t, Errorf(InvalidArgument, "result_summary is empty").WithHint("say in a few sentences what was done and where it is")
	}
	if err := checkText("result_summary", summary, MaxTextBytes); err != nil {
		return t, err
	}
	t.Status, t.ResultSummary, t.Reason = Completed, summary, ""
	t.CompletedAt, t.UpdatedAt = &now, now
	return t, nil
}

// mayWrite is the fence: only the incarnation and epoch of the claim may go on
// writing. Epoch 0 is a writer that does not know its epoch (a restarted one).
func (t Task) mayWrite(h Holder, epoch uint64) error {
	switch {
	case t.HeldBy(h) && (epoch == 0 || epoch == t.Epoch):
		return nil
	case !t.Status.Open() && (epoch == 0 || epoch == t.Epoch):
		return Errorf(InvalidState, "%s is already %s", t.ID, t.Status)
	case epoch != 0 || t.Assignee == h.Agent: // it did hold it once
		return Errorf(Conflict, "%s is no longer yours: %s", t.ID, t.whereabouts()).WithHint("stop working on it")
	default:
		return Errorf(PermissionDenied, "%s is not yours: %s", t.ID, t.whereabouts()).WithHint("claim a task before you work on it")
	}
}

func (t Task) whereabouts() string {
	if t.Status == InProgress {
		return fmt.Sprintf("it is held by %s (epoch %d)", t.Assignee, t.Epoch)
	}
	return "it is " + string(t.Status)
}

// Fail returns t as given up by its holder or by somebody with the leader's
// rights.
func (t Task) Fail(a Actor, epoch uint64, reason string, now time.Time) (Task, error) {
	if err := t.mayEnd(a, epoch); err != nil {
		return t, err
	}
	if t.Status != InProgress {
		return t, Errorf(InvalidState, "%s is %s; only a task in progress can fail", t.ID, t.Status).WithHint("cancel it instead")
	}
	if err := checkText("the reason", reason, MaxTextBytes); err != nil {
		return t, err
	}
	t.Status, t.Reason, t.UpdatedAt = Failed, cmp.Or(reason, "given up by "+string(a.Agent)), now
	return t, nil
}

// Release returns t to pending, by its holder or with the leader's rights. If
// attempt is set it counts as one (the nudge or the turn limit was the cause),
// and the last attempt fails the task.
func (t Task) Release(a Actor, epoch uint64, reason string, attempt bool, now time.Time) (Task, error) {
	if err := t.mayEnd(a, epoch); err != nil {
		return t, err
	}
	if t.Status != InProgress {
		return t, Errorf(InvalidState, "%s is %s and held by nobody", t.ID, t.Status)
	}
	if err := checkText("the reason", reason, MaxTextBytes); err != nil {
		return t, err
	}
	return t.free(cmp.Or(reason, "released by "+string(a.Agent)), attempt, now), nil
}

// Reap returns t as taken from a holder that was judged gone: the epoch grows,
// so that every later write of the old holder is refused.
func (t Task) Reap(reason string, attempt bool, now time.Time) (Task, error) {
	if t.Status != InProgress {
		return t, Errorf(InvalidState, "%s is %s and held by nobody", t.ID, t.Status)
	}
	t.Epoch++
	return t.free(reason, attempt, now), nil
}

// free keeps Assignee as "held it last", so that the former holder can be told
// Conflict rather than PermissionDenied.
func (t Task) free(reason string, attempt bool, now time.Time) Task {
	t.Status, t.Reason, t.UpdatedAt, t.ClaimedAt = Pending, reason, now, nil
	if attempt {
		t.Attempts++
		if t.Attempts >= MaxAttempts {
			t.Status = Failed
			t.Reason = fmt.Sprintf("given up after %d attempts; the last: %s", t.Attempts, reason)
		}
	}
	return t
}

// Cancel returns t as cancelled; it takes the leader's rights.
func (t Task) Cancel(a Actor, reason string, now time.Time) (Task, error) {
	switch {
	case !a.Leads:
		return t, Errorf(PermissionDenied, "only the leader or a person may cancel a task").WithHint("release it, or ask the leader")
	case !t.Status.Open():
		return t, Errorf(InvalidState, "%s is already %s", t.ID, t.Status)
	}
	if err := checkText("the reason", reason, MaxTextBytes); err != nil {
		return t, err
	}
	t.Status, t.Reason, t.UpdatedAt = Cancelled, cmp.Or(reason, "cancelled by "+string(a.Agent)), now
	return t, nil
}

func (t Task) mayEnd(a Actor, epoch uint64) error {
	if a.Leads && t.Status.Open() {
		return nil
	}
	return t.mayWrite(a.Holder, epoch)
}

// Edit is a change of what a pending task says. Nil fields stay as they are.
type Edit struct {
	Title              *string
	Description        *string
	Priority           *int
	AddDependencies    []TaskID
	RemoveDependencies []TaskID
	Metadata           json.RawMessage
}

// Empty reports whether e changes nothing.
func (e Edit) Empty() bool {
	return e.Title == nil && e.Description == nil && e.Priority == nil && e.Metadata == nil && !e.TouchesGraph()
}

// TouchesGraph reports whether e changes dependencies, which needs the board's
// guard against cycles.
func (e Edit) TouchesGraph() bool { return len(e.AddDependencies)+len(e.RemoveDependencies) > 0 }

// Apply returns t with the edit made. Only a pending task can be edited (the
// assignee of a task in progress works on what it was told), except for metadata.
func (e Edit) Apply(t Task, now time.Time) (Task, error) {
	if t.Status != Pending && (e.Title != nil || e.Description != nil || e.Priority != nil || e.TouchesGraph()) {
		if t.Status == InProgress {
			return t, Errorf(Conflict, "%s is being worked on by %s and cannot be edited", t.ID, t.Assignee).WithHint("send %s a message", t.Assignee)
		}
		return t, Errorf(InvalidState, "%s is %s and cannot be edited", t.ID, t.Status)
	}
	n := NewTask{Title: t.Title, Description: t.Description, Priority: t.Priority, Role: t.Role, Metadata: e.Metadata}
	if e.Title != nil {
		n.Title = *e.Title
	}
	if e.Description != nil {
		n.Description = *e.Description
	}
	if e.Priority != nil {
		n.Priority = *e.Priority
	}
	n.Dependencies = slices.DeleteFunc(append(slices.Clone(t.Dependencies), e.AddDependencies...), func(d TaskID) bool {
		return slices.Contains(e.RemoveDependencies, d)
	})
	if err := n.Validate(); err != nil {
		return t, err
	}
	edited := n.Task(t.ID, t.CreatedBy, t.CreatedAt)
	t.Title, t.Description, t.Priority, t.Dependencies = edited.Title, edited.Description, edited.Priority, edited.Dependencies
	if e.Metadata != nil {
		t.Metadata = e.Metadata
	}
	t.UpdatedAt = now
	return t, nil
}
