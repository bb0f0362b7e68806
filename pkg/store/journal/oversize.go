package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
	"agentteam/pkg/team/codec"
)

// maxRecord bounds the bytes of a record in the log stream. By default a server takes messages of 1 MiB with their
// headers; see [largest].
const maxRecord = 768 << 10

// largest returns the most bytes of a record on this connection.
func largest(c *broker.Conn) int { return min(maxRecord, int(c.NATS().MaxPayload())*3/4) }

// fit returns the bytes to append for r: its JSON, or, if that would not fit into a message, a record with a reference to
// the team's object store. It stores the object first, so that no reader meets the reference without it. Errors:
// Unavailable.
func (j *Journal) fit(ctx context.Context, r Record) ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if len(data) <= largest(j.team.Conn) {
		return data, nil
	}
	ref, err := blob.In(j.team.Files).Put(ctx, string(data))
	if err != nil {
		return nil, err
	}
	return json.Marshal(Record{V: r.V, ID: r.ID, Kind: r.Kind, Incarnation: r.Incarnation, RunID: r.RunID, At: r.At, Base: r.Base, StoredRecord: ref})
}

// Decode returns the record in an entry of the log stream, and reads an oversize record from the team's object store; it
// never returns a record with a StoredRecord. Errors: [team.ErrUnreadable] for data that is not a record of this protocol
// version, and for a missing stored record; Unavailable.
func Decode(ctx context.Context, t *broker.Storage, m broker.Msg) (Record, error) {
	r, err := decode(m.Data)
	if err == nil && r.StoredRecord != "" {
		r, err = whole(ctx, t, r)
	}
	switch {
	case errors.Is(err, team.Unavailable):
		return r, err
	case err != nil:
		// Only the text of err is kept: its NotFound concerns the stored record, not the caller's request.
		return r, team.Errorf(team.InvalidState, "record %d of %s %w: %v", m.Seq, m.Subject, team.ErrUnreadable, err).WithHint(team.RepairHint)
	}
	r.Seq, r.Agent = m.Seq, subject.Author(m.Subject)
	return r, nil
}

// whole returns the stored record that stub refers to.
func whole(ctx context.Context, t *broker.Storage, stub Record) (Record, error) {
	text, err := blob.In(t.Files).Get(ctx, stub.StoredRecord)
	if err != nil {
		return stub, err
	}
	r, err := decode([]byte(text))
	switch {
	case err != nil:
		return r, fmt.Errorf("%s: %w", stub.StoredRecord, err)
	case r.ID != stub.ID || r.StoredRecord != "":
		return r, fmt.Errorf("%s holds another record", stub.StoredRecord)
	}
	return r, nil
}

// decode reads the JSON of a record.
func decode(data []byte) (r Record, err error) {
	switch err := json.Unmarshal(data, &r); {
	case err != nil:
		return r, err
	case r.V != team.Protocol:
		return r, codec.OtherProtocol(r.V)
	case r.StoredRecord != "":
		return r, nil
	}
	if field := r.missing(); field != "" {
		return r, fmt.Errorf("it is of kind %s and has no %s", r.Kind, field)
	}
	return r, nil
}
