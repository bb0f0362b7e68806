package board

import (
	"context"
	"errors"

	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// gateOf returns who approves the plans of a member, by which a task is gated as soon as it is reserved for that
// member, also for another one that takes it then. It is "" for a member that needs no plan, and for one whose
// record is not there or cannot be read, whose claim gates the task. Errors: Unavailable.
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

// gateReserved gates tasks that are about to be created as the members that they are reserved for. Errors: Unavailable.
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
