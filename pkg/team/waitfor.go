package team

// WaitFor states what a member waits for.
type WaitFor string

// What members wait for. "" is nothing.
const (
	ForPerson     WaitFor = "person"     // a person's answer to its question
	ForAnswer     WaitFor = "answer"     // another member's answer
	ForPlan       WaitFor = "plan"       // the decision on its plan
	ForPermission WaitFor = "permission" // a person's leave for a call
	ForBudget     WaitFor = "budget"     // a person to raise a budget that is used up
	ForModel      WaitFor = "model"      // its model, which gives no turn; or the repair of its journal
	ForMerge      WaitFor = "merge"      // the merge of its work into the integration branch
	ForJob        WaitFor = "job"        // its subagents and commands in the background
)

// WaitsFor returns what the member of b waits for, as far as the heartbeat shows: it does not distinguish a decision on
// a call from one on a plan.
func (b Heartbeat) WaitsFor() WaitFor {
	switch {
	case b.State == WaitingUser:
		return ForPerson
	case b.State == WaitingBudget:
		return ForBudget
	case b.State == WaitingApproval:
		return ForPlan
	case b.State == WaitingAnswer && b.Awaits == "":
		return ForJob
	case b.State == WaitingAnswer:
		return ForAnswer
	case b.Parked(), b.Trouble != "":
		return ForModel
	}
	return ""
}
