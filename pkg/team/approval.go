package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ApprovalStatus is where a request for approval stands.
type ApprovalStatus string

// The statuses of a plan, and of a request to make a call: pending -> approved -> used, or
// pending -> rejected.
const (
	PlanPending  ApprovalStatus = "pending"
	PlanApproved ApprovalStatus = "approved"
	PlanRejected ApprovalStatus = "rejected"
	PlanUsed     ApprovalStatus = "used" // its agent has begun to carry it out, or has made the call
)

// maxPlanBytes bounds a plan, so that it fits into the message that asks for its approval.
const maxPlanBytes = MaxTextBytes - 4<<10

// Approval is a plan that an agent has submitted, since it or its task needs one, or a call that a person has to
// allow, and what became of it. It is for the task that the agent held then, until somebody else
// holds that, or for no task. See [Approval.Again] and [Approval.Inherited] for what the next holder has of it.
type Approval struct {
	V           int            `json:"v"`
	Kind        ApprovalKind   `json:"kind,omitempty"` // absent = plan
	ID          string         `json:"id"`             // the request_id; made from what is asked, so another plan has another one
	Op          string         `json:"op"`
	AgentID     AgentID        `json:"agent_id"`
	Incarnation uint64         `json:"incarnation"`          // that has asked; once it is used, that has used it
	Task        TaskID         `json:"task,omitempty"`       // "" = none
	ClaimedAt   *time.Time     `json:"claimed_at,omitempty"` // of the task, which tells one hold from the next; nil = no task
	Approver    Approver       `json:"approver"`
	Author      AgentID        `json:"author,omitempty"`    // of a plan that is submitted again for the next holder of its task: the agent that has written it; "" = agent_id
	Plan        string         `json:"plan,omitempty"`      // of a permission: ""
	PlanHash    string         `json:"plan_hash,omitempty"` // SHA-256, in hexadecimal digits
	Call        *AskedCall     `json:"call,omitempty"`      // of a permission; nil of a plan
	Scope       Scope          `json:"scope,omitempty"`     // of a permission that is approved
	Status      ApprovalStatus `json:"status"`
	Feedback    string         `json:"feedback,omitempty"`
	DecidedBy   AgentID        `json:"decided_by,omitempty"`
	CreatedAt   time.Time      `json:"created_at"`
	DecidedAt   *time.Time     `json:"decided_at,omitempty"`
	EndedAt     *time.Time     `json:"ended_at,omitempty"` // since when it is good for nothing more; nil = it may be

	Revision uint64 `json:"-"`
	Kept     Extra  `json:"-"` // fields of the stored record that this program does not know
}

// NewApproval is the request of h, a member that holds t (the zero Task: none), to have a
// plan approved. Errors: InvalidArgument.
func NewApproval(h Holder, t Task, by Approver, plan string, now time.Time) (Approval, error) {
	if strings.TrimSpace(plan) == "" {
		return Approval{}, Errorf(InvalidArgument, "the plan is empty").WithHint("say what you will change, in which files, and how you will check it")
	}
	if len(plan) > maxPlanBytes {
		return Approval{}, Errorf(InvalidArgument, "the plan is %d bytes long, the limit is %d", len(plan), maxPlanBytes).WithHint("say it shorter")
	}
	if err := checkText("the plan", plan, maxPlanBytes); err != nil {
		return Approval{}, err
	}
	a := Approval{AgentID: h.Agent, Incarnation: h.Incarnation, Task: t.ID, ClaimedAt: t.ClaimedAt, Approver: by,
		Plan: plan, PlanHash: hashOf(plan, wholeHash), Status: PlanPending, CreatedAt: now}
	a.ID = a.requestID()
	return a, nil
}

// Again returns the plan a, which waits for a decision, as h submits it that holds its task t now; by decides. However
// often it is made for one hold, it is the same request.
func (a Approval) Again(h Holder, t Task, by Approver) (Approval, error) {
	next, err := NewApproval(h, t, by, a.Plan, *t.ClaimedAt)
	if author := a.author(); author != h.Agent {
		next.Author = author
	}
	return next, err
}

// author is the agent that has written the plan of a.
func (a Approval) author() AgentID { return cmp.Or(a.Author, a.AgentID) }

// requestID is the id of what a asks: who may do what, by whose leave.
func (a Approval) requestID() string {
	claimed := ""
	if a.ClaimedAt != nil {
		claimed = a.ClaimedAt.UTC().Format(time.RFC3339Nano)
	}
	asked := fmt.Sprintf("%s\n%s\n%s\n%s\n%s\n%s", a.AgentID, a.Task, claimed, a.Approver, a.CreatedAt.UTC().Format(time.RFC3339Nano), a.PlanHash)
	if a.Call != nil { // without a time: a successor's same call finds the same record
		asked = fmt.Sprintf("%s\n%s\n%s\n%s\n%s\n%d", OfPermission, a.AgentID, a.Task, claimed, a.Call.Digest, a.Call.Number)
	}
	return hashOf(asked, 8)
}

