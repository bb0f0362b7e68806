// Package agent is the loop that both the leader and the teammates run: wait for input (mail, or a
// task), ask the model, run the tools it calls, ask again, until it answers with text only; then go
// idle.
//
// Input is in the journal before the model sees it. Answers of the model and results of tools are
// stored in the background, but always before a call begins that may change something. So after a
// kill at any point the next process continues from there.
//
// Package engine makes the turns; the agent is its owner (owner.go). conversation.go folds records
// of mail, tasks and goals into the model's messages, and state.go decides the next step; both are
// pure. run.go and input.go are the thin loop around them. A [Wait] describes the event that ends
// an agent's wait.
//
// The agent does not use NATS, and does not decide what a tool may do (package tool), who gets
// which task (board/index) or when the team is done (watchdog).
package agent
