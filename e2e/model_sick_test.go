package e2e

import (
	"fmt"
	"slices"
	"testing"

	"agentteam/pkg/store/board/boardtest"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

// Two of three teammates are sick: their endpoint lets no content through, or gives empty
// answers, answers that meet their limit, or calls as text that are cut, whatever they ask. The third does all tasks. None
// fails or has an attempt counted, and the sick ones park.
func TestSickMembers(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const tasks, mates = 12, 3
	type ward struct {
		stage
		sick  answer
		parks bool // at its first task; else after three runs
	}
	wards := map[string]*ward{}
	e := serve(t, func(r *request) answer {
		w := wards[r.team]
		switch {
		case r.role == "leader":
			return w.e.say("I wait.")
		case r.agent != "coder-3":
			return w.sick
		}
		return w.crew.next(w.e, r)
	})
	for name, sick := range map[string]answer{
		"filter": refuse(400, "content_filter", "invalid_request_error", "PROOF-filter"),
		"empty":  e.say(""),
		"cut":    e.turn("length", ""),
		"text":   e.say(`<tool_call>{"name": "bash", "arguments": {"command": "true"`),
	} {
		w := &ward{sick: sick, parks: name == "filter" || name == "text"}
		w.e, w.crew = e, crew{turns: 3, call: func(n int) call { return use("bash", "command", fmt.Sprintf("sleep 0.05; echo %d", n)) }}
		wards[name] = w
	}
	c := upAt(t, e.url, mates*len(wards))
	conn := c.connect()
	for name, w := range wards {
		w.c = c
		w.tm, w.bt = watched(t, conn, team.TeamID(name), shortLease)
		w.past = remember(t, w.bt)
		w.judge = boardtest.Record(t, w.bt.Bucket)
		if _, err := w.tm.Members().Spawn(t.Context(), team.Member{Role: "coder"}, mates); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("all", func(t *testing.T) { // returns when the parallel ones have ended, before the cluster does
		for name, w := range wards {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ids := w.add(t, tasks, name, "")
				w.completed(t, ids)
				most := 3
				if w.parks {
					most = 1
				}
				for _, sick := range []team.AgentID{"coder-1", "coder-2"} {
					claims := 0
					for _, id := range ids {
						claims += w.past.claims(id, sick)
						if by := w.past.last(id).Assignee; by == sick {
							t.Errorf("%s was completed by %s", id, by)
						}
					}
					if claims > most {
						t.Errorf("%s, which is sick, claimed %d tasks, want %d at most", sick, claims, most)
					}
				}
			})
		}
	})
	for _, w := range wards {
		w.judge.Judge(t)
	}
}

// claims is how often a member has claimed a task.
func (h *history) claims(id team.TaskID, a team.AgentID) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var epochs []uint64
	for _, task := range h.tasks[id] {
		if task.Status == team.InProgress && task.Assignee == a && !slices.Contains(epochs, task.Epoch) {
			epochs = append(epochs, task.Epoch)
		}
	}
	return len(epochs)
}
