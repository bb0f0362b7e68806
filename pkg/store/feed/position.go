package feed

import (
	"context"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
)

// Step is an entry with its unique position, so readers can compare entries from different
// sources: they may receive entries in another order, and one may continue where another was.
type Step struct {
	Entry
	Behind Place // the place behind it, for a reader that continues as [Walk] did

	kind kind
	at   position // of the entry itself, in its stream
}

// Has reports whether the step lies before the place.
func (p Place) Has(s Step) bool { return p[s.kind].covers(s.at) }

// Covers reports whether all entries before o lie before p too.
func (p Place) Covers(o Place) bool {
	for k := range p {
		if !p[k].covers(o[k]) {
			return false
		}
	}
	return true
}

// And returns the maximum of p and o per stream. Both must belong to the same streams.
func (p Place) And(o Place) Place {
	for k := range p {
		if !p[k].covers(o[k]) {
			p[k] = o[k]
		}
	}
	return p
}

// covers reports whether a reader at p has read all up to o, in the same stream.
func (p position) covers(o position) bool {
	switch {
	case p.made != o.made, p.at != 0 && o.at > p.at: // or it uses the sequence a second time
		return false
	case p.seq != o.seq:
		return p.seq > o.seq
	}
	return p.given == 0 || o.given != 0 && o.given <= p.given
}

// Walk is [Read] for a caller that passes entries on to readers at other places. It returns the place at which it has stopped:
// it has read all entries that existed at its start.
func Walk(ctx context.Context, t *broker.Storage, o Options, f func(Step) error) (Place, error) {
	m := newMerge(t, o, streamsOf(t), f)
	err := m.run(ctx)
	return m.place(), err
}

// Check returns an error for a cursor at which no reader can continue: InvalidArgument for a string that is not a cursor of this
// team, and for a place that its feed has not reached. Errors: Unavailable.
func Check(ctx context.Context, t *broker.Storage, c Cursor) error {
	p, err := c.Place(t.ID)
	if err != nil || c == "" {
		return err
	}
	for k, s := range streamsOf(t) {
		state, err := s.State(ctx)
		if err != nil {
			return err
		}
		if p[k].made == age(state) && p[k].seq > state.Last {
			return team.Errorf(team.InvalidArgument, "the cursor lies beyond the end of the feed of team %s", t.ID).
				WithHint("the server may have lost what it had stored: begin without a cursor")
		}
	}
	return nil
}
