package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Actor is the agent that asks for a change of a task.
type Actor struct {
	Holder
	Leads bool // has the leader's rights: the leader, or a person outside a seat
}

// startAgain is the hint about a task that is over.
const startAgain = "what is over stays so: add a new task for what is left to do"

// Claim returns t as claimed by h, which ends a reservation. The board, not t, checks dependencies. Errors: Conflict if
// another agent holds it or has it reserved, or it is completed; InvalidState if it failed or was cancelled;
// PermissionDenied for a role that is not h's, unless it is reserved for h, and for the leader, if the task needs a
// plan.
func (t Task) Claim(h Holder, now time.Time) (Task, error) {
	switch {
	case t.Status == InProgress:
		return t, Errorf(Conflict, "%s is held by %s", t.ID, t.Assignee).WithHint("choose another task")
	case t.Status == Completed:
		// A loser must not get another code only because the winner was quick.
		return t, Errorf(Conflict, "%s was completed by %s", t.ID, t.Assignee).WithHint("choose another task")
	case t.Status != Pending:
		return t, Errorf(InvalidState, "%s is %s and cannot be claimed", t.ID, t.Status).WithHint(startAgain)
	case t.ReservedFor != "" && t.ReservedFor != h.Agent:
		return t, Errorf(Conflict, "%s is reserved for %s", t.ID, t.ReservedFor).WithHint("choose another task, or ask whoever leads")
	case t.Role != "" && h.Role != "" && t.Role != h.Role && t.ReservedFor == "":
		return t, Errorf(PermissionDenied, "%s is for role %s, %s is a %s", t.ID, t.Role, h.Agent, h.Role).
			WithHint("the leader may assign it")
	}
	return t.hold(h, now)
}

// hold returns t as held by h. The same write adds the gate, if h is in plan mode.
func (t Task) hold(h Holder, now time.Time) (Task, error) {
	if err := t.mayHold(h); err != nil {
		return t, err
	}
	t = t.Gated(h.Gate)
	t.Status, t.Assignee, t.Incarnation, t.Epoch = InProgress, h.Agent, h.Incarnation, t.Epoch+1
	t.ClaimedAt, t.UpdatedAt, t.UpdatedBy, t.Reason, t.ReservedFor, t.Lapses = &now, now, h.Agent, "", "", false
	return t, nil
}

// Reserve returns t, which is pending, as reserved for a member: only that member may claim it, whatever its role. ""
// ends the reservation. If nothing changes, it returns t as it was. Errors: PermissionDenied without the leader's
// rights; Conflict if an agent holds it; InvalidState if it is over.
func (t Task) Reserve(member AgentID, a Actor, now time.Time) (Task, error) {
	switch {
	case !a.Leads:
		return t, Errorf(PermissionDenied, "only the leader or a person says for whom a task is").WithHint("ask the leader")
	case t.Status == InProgress:
		return t, Errorf(Conflict, "%s is held by %s", t.ID, t.Assignee).WithHint("release it first")
	case t.Status != Pending:
		return t, t.over()
	case t.ReservedFor != member || t.Lapses:
		t.ReservedFor, t.Lapses, t.UpdatedAt, t.UpdatedBy = member, false, now, a.Agent
	}
	return t, nil
}

// Assignment orders an agent to take a task, on behalf of the leader or a person.
type Assignment struct {
	Task  TaskID  `json:"task"`
	By    AgentID `json:"by"`
	Take  bool    `json:"take,omitempty"` // even from another holder
	Epoch uint64  `json:"epoch"`          // of the task when the assignment was made

	Revision uint64    `json:"revision,omitempty"` // at which the task must still be; 0 = any
	Until    time.Time `json:"until,omitzero"`     // its author waits so long, by the clock of the agent's process; zero = not known
}

// Assign returns t as given to h, whatever its role. Errors: those of Claim, except that with a.Take a held task
// changes hands; Conflict if the task has changed hands since the assignment was made, which may be long ago, if it is
// reserved for another member, since a newer decision reserves it first, and once a.Until has passed. now is the time
// in h's process.
func (t Task) Assign(h Holder, a Assignment, now time.Time) (Task, error) {
	if err := t.At(a.Revision); err != nil {
		return t, err
	}
	if !a.Until.IsZero() && now.After(a.Until) {
		return t, Errorf(Conflict, "the order of %s that %s takes %s came too late", a.By, h.Agent, t.ID).WithHint("assign it again if it is still to be")
	}
	if t.Status.Open() && t.Epoch != a.Epoch {
		return t, Errorf(Conflict, "%s has changed hands since it was to be assigned: %s", t.ID, t.whereabouts()).WithHint("look at it, and assign it again if it is still to be")
	}
	h.Role = "" // fits any task
	take := t.Claim
	if a.Take && t.Status == InProgress && !t.HeldBy(h) {
		take = t.hold
	}
	next, err := take(h, now)
	if err == nil {
		next.UpdatedBy = a.By
	}
	return next, err
}

