package agent

import "agentteam/pkg/agent/engine"

// urgentMail is the cause of an interrupt: the inbox has urgent mail with this sequence.
type urgentMail uint64

func (urgentMail) Error() string { return "urgent mail came" }

// notRun is the result of a call that is not run because urgent mail arrived.
const notRun = `{"error":"not run: urgent mail came; read it first, then make the calls that still make sense","code":"busy","status":"error"}`

// Urge reports urgent mail with this sequence in the agent's inbox. It cancels the model's call, or
// a tool's that yields, and skips the rest of the turn. It is safe for concurrent use and does not
// block.
func (a *Agent) Urge(seq uint64) {
	a.engine.Interrupt(engine.Interrupt{Cause: urgentMail(seq), Skip: notRun,
		Over: func() bool { return seq <= max(a.Taken().Seq, a.missed.Load()) }})
}

// urgent returns the highest sequence of urgent mail that is not taken in, or 0.
func (a *Agent) urgent() (seq uint64) {
	for _, i := range a.engine.Interrupts() {
		if u, ok := i.Cause.(urgentMail); ok && uint64(u) > a.conv.Inbox {
			seq = max(seq, uint64(u))
		}
	}
	return seq
}
