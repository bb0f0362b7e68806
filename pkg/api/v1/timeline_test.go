package v1_test

import (
	"testing"

	"agentteam/pkg/team"
)

func TestTimelineAndGoals(t *testing.T) {
	r := newRig(t)
	r.do(t, ask{do: "GET /v1/teams/t/timeline", want: 404, code: team.NotFound})
	r.goal(t)
	m := r.join(t, "coder")
	r.all(t, []ask{
		{name: "a task", do: "POST /v1/teams/t/tasks", body: `{"tasks":[{"title":"x"}]}`, want: 201},
		{name: "its hold", do: "POST /v1/teams/t/tasks/T-001/assign", body: `{"assignee":"` + string(m.AgentID) + `"}`, want: 200},
		{name: "the timeline", do: "GET /v1/teams/t/timeline?points=10", want: 200, says: []string{`"goal":1`, `"task":"T-001"`, `"agent_id":"coder-1"`, `"critical":[{`, `"counts":[{`}},
		{name: "a goal that never was", do: "GET /v1/teams/t/timeline?goal=9", want: 404, code: team.NotFound, says: []string{"goal 9"}},
		{name: "from behind to", do: "GET /v1/teams/t/timeline?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", want: 422, code: team.InvalidArgument, says: []string{"query.to"}},
		{name: "no time", do: "GET /v1/teams/t/timeline?from=noon", want: 422, code: team.InvalidArgument},
		{name: "no points", do: "GET /v1/teams/t/timeline?points=0", want: 422, code: team.InvalidArgument},
		{name: "no goals yet", do: "GET /v1/teams/t/goals", want: 200, says: []string{`"goals":[]`}},
		{name: "it is compacted", do: "POST /v1/teams/t/members/coder-1/compact", want: 202, says: []string{`"agent_id":"coder-1"`}},
		{name: "nobody is", do: "POST /v1/teams/t/members/eve/compact", want: 404, code: team.NotFound},
		{name: "it ends", do: "DELETE /v1/teams/t/goal?timeout=0", want: 200},
		{name: "the goal that has ended", do: "GET /v1/teams/t/goals", want: 200, says: []string{`"number":1`, `"status":"stopped"`}},
	})
}
