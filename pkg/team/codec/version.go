package codec

import "agentteam/pkg/team"

// OtherProtocol is the error (InvalidState) for stored data of another [team.Protocol].
func OtherProtocol(version int) *team.Error {
	return team.Errorf(team.InvalidState, "it has protocol version %d, this program speaks %d", version, team.Protocol).
		WithHint("use the agentteam version that wrote it, for all programs at this server; or begin with an empty server (teamctl up: another --data)")
}
