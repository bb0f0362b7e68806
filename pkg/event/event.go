// Package event is a team's append-only log of what its agents did: runs, texts,
// tool calls and their results, as AG-UI events in an envelope. Readers (teamctl,
// later the API and its page) follow it.
//
// It does not record what the bucket already tells (tasks, members): readers
// merge the two feeds.
package event

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/broker"
	"agentteam/pkg/subject"
	"agentteam/pkg/team"
)

// Log is a team's event log. Safe for concurrent use.
type Log struct {
	team *broker.Team
	log  *slog.Logger
}

// New returns the log of a team. log, which may be nil, is told of events that were
// dropped.
func New(t *broker.Team, log *slog.Logger) *Log {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Log{t, log}
}

// patience bounds how long an agent's work waits for its own log.
const patience = 10 * time.Second

// Emit stores an event. Telling must not stop the doing, nor the stopping: what
// cannot be stored within 10 s, or before ctx ends, is logged and dropped.
func (l *Log) Emit(ctx context.Context, e team.Event) {
	e.TeamID = l.team.ID
	e.Event = e.Event.Stamp(time.Now())
	data, err := json.Marshal(e)
	if err == nil {
		err = ctx.Err() // a try would go out all the same
	}
	if err == nil {
		attempt, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_, err = l.team.Events.Publish(attempt, subject.Event(l.team.ID, e.AgentID, e.Event.Type), ulid.Make().String(), data)
	}
	if err != nil {
		l.log.WarnContext(ctx, "event dropped", "agent", e.AgentID, "type", e.Event.Type, "err", err)
	}
}

// Last is the sequence of the newest event.
func (l *Log) Last(ctx context.Context) (uint64, error) { return l.team.Events.LastSeq(ctx) }

// Read calls f for each event from sequence from on, up to the present end.
func (l *Log) Read(ctx context.Context, from uint64, f func(team.Event) error) error {
	return l.team.Events.Read(ctx, from, decode(f))
}

// Follow is Read that goes on with new events until ctx ends; then it returns nil.
func (l *Log) Follow(ctx context.Context, from uint64, f func(team.Event) error) error {
	return l.team.Events.Follow(ctx, from, decode(f), nil)
}

func decode(f func(team.Event) error) func(broker.Msg) error {
	return func(m broker.Msg) error {
		var e team.Event
		if err := json.Unmarshal(m.Data, &e); err != nil {
			return nil // one unreadable event must not blind every reader
		}
		e.Seq = m.Seq
		return f(e)
	}
}
