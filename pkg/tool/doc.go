// Package tool is what a model may call: a [Tool] is a name, a schema inferred
// from a Go struct and a function; a [Set] is the tools that one agent knows and
// the ones of them that it may use.
//
// A call is validated against the schema before the function sees it, and it is
// always answered: [Set.Run] turns errors and panics into results that a model
// can act on. Who may use what is decided there and nowhere else; a prompt can
// talk a model into asking for a tool, not into getting it.
//
// The tools themselves are elsewhere: shell and files in tool/workspace, the
// team's in tool/teamtool. Taking calls out of a model's turn and putting the
// results back into the conversation is the work of package agent.
package tool
