// Package rehearsal provides an OpenAI-compatible model endpoint that plays a script, so that a whole team can be
// tested over real HTTP without a model. docs/rehearsal.md describes the script's format.
//
// It chooses a reply from the request alone: the agent, by the last line of the system message, and the conversation.
// The server stores only how often it played a fault, so agents may be killed and restarted, and several teams may
// share one server.
//
// It is as strict as the strictest endpoints in use and answers 400 to a conversation that one of them would refuse.
package rehearsal
