package team

import (
	"bytes"
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

var taskStatuses = []TaskStatus{Pending, InProgress, Completed, Failed, Cancelled}

// TaskStatuses returns every status, in the order of a task's life.
func TaskStatuses() []TaskStatus { return slices.Clone(taskStatuses) }

// ParseTaskStatus checks s; "deleted" is read as cancelled.
func ParseTaskStatus(s string) (TaskStatus, error) {
	if s == "deleted" {
		return Cancelled, nil
	}
	if st := TaskStatus(s); st.Valid() {
		return st, nil
	}
	return "", Errorf(InvalidArgument, "%q is not a task status", clip(s, 40)).
		WithHint("a status is one of pending, in_progress, completed, failed, cancelled")
}

// Valid reports whether s is one of the statuses.
func (s TaskStatus) Valid() bool { return slices.Contains(taskStatuses, s) }

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
	Digest          string          `json:"deliverable_digest,omitempty"` // of the stored deliverable, "sha256:" and hex; "" = none
	ResultSummary   string          `json:"result_summary"`
	Reason          string          `json:"reason,omitempty"` // why it was released, failed or cancelled
	Metadata        json.RawMessage `json:"metadata,omitempty"`
	CreatedBy       AgentID         `json:"created_by"`
	CreatedAt       time.Time       `json:"created_at"`
	UpdatedAt       time.Time       `json:"updated_at"`
	UpdatedBy       AgentID         `json:"updated_by"` // who made this copy
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
	After          []int // tasks of the same call, by position from 0, that must be completed first
	Role           string
	Check          string // a shell command that must succeed before the task is completed
	DeliverableReq bool
	Metadata       json.RawMessage
}

// Validate checks everything that can be checked without the board.
func (n NewTask) Validate() error {
	if err := checkTitle(trimTitle(n.Title)); err != nil {
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
	if all := len(n.Dependencies) + len(n.After); all > MaxDependencies {
		return Errorf(InvalidArgument, "%d dependencies are too many, the limit is %d", all, MaxDependencies).
			WithHint("let a task in between wait for some of them")
	}
	if err := checkMetadata(n.Metadata); err != nil {
		return err
	}
	if n.Role != "" {
		return checkName("role", n.Role)
	}
	return nil
}

// Task returns n as the pending task with this id. Spaces around its title are left
// out.
func (n NewTask) Task(id TaskID, by AgentID, now time.Time) Task {
	n.Title = trimTitle(n.Title)
	deps := slices.Clone(n.Dependencies)
	slices.SortFunc(deps, func(a, b TaskID) int { return cmp.Compare(a.Number(), b.Number()) })
	return Task{
		V: Protocol, ID: id, Title: n.Title, Description: n.Description, Status: Pending,
		Priority: n.Priority, Dependencies: slices.Compact(deps), Role: n.Role, Check: n.Check,
		DeliverableReq: n.DeliverableReq, DeliverablePath: deliverablePath(id, n.Title),
		Metadata: n.Metadata, CreatedBy: by, CreatedAt: now, UpdatedAt: now, UpdatedBy: by,
	}
}

// ValidatePlan checks the tasks of one call as far as that can be done without the
// board. Errors: InvalidArgument for a task that is not valid, or one that comes
// after itself, also by way of others.
func ValidatePlan(tasks []NewTask) error {
	if len(tasks) == 0 {
		return Errorf(InvalidArgument, "there are no tasks to create").WithHint("name at least one")
	}
	after := make(map[int][]int, len(tasks))
	for i, n := range tasks {
		if err := n.Validate(); err != nil {
			return inCall(tasks, i, err)
		}
		for _, at := range n.After {
			if at < 0 || at >= len(tasks) {
				return inCall(tasks, i, Errorf(InvalidArgument, "it comes after task %d, and the call has %d", at+1, len(tasks)).
					WithHint("count the tasks of the call from 0"))
			}
		}
		after[i] = n.After
	}
	for _, i := range stuck(after) { // hardly ever any
		if path := Cycle(after, i); path != nil {
			return inCall(tasks, i, Errorf(InvalidArgument, "it would wait for itself (a cycle of %d)", len(path)).WithHint(breakCycle))
		}
	}
	return nil
}

// breakCycle is what to do about tasks that wait for each other.
const breakCycle = "leave out one of the dependencies on the way round"

// stuck returns those of the tasks 0 to len(after)-1 that could never begin: those on
// a cycle, and those that wait for one. (Kahn's algorithm: what waits for nothing is
// taken away until nothing is left that does.)
func stuck(after map[int][]int) (left []int) {
	waits := make([]int, len(after))
	blocks := make([][]int, len(after))
	for i, deps := range after {
		waits[i] = len(deps)
		for _, d := range deps {
			blocks[d] = append(blocks[d], i)
		}
	}
	var free []int
	for i, n := range waits {
		if n == 0 {
			free = append(free, i)
		}
	}
	for ; len(free) > 0; free = free[1:] {
		for _, i := range blocks[free[0]] {
			if waits[i]--; waits[i] == 0 {
				free = append(free, i)
			}
		}
	}
	for i, n := range waits {
		if n > 0 {
			left = append(left, i)
		}
	}
	return left
}

// Plan returns the tasks of one call, which are valid, as they are stored, the first
// under the id with the number first.
func Plan(tasks []NewTask, first int, by AgentID, now time.Time) []Task {
	plan := make([]Task, len(tasks))
	for i, n := range tasks {
		n.Dependencies = slices.Clone(n.Dependencies)
		for _, at := range n.After {
			n.Dependencies = append(n.Dependencies, MakeTaskID(first+at))
		}
		plan[i] = n.Task(MakeTaskID(first+i), by, now)
	}
	return plan
}

// inCall says which task of a call an error is about.
func inCall(tasks []NewTask, i int, err error) error {
	if len(tasks) == 1 {
		return err
	}
	return fmt.Errorf("task %d (%s): %w", i+1, clip(tasks[i].Title, 40), err)
}

// Cycle returns a path from x back to x along deps, which names what each one waits
// for, or nil if there is none.
func Cycle[T comparable](deps map[T][]T, x T) []T {
	seen := map[T]bool{}
	var walk func(at T, path []T) []T
	walk = func(at T, path []T) []T {
		path = append(path, at)
		for _, d := range deps[at] {
			if d == x {
				return path
			}
			if !seen[d] {
				seen[d] = true
				if p := walk(d, path); p != nil {
					return p
				}
			}
		}
		return nil
	}
	return walk(x, nil)
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

// startAnew is what to do about a task that is over.
const startAnew = "what is over stays so: add a new task for what is left to do"

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
		return t, Errorf(InvalidState, "%s is %s and cannot be claimed", t.ID, t.Status).WithHint(startAnew)
	case t.Role != "" && h.Role != "" && t.Role != h.Role:
		return t, Errorf(PermissionDenied, "%s is for role %s, %s is a %s", t.ID, t.Role, h.Agent, h.Role).
			WithHint("the leader may assign it")
	}
	return t.hold(h, now), nil
}

