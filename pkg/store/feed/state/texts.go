package state

import (
	"slices"
	"strings"
	"time"

	"agentteam/pkg/team"
)

// The text of a turn comes in two ways: in pieces while the model writes it, which may be lost
// or be ahead of the feed, and whole by the entry of the turn. texts makes one stream of both,
// in which each agent has one text open at most, none before its run was reported, and nothing
// twice. Texts wait in a queue for their turn; one of them is open.
//
//	comes in                     open       in the queue  goes out
//	entry of the run r1          -          -             -
//	piece "ab" of m1, r1         m1 "ab"    -             begin m1, "ab"
//	piece "c" of m1, r1          m1 "abc"   -             "c"
//	piece "x" of m2, r1          m1 "abc"   m2 "x"        -          m1 is being stored
//	entry m1 "abcd"              m2 "x"     -             "d", end m1, begin m2, "x"
//	piece "q" of m3, r2          m2 "x"     m3 "q"        -          r2 is not reported yet
//	end of r1                    -          m3 "q"        end m2     m2 is cut
//	entry m2 "xyz", late         -          m3 "q"        begin m2-again, "xyz", end m2-again
//	entry of the run r2          m3 "q"     -             begin m3, "q"
//
// A chunk that does not follow on the sent text is left for the entry:
//
//	comes in                     goes out
//	piece "abc" of m4, at 0      begin m4, "abc"
//	piece "f" of m4, at 5        -                        a piece was lost
//	entry m4 "abcdef"            "def", end m4
//	piece "abc" of m5, at 0      begin m5, "abc"
//	piece "x" of m5, at 0        -                        another try, in other words
//	entry m5 "xyz"               end m5, begin m5-again, "xyz", end m5-again
//	piece "abc" of m5, at 0      -                        it is late: ids of an agent's texts grow
type texts struct {
	agent  team.AgentID
	queue  []*Draft // in the order in which they came
	run    string   // that was reported last, "" once it is over
	closed string   // id of the newest text that was stored
	cut    []string // ids of texts that were ended before they were stored
	turn   string   // id of the newest turn that was stored
}

// Draft is the known part of a text that a model is writing.
type Draft struct {
	AgentID          team.AgentID
	MessageID, RunID string
	Begun            time.Time
	From             int    // bytes of the text before the known part
	Text             string // from there on

	open   bool
	sent   string // the sent text
	hidden bool   // it will not be completed, but it may still be open
}

// text returns the texts of an agent.
func (t *Team) text(a team.AgentID) *texts {
	if t.texts[a] == nil {
		t.texts[a] = &texts{agent: a}
	}
	return t.texts[a]
}

// write applies a chunk of a text that is being written.
func (x *texts) write(d team.Delta, now time.Time) []Chunk {
	if d.MessageID <= x.closed || slices.Contains(x.cut, d.MessageID) {
		return nil
	}
	i := slices.IndexFunc(x.queue, func(w *Draft) bool { return w.MessageID == d.MessageID })
	if i < 0 {
		i = len(x.queue)
		x.queue = append(x.queue, &Draft{AgentID: x.agent, MessageID: d.MessageID, RunID: d.RunID, Begun: now, From: d.Offset})
	}
	w := x.queue[i]
	if d.Offset < w.From || d.Offset > w.From+len(w.Text) { // another try, or a piece was lost
		w.From, w.Text = d.Offset, ""
	}
	w.Text, w.hidden = w.Text[:d.Offset-w.From]+d.Text, w.hidden && d.Offset > 0
	return x.next()
}

// next returns the new pieces of the open text, which may be a text that was waiting.
func (x *texts) next() (all []Chunk) {
	i := x.opened()
	if i < 0 {
		i = slices.IndexFunc(x.queue, func(w *Draft) bool { return w.RunID == x.run && w.From == 0 })
	}
	if i < 0 {
		return nil
	}
	w := x.queue[i]
	if !w.open {
		w.open = true
		all = append(all, w.chunk(Begin, ""))
	}
	if rest, ok := strings.CutPrefix(w.Text, w.sent); ok && rest != "" && w.From == 0 {
		w.sent = w.Text
		all = append(all, w.chunk(More, rest))
	}
	return all
}

// opened returns the index of the open text in the queue; -1 = none is open.
func (x *texts) opened() int { return slices.IndexFunc(x.queue, func(w *Draft) bool { return w.open }) }

// enter records that a run was reported.
func (x *texts) enter(run string) (all []Chunk) {
	if i := x.opened(); i >= 0 && x.queue[i].RunID != run { // for example of a process that has died
		all = x.end()
	}
	x.run = run
	return append(all, x.next()...)
}

// store applies the whole text of a turn's entry.
func (x *texts) store(of Of, b team.EventBody) (all []Chunk) {
	w, id := &Draft{}, b.MessageID
	if id != "" && id == x.closed { // it is here twice
		return nil
	}
	if i := x.opened(); i >= 0 {
		w = x.queue[i]
	}
	if !w.open || w.MessageID != id || !strings.HasPrefix(b.Delta, w.sent) {
		all = x.end()
		w = &Draft{AgentID: x.agent, MessageID: id, RunID: of.RunID}
		if slices.Contains(x.cut, id) {
			w.MessageID += "-again"
		}
		all = append(all, w.chunk(Begin, ""))
	}
	if rest := b.Delta[len(w.sent):]; rest != "" {
		all = append(all, w.chunk(More, rest))
	}
	all = append(all, w.chunk(End, ""))
	x.closed, x.turn = id, id
	x.queue = slices.DeleteFunc(x.queue, func(w *Draft) bool { return w.MessageID <= id })
	x.cut = slices.DeleteFunc(x.cut, func(earlier string) bool { return earlier <= id })
	return all
}

// leave records that a run is over: the rest of its texts will not come.
func (x *texts) leave(run string) (all []Chunk) {
	if i := x.opened(); i >= 0 && x.queue[i].RunID == run {
		all = x.end()
	}
	x.queue = slices.DeleteFunc(x.queue, func(w *Draft) bool { return w.RunID == run })
	if x.run == run {
		x.run = ""
	}
	return all
}

// end ends the open text, if there is one.
func (x *texts) end() []Chunk {
	i := x.opened()
	if i < 0 {
		return nil
	}
	w := x.queue[i]
	x.queue = slices.Delete(x.queue, i, i+1)
	x.cut = append(x.cut, w.MessageID)
	return []Chunk{w.chunk(End, "")}
}

// hide hides the texts of these runs, or all: they will not be completed.
func (x *texts) hide(runs ...string) {
	x.queue = slices.DeleteFunc(x.queue, func(w *Draft) bool {
		w.hidden = w.hidden || len(runs) == 0 || slices.Contains(runs, w.RunID)
		return w.hidden && !w.open
	})
}

// shown returns the text that is being written, of several the newest; nil = there is none.
func (x *texts) shown() *Draft {
	for _, w := range slices.Backward(x.queue) {
		if !w.hidden && w.MessageID != x.turn && w.Text != "" {
			return w
		}
	}
	return nil
}

func (w *Draft) chunk(k ChunkKind, text string) Chunk {
	return Chunk{Of: Of{AgentID: w.AgentID, RunID: w.RunID}, Kind: k, MessageID: w.MessageID, Text: text}
}
