package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ApprovalStatus is the status of a request for approval.
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

// Approval is an agent's plan that needs approval, or a call that a person has to allow, with the decision on
// it. It is for the task that the agent held when it asked, until another agent holds that task, or for no
// task. [Approval.Again] and [Approval.Inherited] describe its use by the next holder.
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

// NewApproval returns the request of h, which holds t (the zero Task: none), to have a plan approved. Errors:
// InvalidArgument.
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

// Again returns the undecided plan a as h, the present holder of its task t, submits it; by decides. It
// returns the same request every time for one hold.
func (a Approval) Again(h Holder, t Task, by Approver) (Approval, error) {
	next, err := NewApproval(h, t, by, a.Plan, *t.ClaimedAt)
	if author := a.author(); author != h.Agent {
		next.Author = author
	}
	return next, err
}

// author returns the agent that wrote the plan of a.
func (a Approval) author() AgentID { return cmp.Or(a.Author, a.AgentID) }

// requestID returns the id of the request a: a hash of agent, task, approver and content.
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

// Intact reports whether the content of a still matches its id.
func (a Approval) Intact() bool {
	switch a.Kind {
	case "", OfPlan:
		return a.Call == nil && a.PlanHash == hashOf(a.Plan, wholeHash) && a.ID == a.requestID()
	case OfPermission, OfRespawn:
		return a.Call != nil && a.Plan == "" && a.Call.Digest == a.Call.digest() && a.ID == a.requestID()
	}
	return false
}

// Asks returns the member that decides: the leader, or a person.
func (a Approval) Asks() AgentID {
	if a.Approver == ByHuman || !a.IsPlan() {
		return UserAgent
	}
	return Leader
}

// mayDecide reports whether by may decide on a; seated: by is a person's seat. A person always may, and the
// leader on a plan that asks it. No agent decides on its own request.
func (a Approval) mayDecide(by AgentID, seated bool) bool {
	return by != a.AgentID && (by == UserAgent || a.IsPlan() && by == a.Asks() || !a.IsPlan() && seated)
}

// IsFor reports whether a was asked for exactly the hold t, or a and t are both without a task. An adoption
// is the same hold.
func (a Approval) IsFor(t Task) bool {
	if a.Task == "" || t.ID == "" {
		return a.Task == t.ID
	}
	return a.Task == t.ID && a.ClaimedAt != nil && t.ClaimedAt != nil && a.ClaimedAt.Equal(*t.ClaimedAt)
}

// Held reports whether, by copies, the agent of a holds a's task and no other agent has held it since a was
// submitted. The agent may have lost the task with its process and claimed it again. A gap in copies counts
// as another agent.
func (a Approval) Held(copies []Task) bool {
	held := func(t Task) bool { return t.Status == InProgress && t.Assignee == a.AgentID }
	since := slices.IndexFunc(copies, func(t Task) bool { return held(t) && a.IsFor(t) })
	if since < 0 || !held(copies[len(copies)-1]) {
		return false
	}
	return !slices.ContainsFunc(copies[since:], func(t Task) bool { return t.Status == InProgress && !held(t) })
}

// about returns " for " and the task of a; "" without one.
func (a Approval) about() string {
	if a.Task == "" {
		return ""
	}
	return " for " + string(a.Task)
}

// Void returns why a decision on a is too late, or "" while its agent can use one. m is the agent's record
// (the zero Member: none); copies are the copies of a's task, if it has one.
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

// Decision is an answer to a plan, or to a call.
type Decision struct {
	By       AgentID
	Seated   bool // By is a person's seat
	Approve  bool
	Feedback string // required to reject a plan
	Scope    Scope  // of a permission; "" = [Once]
}

// Decide returns a with the decision d; void is the result of [Approval.Void]. Errors: PermissionDenied if d.By may not
// decide; InvalidArgument for the rejection of a plan without feedback, or a scope that a does not take; Conflict if a
// is decided already, changed since it was submitted, or void.
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

// Covers returns nil if the newest request a of h lets h proceed. The zero Approval stands for no request;
// here reports whether a is for the task that h holds, or for none ([Approval.IsFor], [Approval.Held]).
// Errors: PermissionDenied, with a hint.
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

// Await returns the record of the agent's wait for the decision on the plan a.
func (a Approval) Await() *Await {
	return &Await{Plan: a.ID, From: a.Asks(), About: Summarize(a.Plan), Task: a.Task}
}

// Use returns a, which covers h, as used: h has begun to carry it out.
func (a Approval) Use(h Holder) Approval {
	a.Status, a.Incarnation = PlanUsed, h.Incarnation
	return a
}

// Verdict returns the notice to the agent of a decided plan, or call.
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

// Joining returns the new member m with the settings of its role in t. Plan mode and a human approver hold if
// the spawn, the role or the team states so.
func (t Team) Joining(m Member) Member {
	role, _ := t.Role(m.Role) // one that is not there says nothing
	m.PlanMode = m.PlanMode || role.PlanMode || t.Policies.PlanMode
	m.Color = cmp.Or(m.Color, string(role.Color))
	if role.Approver == ByHuman || t.Policies.Approver == ByHuman {
		m.Approver = ByHuman
	}
	return m
}
