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
)

// maxRecord is the most bytes of a record in the log stream. A server takes 1 MiB with
// its headers, unless it is told otherwise; see [largest].
const maxRecord = 768 << 10

// largest is how many bytes a record may have on this connection.
func largest(c *broker.Conn) int { return min(maxRecord, int(c.NATS().MaxPayload())*3/4) }

// fit returns r as it is to be appended: its JSON, or, if that would not fit into a
// message, a record that says where it lies in the team's object store. There it is put
// first, so that nobody can meet the one without the other. Errors: Unavailable.
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

// Decode returns the record in an entry of the log stream, which it gets from the
// team's object store if it lies there; it never returns one with a StoredRecord.
// Errors: [team.ErrUnreadable] for what is no record of this protocol version and for one that
// is not where it should be; Unavailable.
func Decode(ctx context.Context, t *broker.Storage, m broker.Msg) (Record, error) {
	r, err := decode(m.Data)
	if err == nil && r.StoredRecord != "" {
		r, err = whole(ctx, t, r)
	}
	switch {
	case errors.Is(err, team.Unavailable):
		return r, err
	case err != nil:
		// By its text only: what is not found is the record's part, not what was asked for.
		return r, team.Errorf(team.InvalidState, "record %d of %s %w: %v", m.Seq, m.Subject, team.ErrUnreadable, err).WithHint(team.RepairHint)
	}
	r.Seq, r.Agent = m.Seq, subject.Author(m.Subject)
	return r, nil
}

// whole returns the record for which stub stands.
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
		return r, fmt.Errorf("it has protocol version %d, this program speaks %d", r.V, team.Protocol)
	case r.StoredRecord != "":
		return r, nil
	}
	if field := r.missing(); field != "" {
		return r, fmt.Errorf("it is of kind %s and has no %s", r.Kind, field)
	}
	return r, nil
}
