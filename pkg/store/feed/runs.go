package feed

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/runlog"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// runs keeps for each agent the run that has begun and not ended, at the present position in the event log. A process that is
// stopped or dies at work stores no end of its run, so the feed adds one.
type runs struct {
	open  map[team.AgentID]string // id of the run; "" = none; of subagents only those that have one
	read  uint64                  // sequence up to which the log was read
	whole bool                    // from its beginning
}

// ran returns the events of an event of the log: before the beginning of a run, the end of the run that it shows to be over.
func (v *view) ran(ctx context.Context, e team.Event, seq uint64) (told []team.Event, err error) {
	switch e.Event.Type {
	case team.RunStarted:
		if e.AgentID != e.AgentID.Owner() { // a subagent has no other run
			v.runs.open[e.AgentID] = e.RunID
			break
		}
		if told, err = v.endRun(ctx, e.AgentID, e.RunID, "its process ended at work, and another one goes on"); err != nil {
			return nil, err
		}
		if len(told) > 0 { // its subagents have ended with it
			told = append(v.endBelow(e.AgentID, "its owner's process ended at work"), told...)
		}
		v.runs.open[e.AgentID] = e.RunID
	case team.RunFinished, team.RunError:
		v.runs.ends(e.AgentID)
	}
	v.runs.read = seq
	return append(told, e), nil
}

// ends records that an agent has no run. A subagent has only one, and a member may have any number of them.
func (r runs) ends(a team.AgentID) {
	if a != a.Owner() {
		delete(r.open, a)
		return
	}
	r.open[a] = ""
}

// endRuns returns the ends of the open runs of a member and its subagents.
func (v *view) endRuns(ctx context.Context, a team.AgentID, why string) ([]team.Event, error) {
	ended, err := v.endRun(ctx, a, "", why)
	return append(v.endBelow(a, "its owner: "+why), ended...), err
}

// endBelow returns the ends of the open runs of a member's subagents. It does not know runs that began before the reading did.
func (v *view) endBelow(a team.AgentID, why string) (told []team.Event) {
	for _, sub := range slices.Sorted(maps.Keys(v.runs.open)) {
		if run := v.runs.open[sub]; run != "" && sub != a && sub.Owner() == a {
			v.runs.ends(sub)
			told = append(told, stopped(sub, run, why))
		}
	}
	return told
}

// stopped returns the end of a run that no process has stored.
func stopped(a team.AgentID, run, why string) team.Event {
	return team.Event{AgentID: a, RunID: run, Event: team.EventBody{Type: team.RunError, RunID: run, Code: team.RunStopped, Message: string(a) + ": " + why}}
}

// endRun returns the end of the open run of an agent, unless that is the run next.
func (v *view) endRun(ctx context.Context, a team.AgentID, next, why string) ([]team.Event, error) {
	run, known := v.runs.open[a]
	if !known && !v.runs.whole {
		var err error
		if run, err = v.openRun(ctx, a); err != nil {
			return nil, err
		}
	}
	v.runs.open[a] = ""
	if run == "" || run == next {
		return nil, nil
	}
	return []team.Event{stopped(a, run, why)}, nil
}

// openRun looks up the open run of an agent at the beginning of the reading: none, if its record has shown later that it was
// over.
func (v *view) openRun(ctx context.Context, a team.AgentID) (run string, err error) {
	var began time.Time
	id := v.team.ID
	err = v.team.Events.Read(ctx, 1, func(m broker.Msg) error {
		if m.Seq > v.runs.read {
			return broker.ErrEnough
		}
		if run = ""; strings.HasSuffix(m.Subject, subject.Event(id, a, team.RunStarted)) {
			e, _ := runlog.Decode(m)
			run, began = e.RunID, m.Time
		}
		return nil
	}, subject.Event(id, a, team.RunStarted), subject.Event(id, a, team.RunFinished), subject.Event(id, a, team.RunError))
	if err != nil || run == "" {
		return "", err
	}
	err = v.team.Bucket.Past(ctx, 1, func(e broker.Entry) error {
		if e.Revision > v.read {
			return broker.ErrEnough
		}
		if s, told := summarize(e); told && e.Time.After(began) && over(team.MemberState(s.state)) {
			run = ""
		}
		return nil
	}, subject.KeyMember(a))
	return run, err
}

// over reports whether a member in that state has no run; "" is the state of a removed member.
func over(s team.MemberState) bool { return s == team.Stopped || s == team.Lost || s == "" }
