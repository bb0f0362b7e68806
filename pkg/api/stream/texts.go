package stream

import (
	"maps"
	"slices"
	"strings"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// PieceKind says what a Piece does to its text.
type PieceKind int

// The kinds of pieces. A text begins, has any number of pieces, and ends.
const (
	Begin PieceKind = iota
	More
	End
)

// Piece is a part of an agent's text, for protocols in which a text has a beginning and an
// end of its own.
type Piece struct {
	Kind      PieceKind
	AgentID   team.AgentID
	RunID     string
	MessageID string
	Text      string // of More; not empty
}

// Texts makes pieces of texts, of those that are being written as of those that are stored,
// and tells none of a text twice. Each agent has one text open at most, and none before the
// reader was told of its run. The zero Texts is ready; it is for one reader, and not for
// concurrent use.
type Texts struct {
	open   map[team.AgentID]*text
	closed map[team.AgentID]string       // id of the text of the agent that was stored last
	cut    map[team.AgentID][]string     // ids of texts of the agent that were ended before they were stored
	runs   map[team.AgentID]string       // run of the agent of which the reader was told last; none once it is over
	held   map[team.AgentID][]team.Delta // that came too soon: of a run of which the reader was not told yet, or of a text behind the open one
}

// text is one that is being written.
type text struct {
	id, run string
	told    string // to the reader
	written string // by the try that goes on; a try anew begins at nothing
}

// Run takes in that the reader was told of an agent's run. What the agent has written in it
// since may have come sooner, as nothing stores it.
func (t *Texts) Run(a team.AgentID, id string) (pieces []Piece) {
	if x := t.open[a]; x != nil && x.run != id { // of a process that has died, say
		pieces = t.end(a)
	}
	set(&t.runs, a, id)
	return append(pieces, t.release(a)...)
}

// release tells what was held, unless it still comes too soon.
func (t *Texts) release(a team.AgentID) (pieces []Piece) {
	held := t.held[a]
	delete(t.held, a)
	for _, d := range held {
		pieces = append(pieces, t.Delta(d)...)
	}
	return pieces
}

// Delta takes in a piece of a text that is being written. What does not follow on what has
// come before is left for [Texts.Stored].
func (t *Texts) Delta(d team.Delta) (pieces []Piece) {
	if d.MessageID <= t.closed[d.AgentID] || slices.Contains(t.cut[d.AgentID], d.MessageID) { // ids grow: it came later than the stored text
		return nil
	}
	x := t.open[d.AgentID]
	// A text that is followed by another is mostly stored by now, and the entry on its way.
	if t.runs[d.AgentID] != d.RunID || x != nil && x.id != d.MessageID {
		held := t.held[d.AgentID]
		if d.Offset == 0 { // what is held of it is of a try that has failed
			held = slices.DeleteFunc(held, func(h team.Delta) bool { return h.MessageID == d.MessageID })
		}
		set(&t.held, d.AgentID, append(held, d))
		return nil
	}
	switch {
	case x == nil && d.Offset > 0:
		return nil
	case x == nil:
		x = &text{id: d.MessageID, run: d.RunID, written: d.Text}
		set(&t.open, d.AgentID, x)
		pieces = append(pieces, x.piece(Begin, d.AgentID, ""))
	case d.Offset == 0:
		x.written = d.Text
	case d.Offset == len(x.written):
		x.written += d.Text
	}
	if rest, ok := strings.CutPrefix(x.written, x.told); ok && rest != "" {
		x.told = x.written
		pieces = append(pieces, x.piece(More, d.AgentID, rest))
	}
	return pieces
}

// Stored takes in a text as the feed has it, whole. Of a text that was ended before, or told
// in other words by a try that failed, the whole is told under an id of its own.
func (t *Texts) Stored(e client.Entry) (pieces []Piece) {
	x, id := t.open[e.AgentID], e.Event.Event.MessageID
	whole := e.Event.Event.Delta
	if x == nil || x.id != id || !strings.HasPrefix(whole, x.told) {
		pieces = t.end(e.AgentID)
		x = &text{id: id, run: e.RunID}
		if slices.Contains(t.cut[e.AgentID], id) {
			x.id += "-again"
		}
		pieces = append(pieces, x.piece(Begin, e.AgentID, ""))
	}
	if rest := whole[len(x.told):]; rest != "" {
		pieces = append(pieces, x.piece(More, e.AgentID, rest))
	}
	pieces = append(pieces, x.piece(End, e.AgentID, ""))
	delete(t.open, e.AgentID)
	set(&t.closed, e.AgentID, id)
	set(&t.cut, e.AgentID, slices.DeleteFunc(t.cut[e.AgentID], func(earlier string) bool { return earlier <= id }))
	set(&t.runs, e.AgentID, e.RunID)
	return append(pieces, t.release(e.AgentID)...)
}

// Cut ends the text that an agent has open, since its run is over: the rest will not come.
func (t *Texts) Cut(a team.AgentID) []Piece {
	over, known := t.runs[a]
	delete(t.runs, a)
	if held := slices.DeleteFunc(t.held[a], func(d team.Delta) bool { return known && d.RunID == over }); len(held) > 0 {
		t.held[a] = held
	} else {
		delete(t.held, a)
	}
	return t.end(a)
}

// end ends the text that an agent has open.
func (t *Texts) end(a team.AgentID) []Piece {
	x := t.open[a]
	if x == nil {
		return nil
	}
	delete(t.open, a)
	set(&t.cut, a, append(t.cut[a], x.id))
	return []Piece{x.piece(End, a, "")}
}

// CutAll ends all texts that are open, in the order of their agents.
func (t *Texts) CutAll() (pieces []Piece) {
	for _, a := range slices.Sorted(maps.Keys(t.open)) {
		pieces = append(pieces, t.Cut(a)...)
	}
	return pieces
}

func (x *text) piece(k PieceKind, a team.AgentID, s string) Piece {
	return Piece{Kind: k, AgentID: a, RunID: x.run, MessageID: x.id, Text: s}
}

// set sets an entry of a map, which may be nil.
func set[K comparable, V any](m *map[K]V, key K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = v
}
