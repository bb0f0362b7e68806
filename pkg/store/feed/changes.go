package feed

import (
	"context"
	"strings"
	"time"

	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/runlog"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/explain"
)

// view turns stored messages into events. Records state the present, and some events state a change, so view keeps a summary
// of the last copy of each record.
type view struct {
	team *broker.Storage
	last map[string]summary // of the newest record read of each key of the bucket
	runs runs

	// read is the revision up to which the bucket was read. A view that did not begin at its beginning looks up earlier
	// copies in the history of the key.
	read   uint64
	whole  bool   // all records below read are known
	looked uint64 // how often it has looked up one key
	stored uint64 // how many messages the bucket held when it began

	notified notifiedOf // the last message: a reader in steps may end in the middle of it
}

// notifiedOf has the events of a message.
type notifiedOf struct {
	kind   kind
	seq    uint64
	at     time.Time
	events []team.Event
}

// lookup is the number of messages that are read in about the time of one lookup of a key.
const lookup = 64

// summary is the kept part of a record; the zero value means no record.
type summary struct {
	state       string // of a member, or the status of a task or a plan
	incarnation uint64
	role        string       // of a member
	assignee    team.AgentID // of a task
	attempts    int          // of a task
	reserved    team.AgentID // of a task
}

func newView(t *broker.Storage, log, records *source) *view {
	return &view{team: t, last: map[string]summary{}, read: records.pos.whole(), whole: records.whole, stored: records.stored,
		runs: runs{open: map[team.AgentID]string{}, read: log.pos.whole(), whole: log.whole}}
}

// events returns the events of a message, in order: none, one or, for a turn of a model, several. They are the same for every
// reader. An unreadable message has no events: it must not blind every reader of the others.
func (v *view) events(ctx context.Context, k kind, m broker.Msg) (told []team.Event, err error) {
	if v.notified.kind == k && v.notified.seq == m.Seq && v.notified.at.Equal(m.Time) {
		return v.notified.events, nil
	}
	switch k {
	case events:
		if e, ok := runlog.Decode(m); ok && !IsReset(e) {
			told, err = v.ran(ctx, e, m.Seq)
		}
	case logs:
		told, err = v.texts(ctx, m)
	case mail:
		told = sent(m)
	case bucket:
		told, err = v.changed(ctx, v.team.Bucket.Entry(m))
	}
	for i := range told {
		e := &told[i]
		e.TeamID, e.Event = v.team.ID, e.Event.Stamp(m.Time)
		if e.RoleName == "" && err == nil {
			e.RoleName, err = v.role(ctx, e.AgentID)
		}
	}
	if err == nil {
		v.notified = notifiedOf{k, m.Seq, m.Time, told}
	}
	return told, err
}

// changed returns the events of an entry of the bucket.
func (v *view) changed(ctx context.Context, e broker.Entry) ([]team.Event, error) {
	defer func() { v.read = e.Revision }()
	now, told := summarize(e)
	if !told {
		return nil, nil
	}
	before, err := v.before(ctx, e.Key, e.Revision)
	if err != nil {
		return nil, err
	}
	v.last[strings.Clone(e.Key)] = now // which is a piece of the whole message
	switch kind, name := subject.ParseKey(e.Key); {
	case kind == subject.Task:
		t, err := board.Decode(e)
		if err != nil {
			return nil, nil
		}
		return []team.Event{taskEvent(before, t, e)}, nil
	case kind == subject.Plan:
		a, err := approval.Decode(e)
		if err != nil {
			return nil, nil
		}
		return []team.Event{approvalEvent(before, a, e)}, nil
	case e.Deleted:
		ended, err := v.endRuns(ctx, team.AgentID(name), "it was removed at work")
		return append(ended, team.Event{AgentID: team.AgentID(name), RoleName: before.role,
			Event: team.EventBody{Type: team.MemberRemoved, Value: asJSON(map[string]string{"agent_id": name})}}), err
	default:
		m, err := roster.Decode(e)
		if err != nil {
			return nil, nil
		}
		return v.member(ctx, team.Event{AgentID: m.AgentID, RoleName: m.Role,
			Event: team.EventBody{Type: memberEvent(before, m), Value: e.Value}})
	}
}

// member returns the events of a change of a member's record: before its end, the end of its run.
func (v *view) member(ctx context.Context, e team.Event) (told []team.Event, err error) {
	switch e.Event.Type {
	case team.MemberStopped:
		told, err = v.endRuns(ctx, e.AgentID, "it was stopped at work")
	case team.MemberLost:
		told, err = v.endRuns(ctx, e.AgentID, "its process was lost at work")
	}
	return append(told, e), err
}

