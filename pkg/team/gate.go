package team

import "fmt"

// Stricter returns the stricter of two approvers: a person, the leader, none.
func (a Approver) Stricter(b Approver) Approver {
	switch {
	case a == ByHuman || b == ByHuman:
		return ByHuman
	case a == ByLeader || b == ByLeader:
		return ByLeader
	}
	return ""
}

// Gated returns t with a gate: its holder needs a plan that by has approved; "" changes nothing. A gate stays
// with the task until it ends, whichever agent holds it, and becomes only stricter.
func (t Task) Gated(by Approver) Task {
	t.Gate = t.Gate.Stricter(by)
	return t
}

// Gate returns the approver of the plan that m needs before it changes anything while it holds t (the zero
// Task: none); "" if it needs no plan. A person needs none.
func (m Member) Gate(t Task) Approver {
	if m.Backend == Person {
		return ""
	}
	gate := t.Gate
	if m.PlanMode {
		gate = gate.Stricter(ByLeader)
	}
	if gate != "" { // a member whose plans a person approves has none that the leader does
		gate = gate.Stricter(m.Approver)
	}
	return gate
}

// mayHold returns an error if h would have to approve its own plan for t, else nil.
func (t Task) mayHold(h Holder) error {
	if t.Gate == "" || h.Agent != Leader {
		return nil
	}
	return Errorf(PermissionDenied, "%s needs a plan that is approved, and the leader submits none", t.ID).
		WithHint("give it to a teammate or to a person").WithModelHint("assign it to a teammate, which submits a plan for it")
}

// Note returns the note on the required plan for the holder of a task; gate approves the plan, a is the last
// plan submitted for the task (the zero Approval: none), and here reports whether a is for the present hold.
// shown reports whether the plan follows the note. Without a gate the note is "".
func (a Approval) Note(gate Approver, here bool) (note string, shown bool) {
	first := fmt.Sprintf("Before you change anything for this task, %s has to approve your plan.", Approval{Approver: gate}.approver())
	const again = "Read what you need to know, then call submit_plan"
	const waits = "End your turn; you are woken when it is decided on. Another plan would make this one void."
	switch {
	case gate == "":
		return "", false
	case a.ID == "":
		return fmt.Sprintf("%s %s.", first, again), false
	case a.Status == PlanRejected:
		return fmt.Sprintf("%s The plan %s of %s was rejected: %s\n%s with a better one. The rejected plan:", first, a.ID, a.author(), Clip(a.Feedback, 2000), again), true
	case !here:
		return fmt.Sprintf("%s The plan %s of %s does not count for you, since you hold the task now. %s, with the same plan if it fits. The plan:", first, a.ID, a.author(), again), true
	case a.Status == PlanPending && a.Author != "":
		return fmt.Sprintf("The plan of %s for this task is submitted again in your name, as %s, and still waits for the decision of %s. %s The plan:", a.Author, a.ID, a.Asks(), waits), true
	case a.Status == PlanPending:
		return fmt.Sprintf("Your plan %s for this task still waits for the decision of %s. %s The plan:", a.ID, a.Asks(), waits), true
	}
	return fmt.Sprintf("Your plan %s for this task is approved. Carry it out as it stands. The plan:", a.ID), true
}