// At returns nil if t is at that revision, or if revision is 0. Errors: Conflict, [ErrRevision].
func (t Task) At(revision uint64) error {
	if revision == 0 || t.Revision == revision {
		return nil
	}
	return Errorf(Conflict, "%s is at revision %d, and was to be changed at revision %d: it was %w", t.ID, t.Revision, revision, ErrRevision).
		WithHint("read it again, and decide anew")
}

// Adopt returns t as taken over by a later incarnation of its holder, which continues from the journal. attempt: the
// earlier incarnation was lost at work on it; the last attempt fails the task.
func (t Task) Adopt(h Holder, attempt bool, now time.Time) (Task, error) {
	if t.Status != InProgress || t.Assignee != h.Agent || t.Incarnation >= h.Incarnation {
		return t, Errorf(InvalidState, "%s is not held by an earlier incarnation of %s", t.ID, h.Agent).WithHint("claim it, if it is pending")
	}
	t.Epoch++
	if attempt && t.Attempts+1 >= MaxAttempts {
		return t.free(Watchdog, Freed{Reason: string(h.Agent) + " was lost at work on it", Attempt: true}, now), nil
	}
	if attempt {
		t.Attempts++
	}
	t.Incarnation, t.UpdatedAt, t.UpdatedBy = h.Incarnation, now, h.Agent
	return t, nil
}

// Done is a holder's report of a task that it has done.
type Done struct {
	Summary   string     // what was done and where it is; required
	Digest    string     // of the deliverable as it was stored; "" if there is none
	Artifacts []Artifact // as they were stored
	Commit    string     // that has the work in the team's line; "" if there is none
}

// Validate checks the fields that need no task.
func (d Done) Validate() error {
	if strings.TrimSpace(d.Summary) == "" {
		return Errorf(InvalidArgument, "result_summary is empty").WithHint("say in a few sentences what was done and where it is")
	}
	return checkText("result_summary", d.Summary, MaxTextBytes)
}

// Complete returns t as completed by its holder. A former holder gets Conflict, which names the present one; an agent
// that never held it PermissionDenied. Package completion has checked before that its check passes and its deliverable
// exists.
func (t Task) Complete(h Holder, epoch uint64, d Done, now time.Time) (Task, error) {
	if err := t.mayWrite(h, epoch); err != nil {
		return t, err
	}
	if err := d.Validate(); err != nil {
		return t, err
	}
	t.Status, t.ResultSummary, t.Digest, t.Artifacts, t.Commit = Completed, d.Summary, d.Digest, d.Artifacts, d.Commit
	t.Reason, t.Declined, t.Returned = "", nil, nil
	t.CompletedAt, t.UpdatedAt, t.UpdatedBy = &now, now, h.Agent
	return t, nil
}

// InFolder replaces the commit in [Task].Undone where members share the workspace.
const InFolder = "folder"

// Undo returns t, which stays completed, with its work undone by a commit of the integration branch, or [InFolder]. A
// repeated call changes nothing. Errors: InvalidState for a task that is not completed, or has merged no commit.
func (t Task) Undo(by AgentID, commit string, now time.Time) (Task, error) {
	if err := t.Undoable(); err != nil && (commit != InFolder || t.Status != Completed) {
		return t, err
	}
	if t.Undone == "" {
		t.Undone, t.UpdatedAt, t.UpdatedBy = commit, now, by
	}
	return t, nil
}

// Undoable returns the error that Undo would return.
func (t Task) Undoable() error {
	switch {
	case t.Status != Completed:
		return Errorf(InvalidState, "%s is %s: only what a completed task has merged is undone", t.ID, t.Status)
	case t.Commit == "":
		return Errorf(InvalidState, "%s has merged no commit: it has changed no file, or its holder worked in the shared workspace", t.ID)
	}
	return nil
}

// MayComplete returns the error that Complete would return to h for a valid result. Callers ask before a check runs.
func (t Task) MayComplete(h Holder, epoch uint64) error { return t.mayWrite(h, epoch) }

// FailCheck returns t after its check has failed, with the output in f.Reason: the holder keeps it, one attempt is
// counted; the last attempt fails it, with f.Work.
func (t Task) FailCheck(h Holder, epoch uint64, f Freed, now time.Time) (Task, error) {
	if err := t.mayWrite(h, epoch); err != nil {
		return t, err
	}
	t.Attempts++
	t.Reason, t.UpdatedAt, t.UpdatedBy = Clean("the check failed: "+f.Reason, 1000), now, h.Agent
	if t = t.giveUpAtLast(); t.Status == Failed && f.Work != nil {
		t = t.Left(*f.Work)
	}
	return t, nil
}

