package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"agentteam/pkg/board"
	"agentteam/pkg/broker"
	"agentteam/pkg/event"
	"agentteam/pkg/roster"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// Cursor is a place in a team's feed, printed as <event seq>.<bucket seq>: the
// last entry of each of the two sources that was read.
type Cursor struct{ Event, Bucket uint64 }

func (c Cursor) String() string { return fmt.Sprintf("%d.%d", c.Event, c.Bucket) }

// Entry is one entry of a team's feed.
type Entry struct {
	Cursor string    `json:"cursor"`
	Time   time.Time `json:"time"`
	team.Event
}

func (t *Team) log() *event.Log { return event.New(t.team, nil) }

// Feed calls f for everything that happened in the team: what its agents did,
// merged with what became of tasks and members, which is read from the bucket and
// stored nowhere else. What is there comes in order of time; with follow, what
// comes later as it comes, until ctx ends. Old bucket entries are those that its
// history still holds.
func (t *Team) Feed(ctx context.Context, follow bool, f func(Entry) error) error {
	var cur Cursor
	var past []Entry
	view := newView(t.team.ID)
	err := t.log().Read(ctx, 1, func(e team.Event) error {
		cur.Event = e.Seq
		past = append(past, Entry{Cursor: cur.String(), Time: time.UnixMilli(e.Event.Timestamp).UTC(), Event: e})
		return nil
	})
	if err != nil {
		return err
	}
	err = t.team.Bucket.Past(ctx, 1, func(e broker.Entry) error {
		cur.Bucket = e.Revision
		past = append(past, view.entries(e, cur)...)
		return nil
	}, subject.AllTasks, subject.AllMembers)
	if err != nil {
		return err
	}
	slices.SortStableFunc(past, func(a, b Entry) int { return a.Time.Compare(b.Time) })
	for _, e := range past {
		if err := f(e); err != nil {
			return err
		}
	}
	if !follow {
		return nil
	}
	return t.follow(ctx, cur, view, f)
}

// follow goes on with both sources from the cursor.
func (t *Team) follow(ctx context.Context, cur Cursor, view *view, f func(Entry) error) error {
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return t.log().Follow(ctx, cur.Event+1, func(e team.Event) error {
			mu.Lock()
			defer mu.Unlock()
			cur.Event = e.Seq
			return f(Entry{Cursor: cur.String(), Time: time.UnixMilli(e.Event.Timestamp).UTC(), Event: e})
		})
	})
	g.Go(func() error {
		return t.team.Bucket.Changes(ctx, cur.Bucket+1, func(e broker.Entry) error {
			mu.Lock()
			defer mu.Unlock()
			cur.Bucket = e.Revision
			for _, entry := range view.entries(e, cur) {
				if err := f(entry); err != nil {
					return err
				}
			}
			return nil
		}, nil, subject.AllTasks, subject.AllMembers)
	})
	return g.Wait()
}

// view turns entries of the bucket into events, by what changed since the entry
// before of the same key.
type view struct {
	team    team.TeamID
	tasks   map[team.TaskID]team.Task
	members map[team.AgentID]team.Member
}

func newView(id team.TeamID) *view {
	return &view{id, map[team.TaskID]team.Task{}, map[team.AgentID]team.Member{}}
}

// entries is what one entry of the bucket tells: one event, or none.
func (v *view) entries(e broker.Entry, cur Cursor) []Entry {
	switch kind, name := subject.ParseKey(e.Key); {
	case kind == subject.Task && !e.Deleted:
		t, err := board.Decode(e)
		if err != nil {
			return nil
		}
		before, known := v.tasks[t.ID]
		v.tasks[t.ID] = t
		return v.entry(cur, cmp.Or(t.Assignee, t.CreatedBy), t.UpdatedAt, taskEvent(before, known, t), t)
	case kind == subject.Member && e.Deleted:
		return v.entry(cur, team.AgentID(name), v.members[team.AgentID(name)].UpdatedAt, "MEMBER_REMOVED", map[string]string{"agent_id": name})
	case kind == subject.Member:
		m, err := roster.Decode(e)
		if err != nil {
			return nil
		}
		before := v.members[m.AgentID]
		v.members[m.AgentID] = m
		return v.entry(cur, m.AgentID, m.UpdatedAt, memberEvent(before, m), m)
	}
	return nil
}

func (v *view) entry(cur Cursor, agent team.AgentID, at time.Time, typ team.EventType, value any) []Entry {
	data, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	body := team.EventBody{Type: typ, Value: data}.Stamp(at)
	return []Entry{{Cursor: cur.String(), Time: at, Event: team.Event{TeamID: v.team, AgentID: agent, Event: body}}}
}

func taskEvent(before team.Task, known bool, t team.Task) team.EventType {
	switch {
	case !known && t.Status == team.Pending && t.Epoch == 0:
		return "TASK_CREATED"
	case t.Status == team.InProgress && before.Incarnation != t.Incarnation && before.Status == team.InProgress:
		return "TASK_ADOPTED"
	case t.Status == team.InProgress && before.Status != team.InProgress:
		return "TASK_CLAIMED"
	case t.Status == team.Pending && before.Status == team.InProgress:
		return "TASK_RELEASED"
	case t.Status == team.Completed:
		return "TASK_COMPLETED"
	case t.Status == team.Failed:
		return "TASK_FAILED"
	case t.Status == team.Cancelled:
		return "TASK_CANCELLED"
	}
	return "TASK_UPDATED"
}

func memberEvent(before, m team.Member) team.EventType {
	if before.State == m.State && before.Incarnation == m.Incarnation {
		return "MEMBER_UPDATED" // a seat's claim, say
	}
	switch m.State {
	case team.Created:
		return "MEMBER_CREATED"
	case team.Joined:
		return "MEMBER_JOINED"
	case team.Lost:
		return "MEMBER_LOST"
	case team.Stopped:
		return "MEMBER_STOPPED"
	}
	return "MEMBER_UPDATED"
}