// Intact reports whether a still asks what its id was given for.
func (a Approval) Intact() bool {
	switch a.Kind {
	case "", OfPlan:
		return a.Call == nil && a.PlanHash == hashOf(a.Plan, wholeHash) && a.ID == a.requestID()
	case OfPermission, OfRespawn:
		return a.Call != nil && a.Plan == "" && a.Call.Digest == a.Call.digest() && a.ID == a.requestID()
	}
	return false
}

// Asks is who is asked: the leader, or a person.
func (a Approval) Asks() AgentID {
	if a.Approver == ByHuman || !a.IsPlan() {
		return UserAgent
	}
	return Leader
}

// mayDecide reports whether by may, seated if it is a person's seat: a person may always, and the
// leader where it is asked for a plan. No agent decides on a request of its own.
func (a Approval) mayDecide(by AgentID, seated bool) bool {
	return by != a.AgentID && (by == UserAgent || a.IsPlan() && by == a.Asks() || !a.IsPlan() && seated)
}

// IsFor reports whether a was asked for the very hold that t is, or for no task as t is none.
// An adoption is no new hold.
func (a Approval) IsFor(t Task) bool {
	if a.Task == "" || t.ID == "" {
		return a.Task == t.ID
	}
	return a.Task == t.ID && a.ClaimedAt != nil && t.ClaimedAt != nil && a.ClaimedAt.Equal(*t.ClaimedAt)
}

// Held reports whether the agent of a holds a's task by the last of the task's copies, and
// nobody else has since a was submitted: it may have lost the task with its process, and
// claimed it again. What the copies do not tell counts as somebody else.
func (a Approval) Held(copies []Task) bool {
	held := func(t Task) bool { return t.Status == InProgress && t.Assignee == a.AgentID }
	since := slices.IndexFunc(copies, func(t Task) bool { return held(t) && a.IsFor(t) })
	if since < 0 || !held(copies[len(copies)-1]) {
		return false
	}
	return !slices.ContainsFunc(copies[since:], func(t Task) bool { return t.Status == InProgress && !held(t) })
}

// about names the task of a, if it has one.
func (a Approval) about() string {
	if a.Task == "" {
		return ""
	}
	return " for " + string(a.Task)
}

// Void returns why a decision on a would come too late, or "" while its agent can still make
// use of one. m is the agent's record, the zero Member if there is none, and copies are those
// of a's task, if it has one.
func (a Approval) Void(m Member, copies []Task) string {
	switch {
	case m.AgentID == "", m.State == Stopped:
		return string(a.AgentID) + " has left the team"
	case a.Kind == OfRespawn && (m.State != Lost || m.Incarnation != a.Incarnation):
		return string(a.AgentID) + " is back"
	case a.Task != "" && !a.Held(copies):
		return string(a.AgentID) + " does not hold " + string(a.Task) + " any more, or somebody else did in between"
	case a.EndedAt != nil:
		return string(a.AgentID) + " has gone on to something else"
	}
	return ""
}

// Decision is somebody's answer to a plan, or to a call.
type Decision struct {
	By       AgentID
	Seated   bool // By is a person's seat
	Approve  bool
	Feedback string // required to reject a plan
	Scope    Scope  // of a permission; "" = [Once]
}