// mayWrite is the fence: only the incarnation and epoch of the claim may continue writing. Epoch 0 is a writer that
// does not know its epoch (a restarted one, a seat); only older copies show whether it held the task earlier
// ([LostBy]).
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

// lost returns the error for a former holder's write.
func (t Task) lost() error {
	return Errorf(Conflict, "%s is no longer yours: %s", t.ID, t.whereabouts()).WithHint("stop working on it")
}

// over returns the error for a write to a task that has ended.
func (t Task) over() error {
	return Errorf(InvalidState, "%s is already %s", t.ID, t.Status).WithHint(startAgain)
}

// LostBy returns the Conflict of a former holder's write if agent holds the task in one of its copies, oldest first,
// else nil. The record alone does not show a former holder if others held the task since.
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

// Fail returns t as failed by its holder or by an actor with the leader's rights, for f.Reason and with f.Work.
func (t Task) Fail(a Actor, epoch uint64, f Freed, now time.Time) (Task, error) {
	if err := t.mayEnd(a, epoch); err != nil {
		return t, err
	}
	if t.Status != InProgress {
		return t, Errorf(InvalidState, "%s is %s; only a task in progress can fail", t.ID, t.Status).WithHint("cancel it instead")
	}
	if err := checkText("the reason", f.Reason, MaxTextBytes); err != nil {
		return t, err
	}
	if t.Status, t.Reason, t.UpdatedAt, t.UpdatedBy = Failed, cmp.Or(f.Reason, "given up by "+string(a.Agent)), now, a.Agent; f.Work != nil {
		t = t.Left(*f.Work)
	}
	return t, nil
}

// Freed states how a hold of a task ends without its completion.
type Freed struct {
	Reason  string // for people and for the next holder; "" = by whom
	Attempt bool   // it counts as one (the reminder or the turn limit was the cause); the last attempt fails the task
	Keep    bool   // its holder lost it without its doing and is to come back: it is reserved for that one for minutes (package watchdog)
	Work    *Try   // the work of this hold that was stored, without Reason; nil if there is none that can be taken up
}

// Release returns t to pending, by its holder or with the leader's rights, which also end the reservation of a pending
// task.
func (t Task) Release(a Actor, epoch uint64, f Freed, now time.Time) (Task, error) {
	if a.Leads && t.Status == Pending && t.ReservedFor != "" && (epoch == 0 || epoch == t.Epoch) {
		return t.Reserve("", a, now)
	}
	if err := t.mayEnd(a, epoch); err != nil {
		return t, err
	}
	if t.Status != InProgress {
		return t, t.unheld()
	}
	if err := checkText("the reason", f.Reason, MaxTextBytes); err != nil {
		return t, err
	}
	f.Reason = cmp.Or(f.Reason, "released by "+string(a.Agent))
	return t.free(a.Agent, f, now), nil
}

// Reap returns t as taken from a holder that was judged gone. The epoch grows, so that later writes of the old holder
// are refused.
func (t Task) Reap(f Freed, now time.Time) (Task, error) {
	if t.Status != InProgress {
		return t, t.unheld()
	}
	t.Epoch++
	return t.free(Watchdog, f, now), nil
}

// unheld returns the error for taking a task that no agent holds.
func (t Task) unheld() error {
	return Errorf(InvalidState, "%s is %s and held by nobody", t.ID, t.Status).WithHint("there is nothing to put back: whoever is to have it can claim it")
}

// free keeps the Assignee, the last holder, so that a former holder gets Conflict rather than PermissionDenied.
func (t Task) free(by AgentID, f Freed, now time.Time) Task {
	t.Status, t.Reason, t.UpdatedAt, t.UpdatedBy, t.ClaimedAt = Pending, f.Reason, now, by, nil
	if f.Attempt {
		t.Attempts++
	}
	if f.Work != nil {
		t = t.Left(*f.Work)
	}
	t = t.giveUpAtLast()
	if f.Keep && t.Status == Pending {
		t.ReservedFor, t.Lapses = t.Assignee, true
	}
	return t
}

func (t Task) giveUpAtLast() Task {
	if t.Attempts >= MaxAttempts {
		t.Status = Failed
		t.Reason = fmt.Sprintf("given up after %d attempts; the last: %s", t.Attempts, t.Reason)
	}
	return t
}

// Cancel returns t as cancelled. It requires the leader's rights.
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
	t.ReservedFor, t.Lapses = "", false
	return t, nil
}

// mayEnd lets an actor with the leader's rights take the task from any holder, or, if epoch is given, from that hold
// only.
func (t Task) mayEnd(a Actor, epoch uint64) error {
	if a.Leads && t.Status.Open() && (epoch == 0 || epoch == t.Epoch) {
		return nil
	}
	return t.mayWrite(a.Holder, epoch)
}
