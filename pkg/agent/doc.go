// Package agent is the loop that both the leader and the teammates run: wait for
// input (mail, or a task), ask the model, run the tools it calls, ask again, until
// it answers with text only; then go idle.
//
// Input is in the journal before the model sees it. Answers of the model and results of
// tools are stored in the background, but always before a call begins that may change
// something. So after a kill at any point the next process goes on from there.
//
// conversation.go makes what the model is told from the records, as a pure function.
// state.go judges what comes next, also purely. run.go and input.go are the thin loop
// around them.
//
// The agent does not know NATS, and does not decide what a tool may do (package
// tool), who gets which task (board/index) or when the team is done (watchdog).
package agent
