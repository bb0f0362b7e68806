// Package tool is what a model may call: a [Tool] is a name, a schema and a function,
// made by [New]; a [Set] is the tools that one agent knows and the ones of them that it may use.
//
// A call is validated against the schema before the function sees it, and it is
// always answered: [Set.Run] turns errors and panics into results that a model
// can act on. Who may use what is decided there and nowhere else; a prompt can
// talk a model into asking for a tool, not into getting it. What holds for all calls of
// a tool is in its [Traits], what one call comes to in its [Output], and [Gate]s are
// asked before each.
//
// The tools themselves are elsewhere: shell and files in tool/workspace, the
// team's in tool/teamtool; tool/dialect has other ways to call them. Taking calls
// out of a model's turn and putting the results back into the conversation is the
// work of package agent.
package tool
