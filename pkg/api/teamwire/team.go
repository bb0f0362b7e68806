package teamwire

import (
	"errors"
	"net/http"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// teammate is a member of a team other than the leader and people's seats.
type teammate struct {
	AgentID  team.AgentID `json:"agent_id"`
	RoleName string       `json:"role_name"`
	Status   string       `json:"status"` // idle, running or stopped
}

// teammates lists the teammates that the team has or had.
func (s *server) teammates(r *http.Request, in *input) (any, error) {
	n := in.pair()
	if err := in.err(); err != nil {
		return nil, err
	}
	list := []teammate{}
	t, err := s.open(r.Context(), n)
	if err != nil {
		return list, unlessUnknown(err)
	}
	agents, err := t.Members().List(r.Context(), true)
	for _, a := range agents {
		if a.AgentID != team.Leader && a.Backend != team.Person {
			list = append(list, teammate{a.AgentID, a.Role, statusOf(a.State)})
		}
	}
	return list, err
}

// statusOf returns the state of a member in the words of this wire. A waiting member is idle.
func statusOf(s team.MemberState) string {
	switch s {
	case team.Running, team.Stalled:
		return "running"
	case team.Stopped, team.Lost, team.Unreadable:
		return "stopped"
	}
	return "idle"
}

// message sends the mail of a person, or a seat, to one member or to all.
func (s *server) message(r *http.Request, in *input) (any, error) {
	n, from, content := in.pair(), in.text("from_agent_id"), in.text("content")
	to, toOne := in.nullable("to_agent_id")
	if err := in.err(); err != nil {
		return nil, err
	}
	t, err := s.open(r.Context(), n)
	if err != nil {
		return nil, err
	}
	m := client.NewMail{To: team.Everyone, Text: content}
	status := "broadcast"
	if toOne {
		if m.To, err = receiver(to); err != nil {
			return nil, err
		}
		status = "sent"
	}
	if from != string(team.UserAgent) {
		if m.As, err = s.seat(r, t, from); err != nil {
			return nil, err
		}
	}
	sent, _, err := t.Mail().Send(r.Context(), m)
	return struct {
		MessageID string `json:"message_id"`
		Status    string `json:"status"`
	}{sent.ID, status}, err
}

// receiver returns the name of a member. A malformed name is not found.
func receiver(name string) (team.AgentID, error) {
	a, err := team.ParseAgentID(name)
	if err != nil {
		return "", team.Errorf(team.NotFound, "there is no member %q", team.Clean(name, 80))
	}
	return a, nil
}

// seat returns the seat of that name. Errors: PermissionDenied if there is none.
func (s *server) seat(r *http.Request, t *client.Team, name string) (team.AgentID, error) {
	members, err := t.Members().Records(r.Context())
	if err != nil {
		return "", err
	}
	for _, m := range members {
		if string(m.AgentID) == name && m.Backend == team.Person && m.State != team.Stopped {
			return m.AgentID, nil
		}
	}
	return "", team.Errorf(team.PermissionDenied, "from_agent_id is %q; it must be user, or a seat that has claimed a task", team.Clean(name, 80))
}

// userMessage sends the user's mail to a member.
func (s *server) userMessage(r *http.Request, in *input) (any, error) {
	n, content, name := in.pair(), in.text("content"), in.textOr("to_agent_id", string(team.Leader))
	if err := in.err(); err != nil {
		return nil, err
	}
	t, err := s.open(r.Context(), n)
	var record team.Team
	if err == nil {
		record, err = t.Record(r.Context())
	}
	if errors.Is(err, team.NotFound) || err == nil && record.Status != team.Active {
		return nil, team.Errorf(team.NotFound, "No active team for this session")
	}
	var to team.AgentID
	if err == nil {
		to, err = receiver(name)
	}
	if err == nil {
		_, _, err = t.Mail().Send(r.Context(), client.NewMail{To: to, Text: content})
	}
	return struct {
		Status    string       `json:"status"`
		ToAgentID team.AgentID `json:"to_agent_id"`
	}{"enqueued", to}, err
}

// leaveWait is how long members may take to leave before they are stopped.
const leaveWait = 10 * time.Second

// stop stops the team.
func (s *server) stop(r *http.Request, in *input) (any, error) {
	n := in.pair()
	if err := in.err(); err != nil {
		return nil, err
	}
	status := map[string]string{"status": "no_active_team"}
	t, err := s.open(r.Context(), n)
	if err != nil {
		return status, unlessUnknown(err)
	}
	record, err := t.Record(r.Context())
	if err != nil || record.Status != team.Active {
		return status, err
	}
	return map[string]string{"status": "stopped"}, t.StopTeam(r.Context(), leaveWait)
}
