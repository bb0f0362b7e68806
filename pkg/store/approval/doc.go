// Package approval is the plan gate (rule 10): a member in plan mode changes nothing before its plan is approved.
//
// [Plans] stores the records: a submitted plan with its hash, and the decision on it. [Gate] guards the tools of one
// member in plan mode, so it holds whatever text the model was sent, and by whom. Each change of a record is one
// compare-and-set; pkg/team/approval.go has the pure rules: the transitions of a record, and the calls that it allows.
//
// Package tool decides which calls a gate checks. Package agent waits for a decision, and handles the mail about it.
package approval
