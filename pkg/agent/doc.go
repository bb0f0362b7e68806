// Package agent is the loop that both the leader and the teammates run: wait for
// input (mail, or a task), ask the model, run the tools it calls, ask again, until
// it answers with text only; then go idle.
//
// Everything that enters the conversation is in the journal before the model sees
// it, and every answer of the model before a tool runs, so a process that is
// killed at any point is succeeded by one that goes on from there. conversation.go
// makes what the model is told from the records, purely; agent.go is the thin loop
// around it.
//
// The agent does not know NATS, and does not decide what a tool may do (package
// tool), who gets which task (board/index) or when the team is done (watchdog).
package agent
