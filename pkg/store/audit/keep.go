package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// folder is the prefix of kept entries in a team's object store.
const folder = "audit/"

// Keep stores the entries of an agent's journal before the sequence before, in one file of the team's object store; the
// records may be removed then. The journal must have a record at that sequence, or right before it. A process that is
// killed between the two steps leaves the entries in both places, and [Read] returns them once. Errors: InvalidState if
// the journal does not reach that far; Unavailable.
func Keep(ctx context.Context, t *broker.Storage, a team.AgentID, before uint64) error {
	var tr callLog
	var first uint64
	reached := false
	err := t.Logs.Read(ctx, 1, func(m broker.Msg) error {
		if m.Seq >= before {
			reached = true
			return broker.ErrEnough
		}
		first, reached = cmp.Or(first, m.Seq), m.Seq == before-1
		return tr.take(ctx, t, m)
	}, subject.Log(t.ID, a))
	switch {
	case err != nil:
		return err
	case !reached: // the server that has answered is behind
		return team.Errorf(team.InvalidState, "the journal of %s was read up to before record %d only", a, before)
	}
	tr.close()
	if len(tr.entries) == 0 {
		return nil
	}
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	for _, e := range tr.entries {
		if err := enc.Encode(e); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
	}
	// The name has both ends of the range, so that the file never replaces a file with more entries.
	_, err = t.Files.Put(ctx, fmt.Sprintf("%s%s/%d-%d", folder, a, first, before), bytes.NewReader(lines.Bytes()))
	return err
}

// take adds an entry of the log stream. Errors: Unavailable.
func (t *callLog) take(ctx context.Context, storage *broker.Storage, m broker.Msg) error {
	r, err := journal.Decode(ctx, storage, m)
	switch {
	case err == nil:
		t.add(r)
	case errors.Is(err, team.ErrUnreadable):
		t.lost(subject.Author(m.Subject), m.Seq, journal.Record{At: m.Time})
	default:
		return err
	}
	return nil
}

// Query selects entries. The zero Query selects all.
type Query struct {
	Since time.Time    // not before this time
	Agent team.AgentID // of this agent and, if it is a member, of its subagents
	Tool  string       // of this tool, by its own name or that which the model has called
}

func (q Query) wants(e Entry) bool {
	return !e.At.Before(q.Since) && (q.Agent == "" || q.Agent == e.Agent || q.Agent == e.Agent.Owner()) && (q.Tool == "" || q.Tool == e.Tool || q.Tool == e.Called)
}

// clocks bounds the difference between the clocks of a member and of the server.
const clocks = 10 * time.Minute

// Read returns the entries of all agents that the team ever had, in the order of their records. Errors: Unavailable.
func Read(ctx context.Context, t *broker.Storage, q Query) ([]Entry, error) {
	from := uint64(1)
	if !q.Since.IsZero() {
		var err error
		if from, err = t.Logs.FirstSince(ctx, q.Since.Add(-clocks)); err != nil {
			return nil, err
		}
	}
	var filters []string
	if q.Agent != "" {
		filters = append(filters, subject.Log(t.ID, q.Agent), subject.LogsBelow(t.ID, q.Agent))
	}
	// The journals come first: records that are trimmed meanwhile were read, and earlier ones are kept.
	trails := map[team.AgentID]*callLog{}
	err := t.Logs.Read(ctx, from, func(m broker.Msg) error {
		a := subject.Author(m.Subject)
		if trails[a] == nil {
			trails[a] = &callLog{}
		}
		return trails[a].take(ctx, t, m)
	}, filters...)
	if err != nil {
		return nil, err
	}
	all, err := kept(ctx, t, q.Agent)
	if err != nil {
		return nil, err
	}
	for _, tr := range trails {
		tr.close()
		all = append(all, tr.entries...)
	}
	return merged(all, q), nil
}

// kept returns the entries that [Keep] has stored. Errors: Unavailable.
func kept(ctx context.Context, t *broker.Storage, a team.AgentID) (all []Entry, err error) {
	prefix := folder
	if a != "" {
		prefix += string(a)
	}
	names, err := t.Files.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		of, _, _ := strings.Cut(strings.TrimPrefix(name, folder), "/")
		if whose := team.AgentID(of); a != "" && whose != a && whose.Owner() != a {
			continue
		}
		f, err := t.Files.Open(ctx, name)
		if err != nil {
			return nil, err
		}
		for dec := json.NewDecoder(f); err == nil; {
			var e Entry
			if err = dec.Decode(&e); err == nil {
				all = append(all, e)
			}
		}
		_ = f.Close() // it was read
		if !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("audit file %s: %w", name, err)
		}
	}
	return all, nil
}

// merged returns the entries that q selects, each once and in order.
func merged(all []Entry, q Query) []Entry {
	slices.SortStableFunc(all, Entry.Compare)
	all = slices.CompactFunc(all, func(a, b Entry) bool { return a.Compare(b) == 0 })
	return slices.DeleteFunc(all, func(e Entry) bool { return !q.wants(e) })
}
