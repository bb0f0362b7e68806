// Package approval is the plan gate (rule 10): a member in plan mode changes nothing before
// a plan of its own is approved.
//
// [Plans] are the records: a plan that was submitted, with its hash, and what was decided.
// [Gate] is the one member's side: the tools of a member in plan mode are behind it, so it
// holds whatever the model was told, and by whom. Each change of a record is one
// compare-and-set; what the records may become, and what they allow, are the pure rules in
// pkg/team/approval.go.
//
// Which calls a gate is asked about is decided where tools are made (package tool). The
// waiting itself, and the mail about it, are the agent's (package agent).
package approval
