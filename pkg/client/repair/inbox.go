package repair

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

const inboxPrefix = "inbox."

// Inboxes returns the members whose read position is beyond the end of the message stream, by name.
// The stream was restored from an older copy: it uses the same sequences again, and such a member
// would miss the messages. It reads each journal as far as its agent would. Errors: Unavailable.
func (r *Repairer) Inboxes(ctx context.Context) ([]Damage, error) {
	members, err := roster.New(r.o.Team).List(ctx)
	if err != nil {
		return nil, err
	}
	read := map[team.AgentID]uint64{}
	note := func(a team.AgentID, seq uint64) { read[a] = max(read[a], seq) }
	for _, m := range members {
		note(m.AgentID, max(m.InboxFrom, m.ObeysFrom, 1)-1)
		seq, _, err := journal.Inbox(ctx, r.o.Team, m.AgentID)
		if err != nil && !errors.Is(err, team.ErrUnreadable) { // which is another damage
			return nil, err
		}
		note(m.AgentID, seq)
	}
	consumers, last, err := r.o.Team.Messages.Ahead(ctx) // after the journals: the stream only grows
	if err != nil {
		return nil, err
	}
	for name, seq := range consumers {
		if a, _ := subject.ParseConsumer(name); a != "" {
			note(a, seq)
		}
	}
	var all []Damage
	for _, a := range slices.Sorted(maps.Keys(read)) {
		if read[a] > last {
			all = append(all, Damage{Key: inboxPrefix + string(a), Revision: read[a], Stored: time.Now().UTC(), Remedy: SetBack, Last: last,
				Error: fmt.Sprintf("the team's mail ends at message %d, and %s has read up to %d: it was restored from an older copy, and messages are lost", last, a, read[a])})
		}
	}
	return all, nil
}

// setBack has a member continue reading at the end of the message stream. A process that reads by a
// consumer beyond it loses its membership, and comes back as another incarnation.
func (r *Repairer) setBack(ctx context.Context, a team.AgentID) ([]Damage, error) {
	all, err := r.Inboxes(ctx)
	i := slices.IndexFunc(all, func(d Damage) bool { return d.Key == inboxPrefix+string(a) })
	if err != nil || i < 0 {
		return nil, err
	}
	d := all[i]
	if err := roster.New(r.o.Team).SetInboxBack(ctx, a, d.Last); err != nil && !errors.Is(err, team.NotFound) {
		return nil, err
	}
	_, back, err := journal.Inbox(ctx, r.o.Team, a)
	if err == nil {
		err = back(ctx, d.Last)
	}
	if err != nil && !errors.Is(err, team.ErrUnreadable) {
		return nil, err
	}
	consumers, _, err := r.o.Team.Messages.Ahead(ctx)
	if err != nil {
		return nil, err
	}
	for name := range consumers {
		if who, _ := subject.ParseConsumer(name); who == a {
			if err := r.o.Team.Messages.RemoveConsumer(ctx, name); err != nil && !errors.Is(err, team.NotFound) {
				return nil, err
			}
		}
	}
	d.Repaired = true
	return []Damage{d}, nil
}

// parseInbox returns the member whose inbox a key names; ok is false if it names none.
func parseInbox(key string) (a team.AgentID, ok bool) {
	name, ok := strings.CutPrefix(key, inboxPrefix)
	return team.AgentID(name), ok
}
