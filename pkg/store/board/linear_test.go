package board_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"agentteam/pkg/team"
)

// step is one call of the board by one agent, with what became of it: a record of
// the histories that are checked for linearizability.
type step struct {
	Kind     string // create, read, take, adopt, complete, fail, release, reap
	Task     team.TaskID
	Agent    team.AgentID
	Inc      uint64
	Epoch    uint64 // of the hold that complete, fail, release and reap are about
	Revision uint64 // at which take claims
	Key      string // of a create

	Call, Return int64 // in nanoseconds; Return 0 = nobody knows whether and when
	Code         team.Code
	Got          seen // what was returned
}

// seen is what of a task is checked.
type seen struct {
	Status   team.TaskStatus // "" = there is no such task
	Agent    team.AgentID
	Inc      uint64
	Epoch    uint64
	Revision uint64 // 0 in the model = not known, after a write that told nobody its revision
}

func seenOf(t team.Task) seen {
	return seen{t.Status, t.Assignee, t.Incarnation, t.Epoch, t.Revision}
}

// apply is the specification of one task: it returns whether the step, done at one
// moment at which the task is as now, may have had its outcome, and the task after.
//
// A step of unknown outcome takes effect if it can. That it never did is covered,
// since its moment may then lie after all others.
func (s step) apply(now seen) (bool, seen) {
	next := now
	next.Revision = s.Got.Revision
	unknown := s.Return == 0
	held := now.Status == team.InProgress && now.Agent == s.Agent && now.Inc == s.Inc && now.Epoch == s.Epoch
	switch s.Kind {
	case "create":
		if now.Status != "" {
			return false, now // under its key a task is created once
		}
		next = seen{Status: team.Pending}
		if s.Got.Epoch == 0 {
			next.Revision = s.Got.Revision // else it is that of a later copy
		}
		return true, next
	case "read":
		if unknown {
			return true, now
		}
		if now.Status == "" || s.Code != "" {
			return now.Status == "" && s.Code == team.NotFound, now
		}
		same := s.Got
		if now.Revision == 0 {
			now.Revision = same.Revision
		}
		return now == same, now
	case "take":
		fits := now.Status == team.Pending && (now.Revision == 0 || now.Revision == s.Revision)
		next.Status, next.Agent, next.Inc, next.Epoch = team.InProgress, s.Agent, s.Inc, now.Epoch+1
		return s.outcome(fits, unknown, now, next)
	case "adopt":
		fits := now.Status == team.InProgress && now.Agent == s.Agent && now.Inc < s.Inc
		next.Inc, next.Epoch = s.Inc, now.Epoch+1
		return s.outcome(fits, unknown, now, next)
	case "complete":
		next.Status = team.Completed
		return s.outcome(held, unknown, now, next)
	case "fail":
		next.Status = team.Failed
		return s.outcome(held, unknown, now, next)
	case "release":
		next.Status = team.Pending
		return s.outcome(held, unknown, now, next)
	case "reap":
		// It does not say whether the task had moved on.
		if now.Status != team.InProgress || now.Epoch != s.Epoch {
			return true, now
		}
		next.Status, next.Epoch, next.Revision = team.Pending, now.Epoch+1, 0
		return true, next
	}
	panic("unknown step " + s.Kind)
}

// outcome is that of a step that succeeds if and only if it fits.
func (s step) outcome(fits, unknown bool, now, next seen) (bool, seen) {
	switch {
	case unknown && fits:
		return true, next
	case unknown:
		return true, now
	case s.Code != "":
		// Where the revision is not known a refused take may be right.
		return !fits || s.Kind == "take" && now.Revision == 0, now
	}
	next.Revision = s.Got.Revision
	return fits && next == s.Got, next
}

// linearizable holds a history against the specification, task by task. A check
// that does not come to an end in time has not passed.
func linearizable(history []step, timeout time.Duration) error {
	tasks := map[team.TaskID][]porcupine.Operation{}
	for _, s := range history {
		op := porcupine.Operation{Input: s, Call: s.Call, Return: s.Return}
		if s.Return == 0 {
			op.Return = math.MaxInt64
		}
		tasks[s.Task] = append(tasks[s.Task], op)
	}
	model := porcupine.Model{
		Init: func() any { return seen{} },
		Step: func(state, input, _ any) (bool, any) { return input.(step).apply(state.(seen)) },
	}
	for id, ops := range tasks {
		switch porcupine.CheckOperationsTimeout(model, ops, timeout) {
		case porcupine.Illegal:
			return fmt.Errorf("the history of %s is not linearizable:%s", id, story(ops))
		case porcupine.Unknown:
			return fmt.Errorf("the history of %s, of %d steps, was not decided within %v", id, len(ops), timeout)
		}
	}
	return nil
}

func story(ops []porcupine.Operation) (lines string) {
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, op := range ops {
		lines += fmt.Sprintf("\n%+v", op.Input)
	}
	return lines
}

