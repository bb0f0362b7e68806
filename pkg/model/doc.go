// Package model asks a language model for the next turn of a conversation.
//
// [Client] speaks the OpenAI chat completions protocol with any endpoint that
// offers it, always streaming. It promises that a [Reply] is a complete turn: the
// endpoint said why it stopped. Whatever broke off before that is thrown away and
// asked for again, so no tool ever runs from half an answer. The types know
// nothing of that wire format, so that another can stand beside it.
//
// The package does not run tools (package tool), keep conversations (package
// journal) or count budgets (package agent). Its sub-package rehearsal is an
// endpoint that plays from a script.
package model
