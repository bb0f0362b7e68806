// Package agent is the loop that both the leader and the teammates run: wait for
// input (mail, or a task), ask the model, run the tools it calls, ask again, until
// it answers with text only; then go idle.
//
// Input is in the journal before the model sees it. Answers of the model and results of
// tools are stored in the background, but always before a call begins that may change
// something. So after a kill at any point the next process goes on from there.
//
// The turns are those of package engine, whose owner the agent is (owner.go). conversation.go makes what
// the model is told of mail, tasks and goals from the records, as a pure function.
// state.go judges what comes next, also purely. run.go and input.go are the thin loop
// around them. What an agent waits for is a value, a [Wait].
//
// The agent does not know NATS, and does not decide what a tool may do (package
// tool), who gets which task (board/index) or when the team is done (watchdog).
package agent