// The specification takes what a board may do, and nothing else.
func TestSpecification(t *testing.T) {
	pending := seen{Status: team.Pending, Revision: 10}
	held := func(a team.AgentID, inc, epoch, rev uint64) seen { return seen{team.InProgress, a, inc, epoch, rev} }
	done := func(a team.AgentID, inc, epoch, rev uint64) seen { return seen{team.Completed, a, inc, epoch, rev} }
	create := step{Kind: "create", Call: 1, Return: 2, Got: pending}
	take := func(a team.AgentID, call, ret int64, rev uint64) step {
		return step{Kind: "take", Agent: a, Inc: 1, Revision: 10, Call: call, Return: ret, Got: held(a, 1, 1, rev)}
	}
	lost := func(a team.AgentID, call, ret int64) step {
		return step{Kind: "take", Agent: a, Inc: 1, Revision: 10, Call: call, Return: ret, Code: team.Conflict}
	}
	read := func(call int64, got seen) step { return step{Kind: "read", Call: call, Return: call + 1, Got: got} }
	end := func(kind string, a team.AgentID, inc, epoch uint64, call, ret int64, code team.Code, got seen) step {
		return step{Kind: kind, Agent: a, Inc: inc, Epoch: epoch, Call: call, Return: ret, Code: code, Got: got}
	}
	for name, tt := range map[string]struct {
		ok      bool
		history []step
	}{
		"one wins":                 {true, []step{create, take("a", 3, 5, 11), lost("b", 3, 5), read(6, held("a", 1, 1, 11))}},
		"two win":                  {false, []step{create, take("a", 3, 5, 11), take("b", 3, 5, 12)}},
		"nobody wins":              {false, []step{create, lost("a", 3, 5), lost("b", 3, 5)}},
		"lost before it was taken": {false, []step{create, lost("b", 3, 4), take("a", 5, 6, 11)}},
		"a stale read":             {false, []step{create, take("a", 3, 4, 11), read(5, pending)}},
		"a read meanwhile":         {true, []step{create, take("a", 3, 9, 11), read(4, pending), read(6, held("a", 1, 1, 11))}},
		"back and forth":           {false, []step{create, take("a", 3, 9, 11), read(4, held("a", 1, 1, 11)), read(6, pending)}},
		"not there, then there":    {true, []step{create, {Kind: "read", Call: 1, Return: 2, Code: team.NotFound}, read(3, pending)}},
		"there, then not":          {false, []step{create, {Kind: "read", Call: 3, Return: 4, Code: team.NotFound}}},
		"created twice":            {false, []step{create, {Kind: "create", Call: 3, Return: 4, Got: pending}}},
		"unknown, had effect":      {true, []step{create, take("a", 3, 0, 0), lost("b", 4, 5), read(6, held("a", 1, 1, 11))}},
		"unknown, had none":        {true, []step{create, take("a", 3, 0, 0), take("b", 4, 5, 11)}},
		"unknown, twice":           {false, []step{create, take("a", 3, 0, 0), read(6, held("a", 1, 1, 11)), read(8, pending)}},
		"completed":                {true, []step{create, take("a", 3, 4, 11), end("complete", "a", 1, 1, 5, 6, "", done("a", 1, 1, 12))}},
		"completed late":           {false, []step{create, take("a", 3, 4, 11), {Kind: "reap", Epoch: 1, Call: 5, Return: 6}, end("complete", "a", 1, 1, 7, 8, "", done("a", 1, 1, 13))}},
		"refused late":             {true, []step{create, take("a", 3, 4, 11), {Kind: "reap", Epoch: 1, Call: 5, Return: 6}, end("complete", "a", 1, 1, 7, 8, team.Conflict, seen{})}},
		"refused without cause":    {false, []step{create, take("a", 3, 4, 11), end("complete", "a", 1, 1, 7, 8, team.Conflict, seen{})}},
		"a reap of the past":       {false, []step{create, take("a", 3, 4, 11), {Kind: "reap", Epoch: 7, Call: 5, Return: 6}, read(7, seen{team.Pending, "a", 1, 2, 12})}},
		"adopted":                  {true, []step{create, take("a", 3, 4, 11), {Kind: "adopt", Agent: "a", Inc: 2, Call: 5, Return: 6, Got: held("a", 2, 2, 12)}, end("complete", "a", 2, 2, 7, 8, "", done("a", 2, 2, 13))}},
		"completed though adopted": {false, []step{create, take("a", 3, 4, 11), {Kind: "adopt", Agent: "a", Inc: 2, Call: 5, Return: 6, Got: held("a", 2, 2, 12)}, end("complete", "a", 1, 1, 7, 8, "", done("a", 1, 1, 13))}},
		"released and taken":       {true, []step{create, take("a", 3, 4, 11), end("release", "a", 1, 1, 5, 6, "", seen{team.Pending, "a", 1, 1, 12}), lost("b", 7, 8)}},
		"failed, then completed":   {false, []step{create, take("a", 3, 4, 11), end("fail", "a", 1, 1, 5, 6, "", seen{team.Failed, "a", 1, 1, 12}), end("complete", "a", 1, 1, 7, 8, "", done("a", 1, 1, 13))}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := linearizable(tt.history, time.Minute); (err == nil) != tt.ok {
				t.Errorf("linearizable = %v, want ok %v", err, tt.ok)
			}
		})
	}
}