// Decide returns a as d leaves it, with void as [Approval.Void] has it. Errors:
// PermissionDenied if d.By may not decide; InvalidArgument for a plan's rejection without
// feedback, and for a scope that a does not take; Conflict if a was decided on before, has changed
// since it was submitted, or is void.
func (a Approval) Decide(d Decision, void string, now time.Time) (Approval, error) {
	switch {
	case d.By == a.AgentID:
		return a, Errorf(PermissionDenied, "nobody approves a %s of its own", a.noun())
	case !a.mayDecide(d.By, d.Seated):
		return a, Errorf(PermissionDenied, "the %s %s of %s is to be approved by %s", a.noun(), a.ID, a.AgentID, a.approver()).
			WithHint("a person decides with `teamctl approvals`").WithModelHint("a person decides; wait for it")
	case !a.Intact():
		return a, Errorf(Conflict, "the %s %s of %s has been changed since it was submitted", a.noun(), a.ID, a.AgentID).WithHint("have it submitted again")
	case a.Status != PlanPending:
		return a, Errorf(Conflict, "the %s %s of %s was decided on before: %s by %s", a.noun(), a.ID, a.AgentID, a.decided(), a.DecidedBy)
	case void != "":
		return a, Errorf(Conflict, "the %s %s of %s is void: %s", a.noun(), a.ID, a.AgentID, void).WithHint("`teamctl approvals` lists what waits for a decision now: the next holder of a task submits the plan of the one before again")
	case a.IsPlan() && !d.Approve && strings.TrimSpace(d.Feedback) == "":
		return a, Errorf(InvalidArgument, "a rejection needs feedback").WithHint("say what is to be different")
	}
	if err := checkText("the feedback", d.Feedback, maxPlanBytes); err != nil {
		return a, err
	}
	if err := a.takes(d); err != nil {
		return a, err
	}
	a.Status, a.Feedback, a.DecidedBy, a.DecidedAt = PlanRejected, d.Feedback, d.By, &now
	if d.Approve {
		a.Status = PlanApproved
		if !a.IsPlan() {
			a.Scope = cmp.Or(d.Scope, Once)
		}
	}
	return a, nil
}

func (a Approval) approver() string {
	if a.Asks() == UserAgent {
		return "a person"
	}
	return "the leader or a person"
}

func (a Approval) decided() ApprovalStatus {
	if a.Status == PlanUsed {
		return PlanApproved
	}
	return a.Status
}

// Covers returns nil if a, the newest request of h, lets h do what it is at. The zero
// Approval is that nothing was asked for; here tells whether a is for the task that h holds,
// or for none ([Approval.IsFor], [Approval.Held]). Errors: PermissionDenied, which says what
// to do.
func (a Approval) Covers(h Holder, here bool) error {
	const anew = "read what you need to know, then call submit_plan"
	switch {
	case a.ID == "":
		return Errorf(PermissionDenied, "you need an approved plan, and have none").WithHint(anew)
	case a.AgentID != h.Agent:
		return Errorf(PermissionDenied, "the plan %s is of %s", a.ID, a.AgentID).WithHint(anew)
	case a.Incarnation > h.Incarnation:
		return Errorf(PermissionDenied, "the plan %s is of a process that has replaced yours", a.ID)
	case a.EndedAt != nil || !here:
		return Errorf(PermissionDenied, "you need an approved plan, and your plan %s%s is not for what you do now", a.ID, a.about()).WithHint(anew)
	case a.Status == PlanPending:
		return Errorf(PermissionDenied, "your plan %s is not approved yet: %s decides", a.ID, a.Asks()).WithHint("end your turn; you are woken when it is decided on")
	case a.Status == PlanRejected:
		return Errorf(PermissionDenied, "your plan %s was rejected: %s", a.ID, Clip(a.Feedback, 2000)).WithHint("change the plan and call submit_plan again")
	case a.Status != PlanApproved && a.Status != PlanUsed, !a.mayDecide(a.DecidedBy, false), !a.IsPlan(), !a.Intact():
		return Errorf(PermissionDenied, "the approval of your plan %s is not valid", a.ID).WithHint("call submit_plan again")
	}
	return nil
}

// Await is how the agent of the plan a waits for the decision.
func (a Approval) Await() *Await {
	return &Await{Plan: a.ID, From: a.Asks(), About: Summarize(a.Plan), Task: a.Task}
}

// Use returns a, which covers h, as it stands once h has begun to carry it out.
func (a Approval) Use(h Holder) Approval {
	a.Status, a.Incarnation = PlanUsed, h.Incarnation
	return a
}

// Verdict is what the agent of a decided plan, or call, is told.
func (a Approval) Verdict() string {
	if !a.IsPlan() {
		return a.callVerdict()
	}
	if a.Status == PlanRejected {
		return fmt.Sprintf("Your plan %s%s is rejected: %s\nChange it as that says and submit it again.", a.ID, a.about(), a.Feedback)
	}
	text := fmt.Sprintf("Your plan %s%s is approved. Carry it out as it stands.", a.ID, a.about())
	if a.Feedback != "" {
		text += "\n" + a.Feedback
	}
	return text
}

// Joining returns m, who is about to become a member of t, as its role has it. It is bound by the plan
// gate: plan mode and a human approver hold if the spawn, the role or the team says so.
func (t Team) Joining(m Member) Member {
	role, _ := t.Role(m.Role) // one that is not there says nothing
	m.PlanMode = m.PlanMode || role.PlanMode || t.Policies.PlanMode
	m.Color = cmp.Or(m.Color, string(role.Color))
	if role.Approver == ByHuman || t.Policies.Approver == ByHuman {
		m.Approver = ByHuman
	}
	return m
}
