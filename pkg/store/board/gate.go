package board

import (
	"context"
	"errors"

	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// gateOf returns the approver of a member's plans. A task that is reserved for the member gets that gate immediately, and
// keeps it for another holder. gateOf returns "" for a member that needs no plan, and for a member whose record is absent
// or unreadable, whose claim gates the task. Errors: Unavailable.
func gateOf(ctx context.Context, r Records, a team.AgentID) (team.Approver, error) {
	if a == "" {
		return "", nil
	}
	e, err := r.Get(ctx, subject.KeyMember(a))
	var m team.Member
	if err == nil {
		_, err = e.Decode(&m, &m.V)
	}
	if errors.Is(err, team.NotFound) || errors.Is(err, team.ErrUnreadable) {
		return "", nil
	}
	return m.Gate(team.Task{}), err
}

// gateReserved gates new tasks by the members that they are reserved for. Errors: Unavailable.
func gateReserved(ctx context.Context, r Records, tasks []team.Task) error {
	known := map[team.AgentID]team.Approver{"": ""}
	for i, t := range tasks {
		gate, ok := known[t.ReservedFor]
		if !ok {
			var err error
			if gate, err = gateOf(ctx, r, t.ReservedFor); err != nil {
				return err
			}
			known[t.ReservedFor] = gate
		}
		tasks[i] = t.Gated(gate)
	}
	return nil
}
