// Package agui answers clients of the Agent User Interaction Protocol (AG-UI): one request
// sets a team a goal, and a stream of events tells what becomes of it.
//
// The goal is the run. The leader speaks for it. Each run of another member is a subagent of
// it, and what that member says and does bears the id of its run. The board is the state: a
// snapshot first, and then a JSON patch (RFC 6902) for each change. Mail is told by events
// of type CUSTOM.
//
// The order of events is that of the protocol, whatever the team does: a run begins first and
// ends last, each agent has one text open at most, and nothing is open when the run ends.
package agui