func (t Task) hold(h Holder, now time.Time) Task {
	t.Status, t.Assignee, t.Incarnation, t.Epoch = InProgress, h.Agent, h.Incarnation, t.Epoch+1
	t.ClaimedAt, t.UpdatedAt, t.UpdatedBy, t.Reason = &now, now, h.Agent, ""
	return t
}

// Assignment is the word of somebody with the leader's rights that an agent is to
// take a task.
type Assignment struct {
	Task  TaskID  `json:"task"`
	By    AgentID `json:"by"`
	Take  bool    `json:"take,omitempty"` // also from somebody else who holds it
	Epoch uint64  `json:"epoch"`          // of the task as whoever assigns it has seen it
}

// Assign returns t as given to h: its role does not matter. Errors: those of Claim,
// but that somebody else who holds the task loses it if the assignment says so;
// Conflict if somebody has claimed the task since the assignment was made, which may
// have been under way for long.
func (t Task) Assign(h Holder, a Assignment, now time.Time) (Task, error) {
	if t.Status.Open() && t.Epoch != a.Epoch {
		return t, Errorf(Conflict, "%s was claimed since it was to be assigned: %s", t.ID, t.whereabouts()).WithHint("look at it, and assign it again if it is still to be")
	}
	h.Role = "" // fits any task
	if !a.Take || t.Status != InProgress || t.HeldBy(h) {
		var err error
		if t, err = t.Claim(h, now); err != nil {
			return t, err
		}
	} else {
		t = t.hold(h, now)
	}
	t.UpdatedBy = a.By
	return t, nil
}

// Adopt returns t as taken over by a later incarnation of its holder. It is no
// attempt: the work goes on from the journal.
func (t Task) Adopt(h Holder, now time.Time) (Task, error) {
	if t.Status != InProgress || t.Assignee != h.Agent || t.Incarnation >= h.Incarnation {
		return t, Errorf(InvalidState, "%s is not held by an earlier incarnation of %s", t.ID, h.Agent).WithHint("claim it, if it is pending")
	}
	t.Incarnation, t.Epoch, t.UpdatedAt, t.UpdatedBy = h.Incarnation, t.Epoch+1, now, h.Agent
	return t, nil
}

// Done is what a holder says of a task that it has done.
type Done struct {
	Summary string // what was done and where it is; required
	Digest  string // of the deliverable as it was stored; "" if there is none
}

// Validate checks what can be checked without the task.
func (d Done) Validate() error {
	if strings.TrimSpace(d.Summary) == "" {
		return Errorf(InvalidArgument, "result_summary is empty").WithHint("say in a few sentences what was done and where it is")
	}
	return checkText("result_summary", d.Summary, MaxTextBytes)
}

