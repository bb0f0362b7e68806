// Package model calls a language model for the next turn of a conversation.
//
// [Client] calls any endpoint with one of the OpenAI protocols or Anthropic's Messages, always streaming. A [Reply] is
// always a complete turn: the endpoint sent a finish reason. An answer that breaks off before is discarded and
// requested again, so no tool ever runs from half an answer. A call without a turn returns a [Refusal] with advice,
// whether a status reported the error, the stream, or a body that is not from a model endpoint. The types are
// independent of wire formats.
//
// go-openai writes the requests and reads the events of the answers. It would hide headers, drop provider fields and
// accept many broken streams, so this package handles the exchange, and checks the end of a turn and its content.
//
// The package does not run tools (package tool), store conversations (package journal) or count budgets (package
// agent). Its sub-package rehearsal is an endpoint that plays a script.
package model
