// Package rehearsal is an OpenAI-compatible model endpoint that plays from a
// script, so that a whole team can be tried and tested over real HTTP without a
// model. The script's format is described in docs/rehearsal.md.
//
// A reply is chosen from the request alone: who asks, by the last line of the
// system message, and what the conversation holds. The server remembers nothing
// but how often it played a fault, so agents may be killed and restarted, and
// several teams may share one server.
//
// It is as strict as the strictest endpoints in use and answers 400 to a
// conversation that one of them would refuse.
package rehearsal
