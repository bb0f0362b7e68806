// Package agui implements the Agent User Interaction Protocol (AG-UI): one request sets a goal for a team, and a stream
// of events reports its progress.
//
// The goal is the run of the leader. Each run of another member is a subagent of it, and the member's events have the
// id of its run. The board is the state: a snapshot first, and then a JSON patch (RFC 6902) for each change. Mail is
// reported by events of type CUSTOM.
//
// The order of events is that of the protocol, whatever the team does: a run begins first and ends last, each agent has
// at most one open text, and nothing is open when the run ends.
package agui
