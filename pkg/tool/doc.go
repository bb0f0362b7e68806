// Package tool defines the functions that a model may call: a [Tool] is a name, a schema and a function, made by [New];
// a [Set] is the tools that an agent knows, and those of them that it may use.
//
// A call is validated against the schema before the function runs, and is always answered: [Set.Run] turns errors and
// panics into results that a model can act on. Set alone decides who may use which tool: a prompt can talk a model into
// asking for a tool, not into getting it. [Traits] hold for all calls of a tool, an [Output] is the outcome of one
// call, and each [Gate] is asked before a call.
//
// The tools themselves are elsewhere: shell and files in tool/workspace, the team's in tool/teamtool; tool/dialect has
// other ways to call them. Package agent takes calls out of a model's turn and puts the results into the conversation.
package tool
