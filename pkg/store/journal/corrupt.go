package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// Bad is a record of a journal that cannot be read; its Error states the reason.
type Bad struct {
	Seq uint64    // in the log stream
	At  time.Time // when it was stored
	err error     // team.ErrUnreadable
	raw []byte
}

func (b *Bad) Error() string { return b.err.Error() }

// Unwrap returns the reason.
func (b *Bad) Unwrap() error { return b.err }

// Kept returns the name in the team's object store under which [SkipUnreadable] keeps the record of an agent's journal.
func (b *Bad) Kept(a team.AgentID) string { return fmt.Sprintf("damaged/%s/%d", a, b.Seq) }

// Key returns the name of an agent's journal, in the form of a record's key.
func Key(a team.AgentID) string { return keyPrefix + string(a) }

// ParseKey returns the agent whose journal key names; ok is false if key names no journal.
func ParseKey(key string) (a team.AgentID, ok bool) {
	name, ok := strings.CutPrefix(key, keyPrefix)
	return team.AgentID(name), ok
}

const keyPrefix = "log."

// taken decodes a record and checks it with takes. Errors: [*Bad]; Unavailable.
func taken(ctx context.Context, t *broker.Storage, m broker.Msg, takes Takes) (Record, error) {
	r, err := Decode(ctx, t, m)
	if err == nil && takes != nil {
		err = takes(r)
	}
	if errors.Is(err, team.ErrUnreadable) {
		err = &Bad{m.Seq, m.Time, err, m.Data}
	}
	return r, err
}

// survey is the state of a journal for a repair.
type survey struct {
	bad         []*Bad
	last        uint64   // sequence of the newest record, be it as it may
	base        uint64   // of the newest that can be read and has a Context
	incarnation uint64   // of the newest that can be read
	quarantined []uint64 // what notes say was set aside
}

// inspect reads the part of a journal that the next process to open it would read; if that fails, all of it.
func inspect(ctx context.Context, t *broker.Storage, a team.AgentID, takes Takes) (s survey, err error) {
	j := &Journal{team: t, subject: subject.Log(t.ID, a)}
	from, _, err := j.begin(ctx)
	if err == nil {
		_, err = read(ctx, t, j.subject, from, takes)
	}
	if err == nil || !errors.Is(err, team.ErrUnreadable) {
		return s, err
	}
	// The newest context may be the damaged record, so the whole journal is read.
	err = t.Logs.Read(ctx, 0, func(m broker.Msg) error {
		r, err := taken(ctx, t, m, takes)
		s.last = m.Seq
		var bad *Bad
		switch {
		case errors.As(err, &bad):
			s.bad = append(s.bad, bad)
		case err != nil:
			return err
		default:
			s.incarnation, s.quarantined = r.Incarnation, append(s.quarantined, r.Unreadable...)
			if r.Context != nil {
				s.base = r.Seq
			}
		}
		return nil
	}, j.subject)
	s.bad = slices.DeleteFunc(s.bad, func(b *Bad) bool { return b.Seq < s.base }) // before the context: for people only
	return s, err
}

// Damage returns the records because of which the next incarnation of an agent could not open its journal, oldest first.
// Errors: Unavailable.
func Damage(ctx context.Context, t *broker.Storage, a team.AgentID, takes Takes) ([]*Bad, error) {
	s, err := inspect(ctx, t, a, takes)
	return s.bad, err
}

// SkipUnreadable removes the records of [Damage] from an agent's journal and returns them. It keeps each in the team's object
// store (see [Bad.Kept]), and a note informs the agent. A running incarnation is not disturbed. SkipUnreadable may run again
// after a killed process, or in several processes at the same time, with the same result. Errors: Unavailable.
func SkipUnreadable(ctx context.Context, t *broker.Storage, a team.AgentID, takes Takes) ([]*Bad, error) {
	for {
		s, err := inspect(ctx, t, a, takes)
		if err != nil || len(s.bad) == 0 {
			return nil, err
		}
		for _, b := range s.bad {
			if _, err := t.Files.Put(ctx, b.Kept(a), bytes.NewReader(b.raw)); err != nil {
				return nil, err
			}
		}
		// The note comes before the removal: a writer of the journal expects the sequence of a newest record that is
		// there.
		err = s.note(ctx, t, a)
		if errors.Is(err, team.Conflict) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, b := range s.bad {
			if err := t.Logs.Remove(ctx, b.Seq); err != nil {
				return nil, err
			}
		}
		return s.bad, nil
	}
}

// note appends a note on the removed records, unless a note on them is there. Errors: Conflict; Unavailable.
func (s survey) note(ctx context.Context, t *broker.Storage, a team.AgentID) error {
	r := Record{V: team.Protocol, ID: ulid.Make().String(), Kind: Note, Incarnation: s.incarnation, At: time.Now().UTC(), Base: s.base}
	var kept []string
	for _, b := range s.bad {
		if !slices.Contains(s.quarantined, b.Seq) {
			r.Unreadable, kept = append(r.Unreadable, b.Seq), append(kept, b.At.UTC().Format(time.DateTime))
		}
	}
	if len(r.Unreadable) == 0 {
		return nil
	}
	r.Text = fmt.Sprintf("What was recorded of your conversation at %s (UTC) could not be read and was set aside by a person: a message, a turn or a result may be missing. Look at the board and your mail before you go on.",
		strings.Join(kept, ", "))
	data, err := json.Marshal(r)
	if err == nil {
		_, err = t.Logs.Append(ctx, subject.Log(t.ID, a), data, s.last)
	}
	return err
}
