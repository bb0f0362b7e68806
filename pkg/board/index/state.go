package index

import (
	"encoding/json"
	"slices"
	"time"

	"agentteam/pkg/board"
	"agentteam/pkg/broker"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// state is the pure part: what is known, and who is to be offered what.
type state struct {
	team    team.Team
	members map[team.AgentID]team.Member
	tasks   map[team.TaskID]team.Task
	seq     uint64
	agents  map[team.AgentID]*asker
	out     map[team.TaskID]time.Time // offers under way, and until when
}

type asker struct {
	beat  team.Beat
	heard time.Time
	until time.Time // it has an offer until then
}

func newState() state {
	return state{members: map[team.AgentID]team.Member{}, tasks: map[team.TaskID]team.Task{},
		agents: map[team.AgentID]*asker{}, out: map[team.TaskID]time.Time{}}
}

func (s *state) take(e broker.Entry) error {
	s.seq = max(s.seq, e.Revision)
	switch kind, name := subject.ParseKey(e.Key); {
	case e.Key == subject.KeyTeam:
		return json.Unmarshal(e.Value, &s.team)
	case kind == subject.Member && e.Deleted:
		delete(s.members, team.AgentID(name))
	case kind == subject.Member:
		m := team.Member{Revision: e.Revision}
		if err := json.Unmarshal(e.Value, &m); err != nil {
			return err
		}
		s.members[m.AgentID] = m
	case kind == subject.Task && !e.Deleted:
		t, err := board.Decode(e)
		if err == nil {
			s.put(t)
		}
		return err
	}
	return nil
}

func (s *state) put(t team.Task) {
	if old, ok := s.tasks[t.ID]; ok && old.Revision >= t.Revision {
		return
	}
	s.tasks[t.ID] = t
	delete(s.out, t.ID)
	if t.Status == team.InProgress {
		// Its idle beat is older than its claim.
		if a := s.agents[t.Assignee]; a != nil && a.beat.Incarnation == t.Incarnation {
			a.beat.State = team.Running
		}
	}
}

func (s *state) hear(b team.Beat, now time.Time) {
	a := s.agents[b.AgentID]
	if a == nil {
		a = &asker{}
		s.agents[b.AgentID] = a
	} else if !b.Newer(a.beat) {
		return
	}
	if b.State != team.Idle {
		a.until = time.Time{}
	}
	a.beat, a.heard = b, now
}

func (s *state) count() map[team.TaskStatus]int {
	n := map[team.TaskStatus]int{}
	for _, t := range s.tasks {
		n[t.Status]++
	}
	return n
}

type offer struct {
	agent team.AgentID
	task  team.Task
}

// silent is after how long an agent that was idle is offered nothing more.
const silent = 3 * 2 * time.Second

// match decides the offers to be made now: tasks in order of work, each to the
// idle agent that has waited longest of those whose role fits.
func (s *state) match(now time.Time) []offer {
	idle := make([]*asker, 0, len(s.agents))
	for _, a := range s.agents {
		if a.beat.State == team.Idle && !a.beat.Unseen && a.beat.Task == "" && a.beat.AgentID != team.Leader &&
			now.Sub(a.heard) < silent && now.After(a.until) {
			idle = append(idle, a)
		}
	}
	if len(idle) == 0 {
		return nil
	}
	slices.SortFunc(idle, func(a, b *asker) int {
		if c := a.until.Compare(b.until); c != 0 {
			return c
		}
		if a.beat.AgentID < b.beat.AgentID {
			return -1
		}
		return 1
	})
	var offers []offer
	for _, t := range s.claimable(now) {
		i := slices.IndexFunc(idle, func(a *asker) bool { return t.Role == "" || t.Role == a.beat.Role })
		if i < 0 {
			continue
		}
		idle[i].until, s.out[t.ID] = now.Add(Patience), now.Add(Patience)
		offers = append(offers, offer{idle[i].beat.AgentID, t})
		if idle = slices.Delete(idle, i, i+1); len(idle) == 0 {
			break
		}
	}
	return offers
}

func (s *state) claimable(now time.Time) []team.Task {
	var list []team.Task
	for _, t := range s.tasks {
		if t.Status == team.Pending && now.After(s.out[t.ID]) && !slices.ContainsFunc(t.Dependencies, func(d team.TaskID) bool {
			return s.tasks[d].Status != team.Completed
		}) {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, team.Task.Compare)
	return list
}
