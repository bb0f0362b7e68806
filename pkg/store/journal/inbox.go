package journal

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// reader is the mail position of a journal, and the position of its next record.
type reader struct {
	inbox       uint64
	last, base  uint64
	incarnation uint64
}

func (r *reader) take(rec Record) {
	r.last, r.incarnation = rec.Seq, rec.Incarnation
	if rec.Context != nil {
		r.base = rec.Seq
		_ = json.Unmarshal(rec.Context, &struct {
			Inbox *uint64 `json:"inbox_seq"`
		}{&r.inbox})
	}
	if rec.InboxSeq > 0 {
		r.inbox = rec.InboxSeq
	}
	if rec.SetBack != nil {
		r.inbox = *rec.SetBack
	}
}

func inboxOf(ctx context.Context, t *broker.Storage, a team.AgentID) (r reader, err error) {
	j := &Journal{team: t, subject: subject.Log(t.ID, a)}
	from, none, err := j.begin(ctx)
	if err != nil || none {
		return r, err
	}
	records, err := read(ctx, t, j.subject, from, nil)
	for _, rec := range records {
		r.take(rec)
	}
	return r, err
}

// Inbox returns the sequence of the newest message that an agent's journal has taken in, 0 if there is none, and a
// function that sets it back: back appends a note that the message stream was restored from an older copy and ends at to.
// A journal that is not ahead of to stays as it is; a running incarnation reads the note. Errors, of back too: [*Bad] for
// a journal that cannot be read; Unavailable.
func Inbox(ctx context.Context, t *broker.Storage, a team.AgentID) (seq uint64, back func(ctx context.Context, to uint64) error, err error) {
	r, err := inboxOf(ctx, t, a)
	return r.inbox, func(ctx context.Context, to uint64) error { return setBack(ctx, t, a, to) }, err
}

func setBack(ctx context.Context, t *broker.Storage, a team.AgentID, to uint64) error {
	for {
		r, err := inboxOf(ctx, t, a)
		if err != nil || r.inbox <= to {
			return err
		}
		data, err := json.Marshal(Record{V: team.Protocol, ID: ulid.Make().String(), Kind: Note, Incarnation: r.incarnation, At: time.Now().UTC(), Base: r.base, SetBack: &to,
			Text: "The team's mail was restored from an older copy: messages may be missing that you were sent. Look at the board before you continue."})
		if err == nil {
			_, err = t.Logs.Append(ctx, subject.Log(t.ID, a), data, r.last)
		}
		if !errors.Is(err, team.Conflict) {
			return err
		}
	}
}
