// Package engine runs the model-and-tools loop of one conversation: it asks the model for one turn
// after another, runs the tools that a turn calls, records both, and shortens the conversation when
// it exceeds the model's window or is refused.
//
// It needs only a model, a set of tools and a journal: see the example. It does not know tasks,
// mail, heartbeats or the team. Its [Owner] (package agent) does: the engine asks it before each
// step, the owner may interrupt a step at any time, and its [Memory] decides what a shorter
// conversation keeps.
//
// [Conversation] is a fold of the journal's records: the same records give the same conversation in
// any process.
package engine
