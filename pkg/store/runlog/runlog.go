// Package runlog is a team's append-only log of run events that are stored nowhere else: a run begins, ends or fails, as
// AG-UI events in an envelope.
//
// It does not repeat the content of conversations, mail and records: package feed reads all of them as one.
package runlog

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/telemetry"
)

// Log is a team's event log. Safe for concurrent use.
type Log struct {
	team *broker.Storage
	log  *slog.Logger
}

// New returns the log of a team. log, which may be nil, records dropped events.
func New(t *broker.Storage, log *slog.Logger) *Log {
	log = telemetry.OrDiscard(log)
	return &Log{t, log}
}

// patience bounds how long an agent's work waits for its own log.
const patience = 10 * time.Second

// Emit stores an event. The log must not hold up the work or its end: an event that cannot be stored within 10 s, or
// before ctx ends, is logged and dropped.
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

// Decode reads an entry of the log; ok is false for an unreadable entry, which readers skip.
func Decode(m broker.Msg) (e team.Event, ok bool) {
	return e, json.Unmarshal(m.Data, &e) == nil
}