// Complete returns t as completed by its holder. A former holder gets Conflict,
// naming the present one; one who never held it PermissionDenied. That its check
// passes and its deliverable is there is made sure of before (package completion).
func (t Task) Complete(h Holder, epoch uint64, d Done, now time.Time) (Task, error) {
	if err := t.mayWrite(h, epoch); err != nil {
		return t, err
	}
	if err := d.Validate(); err != nil {
		return t, err
	}
	t.Status, t.ResultSummary, t.Digest, t.Reason = Completed, d.Summary, d.Digest, ""
	t.CompletedAt, t.UpdatedAt, t.UpdatedBy = &now, now, h.Agent
	return t, nil
}

// MayComplete returns the error that Complete would give h, whatever it says of
// the result; it is asked before a check is run.
func (t Task) MayComplete(h Holder, epoch uint64) error { return t.mayWrite(h, epoch) }

// FailCheck returns t after its check has failed: still the holder's, one attempt
// more; the last attempt fails it.
func (t Task) FailCheck(h Holder, epoch uint64, why string, now time.Time) (Task, error) {
	if err := t.mayWrite(h, epoch); err != nil {
		return t, err
	}
	t.Attempts++
	t.Reason, t.UpdatedAt, t.UpdatedBy = clip("the check failed: "+why, 1000), now, h.Agent
	return t.giveUpAtLast(), nil
}

// mayWrite is the fence: only the incarnation and epoch of the claim may go on
// writing. Epoch 0 is a writer that does not know its epoch (a restarted one, a seat);
// whether that one held the task before others did, only older copies tell ([LostBy]).
func (t Task) mayWrite(h Holder, epoch uint64) error {
	switch {
	case t.HeldBy(h) && (epoch == 0 || epoch == t.Epoch):
		return nil
	case !t.Status.Open() && (epoch == 0 || epoch == t.Epoch):
		return t.over()
	case epoch != 0 || t.Assignee == h.Agent: // it did hold it once
		return t.lost()
	default:
		return Errorf(PermissionDenied, "%s is not yours: %s", t.ID, t.whereabouts()).WithHint("claim a task before you work on it")
	}
}

// lost is the error of a former holder's write.
func (t Task) lost() error {
	return Errorf(Conflict, "%s is no longer yours: %s", t.ID, t.whereabouts()).WithHint("stop working on it")
}

// over is the error of a write to a task that has ended.
func (t Task) over() error {
	return Errorf(InvalidState, "%s is already %s", t.ID, t.Status).WithHint(startAnew)
}

// LostBy tells a former holder from one who never held the task, as its record does not
// if others held it since: it returns the Conflict of a former holder's write if agent
// holds the task in one of its copies, oldest first, and else nil.
func LostBy(copies []Task, agent AgentID) error {
	if !slices.ContainsFunc(copies, func(t Task) bool { return t.Status == InProgress && t.Assignee == agent }) {
		return nil
	}
	return copies[len(copies)-1].lost()
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
	t.Status, t.Reason, t.UpdatedAt, t.UpdatedBy = Failed, cmp.Or(reason, "given up by "+string(a.Agent)), now, a.Agent
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
		return t, t.unheld()
	}
	if err := checkText("the reason", reason, MaxTextBytes); err != nil {
		return t, err
	}
	return t.free(a.Agent, cmp.Or(reason, "released by "+string(a.Agent)), attempt, now), nil
}

// Reap returns t as taken from a holder that was judged gone: the epoch grows,
// so that every later write of the old holder is refused.
func (t Task) Reap(reason string, attempt bool, now time.Time) (Task, error) {
	if t.Status != InProgress {
		return t, t.unheld()
	}
	t.Epoch++
	return t.free(Watchdog, reason, attempt, now), nil
}

// unheld is the error of taking a pending task from its holder.
func (t Task) unheld() error {
	return Errorf(InvalidState, "%s is %s and held by nobody", t.ID, t.Status).WithHint("there is nothing to put back: whoever is to have it can claim it")
}

// free keeps Assignee as "held it last", so that the former holder can be told
// Conflict rather than PermissionDenied.
func (t Task) free(by AgentID, reason string, attempt bool, now time.Time) Task {
	t.Status, t.Reason, t.UpdatedAt, t.UpdatedBy, t.ClaimedAt = Pending, reason, now, by, nil
	if attempt {
		t.Attempts++
	}
	return t.giveUpAtLast()
}

func (t Task) giveUpAtLast() Task {
	if t.Attempts >= MaxAttempts {
		t.Status = Failed
		t.Reason = fmt.Sprintf("given up after %d attempts; the last: %s", t.Attempts, t.Reason)
	}
	return t
}

