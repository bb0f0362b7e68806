package client

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/feed"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Entry is one entry of a team's feed.
type Entry = feed.Entry

// Cursor is a position in a team's feed; "" is its beginning.
type Cursor = feed.Cursor

// FeedOptions select a part of a team's feed.
type FeedOptions = feed.Options

// Feed calls f for every event of the team after o.After, and with o.Follow for each new one, until
// ctx ends; then it returns nil. See [feed.Read].
func (t *Team) Feed(ctx context.Context, o FeedOptions, f func(Entry) error) error {
	return feed.Read(ctx, t.team, o, f)
}

// WalkFeed is Feed for a caller that passes entries on to readers at other positions. See
// [feed.Walk].
func (t *Team) WalkFeed(ctx context.Context, o FeedOptions, f func(feed.Step) error) (feed.Place, error) {
	return feed.Walk(ctx, t.team, o, f)
}

// CheckCursor returns an error for a cursor from which the feed cannot continue. See [feed.Check].
func (t *Team) CheckCursor(ctx context.Context, c Cursor) error { return feed.Check(ctx, t.team, c) }

// FeedAt returns the cursor after all events before a time.
func (t *Team) FeedAt(ctx context.Context, since time.Time) (Cursor, error) {
	return feed.Since(ctx, t.team, since)
}

// Recent returns the positions of the present end and of the recent events. See [feed.Recent].
func (t *Team) Recent(ctx context.Context, since time.Time, most uint64) (from, end feed.Place, err error) {
	return feed.Recent(ctx, t.team, since, most)
}

// End returns the cursor after all events so far.
func (t *Team) End(ctx context.Context) (Cursor, error) { return feed.End(ctx, t.team) }

// Before returns the current members, and the tasks that have not changed since a position of the
// feed. A member that joined later is returned as stopped.
func (t *Team) Before(ctx context.Context, after Cursor) ([]team.Member, []team.Task, error) {
	_, last, err := after.Seqs(t.ID())
	if err != nil {
		return nil, nil, err
	}
	members, err := t.roster.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i := range members {
		if members[i].Revision > last {
			members[i].State = team.Stopped
		}
	}
	tasks, err := t.board.All(ctx)
	return members, slices.DeleteFunc(tasks, func(t team.Task) bool { return t.Revision > last }), err
}

// Transcript calls f for each entry of the journal of a member or a subagent; with follow also for
// new ones, until ctx ends. See [feed.Conversation]. Errors: NotFound for a name that never was a
// member or a subagent.
func (t Members) Transcript(ctx context.Context, a team.AgentID, follow bool, f func(Entry) error) error {
	if _, err := t.roster.Get(ctx, a.Owner()); err != nil {
		return err
	}
	if a != a.Owner() {
		_, err := t.team.Logs.Last(ctx, subject.Log(t.team.ID, a))
		if errors.Is(err, team.NotFound) {
			return team.Errorf(team.NotFound, "%s has had no subagent %s", a.Owner(), a).WithHint("teamctl agents jobs lists those at work")
		}
		if err != nil {
			return err
		}
	}
	return feed.Conversation(ctx, t.team, a, follow, f)
}

// Subagents returns the subagents of all members whose conversations are kept, see
// [Members.Transcript]: by owner, each owner's in the order of their last records.
func (t Members) Subagents(ctx context.Context) (map[team.AgentID][]team.AgentID, error) {
	last := map[team.AgentID]uint64{} // sequences; a subagent that writes meanwhile comes twice
	err := t.team.Logs.Newest(ctx, func(m broker.Msg) error {
		a := subject.Author(m.Subject)
		if name, _, err := team.ParseConversation(string(a)); err == nil && name == a { // the writer of a log sets the subject
			last[a] = m.Seq
		}
		return nil
	}, subject.LogsBelow(t.team.ID, "*"))
	if err != nil {
		return nil, err
	}
	of := map[team.AgentID][]team.AgentID{}
	for _, a := range slices.SortedFunc(maps.Keys(last), func(a, b team.AgentID) int { return cmp.Compare(last[a], last[b]) }) {
		of[a.Owner()] = append(of[a.Owner()], a)
	}
	return of, nil
}
