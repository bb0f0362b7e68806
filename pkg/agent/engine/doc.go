// Package engine holds a conversation with a model: it asks for one turn after another, runs
// the tools that a turn calls, records both, and makes the conversation shorter when it is
// larger than the model's window or is refused.
//
// It works over a model, a set of tools and a journal, and nothing else: see the example. Who
// has a task, mail, a heartbeat or a team is the engine's [Owner] (package agent): it is asked
// before each step, may interrupt one at any time, and knows what a shorter conversation must keep
// ([Memory]).
//
// What is recorded leads to the same conversation again, in whichever process: [Conversation] is a
// fold of the journal's records.
package engine
