// Package model asks a language model for the next turn of a conversation.
//
// [Client] speaks the OpenAI protocols with any endpoint that offers them, always
// streaming. It promises that a [Reply] is a complete turn: the endpoint said why it
// stopped. Whatever broke off before that is thrown away and asked for again, so no
// tool ever runs from half an answer. A call that gives no turn comes back as a
// [Refusal], which says what to do about it, whether a status told so, an error in
// the stream or a body that is none of a model endpoint. The types know nothing of a
// wire format.
//
// go-openai writes the requests and reads the events of the answers. It would hide headers, drop
// provider fields and take many a broken stream for a good end, so the exchange with the endpoint,
// the end of a turn and what is in it are judged here.
//
// The package does not run tools (package tool), keep conversations (package
// journal) or count budgets (package agent). Its sub-package rehearsal is an
// endpoint that plays from a script.
package model