// Cancel returns t as cancelled; it takes the leader's rights.
func (t Task) Cancel(a Actor, reason string, now time.Time) (Task, error) {
	switch {
	case !a.Leads:
		return t, Errorf(PermissionDenied, "only the leader or a person may cancel a task").WithHint("release it, or ask the leader")
	case !t.Status.Open():
		return t, t.over()
	}
	if err := checkText("the reason", reason, MaxTextBytes); err != nil {
		return t, err
	}
	t.Status, t.Reason, t.UpdatedAt, t.UpdatedBy = Cancelled, cmp.Or(reason, "cancelled by "+string(a.Agent)), now, a.Agent
	return t, nil
}

// mayEnd lets somebody with the leader's rights take the task from whoever holds it,
// or, if an epoch is named, from that holder only.
func (t Task) mayEnd(a Actor, epoch uint64) error {
	if a.Leads && t.Status.Open() && (epoch == 0 || epoch == t.Epoch) {
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
	return e.Metadata == nil && !e.TouchesWork()
}

// TouchesGraph reports whether e changes dependencies, which needs the board's
// guard against cycles.
func (e Edit) TouchesGraph() bool { return len(e.AddDependencies)+len(e.RemoveDependencies) > 0 }

// Apply returns t with the edit made by somebody; if t says all that already it is
// returned as it was, with its time and author, whatever its status: whoever was not
// answered may repeat an edit. Else only a pending task can be edited (the assignee of a
// task in progress works on what it was told), except for metadata. Errors: Conflict
// while it is in progress; InvalidState once it is over; InvalidArgument.
func (e Edit) Apply(t Task, by AgentID, now time.Time) (Task, error) {
	next, err := e.made(t)
	switch {
	case err != nil:
		return t, err
	case next.Says(t):
		return t, nil
	case t.Status == InProgress && e.TouchesWork():
		return t, Errorf(Conflict, "%s is being worked on by %s and cannot be edited", t.ID, t.Assignee).
			WithHint("send %s a message, or release the task first", t.Assignee)
	case t.Status != Pending && e.TouchesWork():
		return t, Errorf(InvalidState, "%s is %s and cannot be edited", t.ID, t.Status).WithHint(startAnew)
	}
	next.UpdatedAt, next.UpdatedBy = now, by
	return next, nil
}

// TouchesWork reports whether e changes more than metadata: what there is to do.
func (e Edit) TouchesWork() bool {
	return e.Title != nil || e.Description != nil || e.Priority != nil || e.TouchesGraph()
}

// made is t as the edit makes it.
func (e Edit) made(t Task) (Task, error) {
	deps, err := e.dependencies(t)
	if err != nil {
		return t, err
	}
	n := NewTask{Title: t.Title, Description: t.Description, Priority: t.Priority, Dependencies: deps, Role: t.Role, Metadata: e.Metadata}
	if e.Title != nil {
		n.Title = *e.Title
	}
	if e.Description != nil {
		n.Description = *e.Description
	}
	if e.Priority != nil {
		n.Priority = *e.Priority
	}
	judged := n
	if e.Title == nil { // what stays is not judged: it may have been let in by an older program
		judged.Title = string(t.ID)
	}
	if err := judged.Validate(); err != nil {
		return t, err
	}
	edited := n.Task(t.ID, t.CreatedBy, t.CreatedAt)
	next := t
	next.Title, next.Description, next.Priority, next.Dependencies = edited.Title, edited.Description, edited.Priority, edited.Dependencies
	if e.Metadata != nil {
		next.Metadata = e.Metadata
	}
	return next, nil
}

// dependencies returns those of t as the edit makes them.
func (e Edit) dependencies(t Task) ([]TaskID, error) {
	for _, d := range e.RemoveDependencies {
		if slices.Contains(e.AddDependencies, d) {
			return nil, Errorf(InvalidArgument, "the dependency on %s is to be both added and removed", d).WithHint("leave one of both out")
		}
	}
	return slices.DeleteFunc(append(slices.Clone(t.Dependencies), e.AddDependencies...), func(d TaskID) bool {
		return slices.Contains(e.RemoveDependencies, d)
	}), nil
}

// Says reports whether t says what u says: nothing that an [Edit] can change differs.
func (t Task) Says(u Task) bool {
	return t.Title == u.Title && t.Description == u.Description && t.Priority == u.Priority &&
		slices.Equal(t.Dependencies, u.Dependencies) && bytes.Equal(compact(t.Metadata), compact(u.Metadata))
}

// compact is metadata without spaces, as the store may have left it; none is {}, as
// it is printed.
func compact(m json.RawMessage) []byte {
	if len(m) == 0 {
		return []byte("{}")
	}
	var b bytes.Buffer
	if json.Compact(&b, m) != nil {
		return m
	}
	return b.Bytes()
}