// before returns the summary of the key's last copy below a revision.
func (v *view) before(ctx context.Context, key string, revision uint64) (summary, error) {
	if s, ok := v.last[key]; ok || v.whole {
		return s, nil
	}
	keys := []string{key}
	v.looked++
	all := v.looked*lookup > v.stored // reading all is cheaper then
	if all {
		keys = []string{subject.AllTasks, subject.AllMembers, subject.AllPlans}
	}
	past := map[string]summary{key: {}}
	err := v.team.Bucket.Past(ctx, 1, func(e broker.Entry) error {
		if e.Revision >= revision {
			return broker.ErrEnough
		}
		if s, told := summarize(e); told {
			past[strings.Clone(e.Key)] = s
		}
		return nil
	}, keys...)
	if err != nil {
		return summary{}, err
	}
	for k, s := range past {
		if _, newer := v.last[k]; !newer {
			v.last[k] = s
		}
	}
	v.whole = all
	return past[key], nil
}

// role returns the role of an agent by its record at this place of the feed.
func (v *view) role(ctx context.Context, a team.AgentID) (string, error) {
	if a == team.UserAgent || a == team.Watchdog || a != a.Owner() { // for a subagent, the beginning of its run has it
		return "", nil
	}
	s, err := v.before(ctx, subject.KeyMember(a), v.read+1)
	return s.role, err
}

// summarize returns the summary of an entry; told is false if it has no events.
func summarize(e broker.Entry) (s summary, told bool) {
	switch kind, _ := subject.ParseKey(e.Key); {
	case kind == subject.Task && !e.Deleted:
		t, err := board.Decode(e)
		return summary{state: strings.Clone(string(t.Status)), incarnation: t.Incarnation,
			assignee: team.AgentID(strings.Clone(string(t.Assignee))), attempts: t.Attempts,
			reserved: team.AgentID(strings.Clone(string(t.ReservedFor)))}, err == nil
	case kind == subject.Plan && !e.Deleted:
		a, err := approval.Decode(e)
		return summary{state: strings.Clone(string(a.Status))}, err == nil
	case kind == subject.Member && e.Deleted:
		return summary{}, true
	case kind == subject.Member:
		m, err := roster.Decode(e)
		return summary{state: strings.Clone(string(m.State)), incarnation: m.Incarnation, role: strings.Clone(m.Role)}, err == nil
	}
	return summary{}, false
}

func taskEvent(before summary, t team.Task, e broker.Entry) team.Event {
	was := team.Task{Status: team.TaskStatus(before.state), Assignee: before.assignee, Incarnation: before.incarnation, Attempts: before.attempts, ReservedFor: before.reserved}
	what, _, _ := explain.Change(was, t)
	whose := t.Assignee
	switch {
	case what == team.TaskAssigned && t.ReservedFor != "":
		whose = t.ReservedFor
	case whose == "":
		whose = t.CreatedBy
	}
	return team.Event{AgentID: whose, Event: team.EventBody{Type: what, Value: e.Value}}
}

// approvalEvent names the actor as its agent: the agent of the plan, or its decider.
func approvalEvent(before summary, a team.Approval, e broker.Entry) team.Event {
	told := team.Event{AgentID: a.AgentID, Event: team.EventBody{Type: team.ApprovalEnded, Value: e.Value}}
	if before.state == string(a.Status) {
		return told
	}
	switch a.Status {
	case team.PlanPending:
		told.Event.Type = team.ApprovalRequested
	case team.PlanApproved:
		told.AgentID, told.Event.Type = a.DecidedBy, team.ApprovalApproved
	case team.PlanRejected:
		told.AgentID, told.Event.Type = a.DecidedBy, team.ApprovalRejected
	case team.PlanUsed:
		told.Event.Type = team.ApprovalUsed
	}
	return told
}

func memberEvent(before summary, m team.Member) team.EventType {
	was := team.MemberState(before.state)
	switch same := before.incarnation == m.Incarnation; {
	case same && was == m.State:
		return team.MemberUpdated // for example a seat's claim
	case same && (was == team.WaitingModel || was == team.WaitingRepair) && m.State == team.Joined:
		return team.MemberResumed
	}
	switch m.State {
	case team.Created:
		return team.MemberCreated
	case team.Joined:
		return team.MemberJoined
	case team.WaitingModel, team.WaitingRepair:
		return team.MemberParked
	case team.Lost:
		return team.MemberLost
	case team.Stopped:
		return team.MemberStopped
	}
	return team.MemberUpdated
}
