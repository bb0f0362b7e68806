package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"agentteam/pkg/model/tokens"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
)

// Mail that has piled up is taken in as one record and shown in one block.
const (
	// maxSingly is how many waiting messages are taken in one by one. Each costs a write to
	// the journal and some 35 tokens beside its text: 50 of a few lines are about 4,000
	// tokens, for which there is room in any window.
	maxSingly = 50
	// maxPile is the most messages of one record, which their sequences keep below 512 KiB.
	maxPile = 10_000
	// maxWhole is how many tokens of a pile are told whole, if the window has room.
	maxWhole = 8000
	// recordMark stands for the mark of a record that is yet to be written.
	recordMark = "012345"
	// wholeShare is how many letters fit into that at least; longer ones are cut.
	wholeShare = 4

	maxHeaps  = 20 // senders that are told apart
	maxNewest = 3  // of whose messages the first words are told
)

// crowded reports whether d is the first of so much mail that it is taken in as one: more
// than maxSingly messages, or more than beside what has come before in this pause between
// turns is a quarter of the window.
func (a *Agent) crowded(d mailbox.Delivery) bool {
	if d.Pending == 0 || alone(d.Message) {
		return false
	}
	return d.Pending >= maxSingly || a.conv.Mail >= 0 && a.engine.Crowds(a.conv.Messages[a.conv.Mail])
}

// alone reports whether code acts on a message, which is then taken in by itself.
func alone(m team.Message) bool { return m.RequestID != "" || m.Type.Asks() || m.Type.Answers() }

// errPiled ends the reading of mail that is taken in as one.
var errPiled = errors.New("the pile is complete")

// takeBacklog takes in d and what waits behind it in one record: up to the present end of
// the inbox, or to a message that is to be taken in by itself.
func (a *Agent) takeBacklog(ctx context.Context, d mailbox.Delivery) error {
	limit := min(a.engine.ExcerptLimit(), maxWhole)
	p := backlogItem{limit: limit, ear: a.conv.ear(), heaps: map[team.AgentID]*journal.SenderGroup{}}
	err := a.o.Team.Backlog(ctx, d.Seq, func(d mailbox.Delivery) error {
		if alone(d.Message) || p.Count == maxPile {
			return errPiled
		}
		if p.last = (mailbox.Mark{Seq: d.Seq, At: d.At}); !a.conv.knows(d.ID) {
			d.Message = a.worded(d.Message)
			p.add(d)
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errPiled):
		return err
	case p.Count == 0, d.Pending >= maxSingly && p.Count <= maxSingly: // what comes then goes first
		return a.takeSingly(ctx, d)
	}
	for i := range p.Whole {
		l := &p.Whole[i]
		l.Message.Content, l.Stored = a.engine.ExcerptTo(ctx, l.Message.Content, limit/wholeShare)
		l.Stored = cmp.Or(l.Message.Stored, l.Stored)
	}
	for _, m := range p.held {
		a.notifyHeld(ctx, m)
	}
	if err := a.engine.Record(ctx, journal.Record{Kind: journal.Backlog, InboxSeq: p.last.Seq, InboxAt: p.last.At, Backlog: p.done()}); err != nil {
		return err
	}
	a.log.InfoContext(ctx, "mail had piled up", "messages", p.Count)
	d.Ack()
	if slices.ContainsFunc(p.Whole, func(l journal.BatchMessage) bool { return l.Message.From == team.UserAgent }) {
		a.directed++
	}
	return nil
}

// pile is mail that is taken in as one, as far as it was read. It holds no more text than
// it tells.
type backlogItem struct {
	journal.Batch
	last   mailbox.Mark   // the last message that was read
	limit  int            // tokens of what is told whole
	answer uint64         // sequence of that answer
	ear    *Conversation  // as far as it has heard them
	held   []team.Message // the first of each row that is held from there on
	size   int            // tokens of what is told whole so far
	heaps  map[team.AgentID]*journal.SenderGroup
}

// add takes in the next message. Told whole are the words of the leader, of people and of
// the runtime, and the answer that is awaited. If they are too many, those of people come
// first, since they are orders, and then the newest.
func (p *backlogItem) add(d mailbox.Delivery) {
	p.Count++
	if n := len(p.Runs); n > 0 && p.Runs[n-1].Last+1 == d.Seq {
		p.Runs[n-1].Last = d.Seq
	} else {
		p.Runs = append(p.Runs, journal.Run{First: d.Seq, Last: d.Seq})
	}
	wakes, first := p.ear.hears(d.Message)
	if first {
		p.held = append(p.held, d.Message)
	}
	p.Wakes = p.Wakes || wakes
	if wakes && d.From != team.Watchdog {
		p.Heard = d.Seq
	}
	l := journal.BatchMessage{Seq: d.Seq, Message: d.Message}
	switch {
	case p.answer == 0 && p.ear.answeredBy(d.Message):
		p.answer = d.Seq
	case d.From != team.Leader && d.From != team.UserAgent && d.From != team.Watchdog:
		p.heap(l)
		return
	}
	p.Whole = append(p.Whole, l)
	p.size += p.sizeOf(l)
	for p.size > p.limit {
		i := p.least()
		if i < 0 {
			return
		}
		p.heap(p.Whole[i])
		p.size -= p.sizeOf(p.Whole[i])
		p.Whole = slices.Delete(p.Whole, i, i+1)
	}
}

// least returns the index of the letter that is least worth to be told whole, which is the
// oldest, those of people last; -1 if none is left beside the newest and the awaited answer.
func (p *backlogItem) least() int {
	older := p.Whole[:len(p.Whole)-1]
	for _, ofPeople := range []bool{false, true} {
		if i := slices.IndexFunc(older, func(l journal.BatchMessage) bool {
			return l.Seq != p.answer && (l.Message.From == team.UserAgent) == ofPeople
		}); i >= 0 {
			return i
		}
	}
	return -1
}

// sizeOf is how many tokens of a letter are told, its frame included, which is more than
// most letters.
func (p *backlogItem) sizeOf(l journal.BatchMessage) int {
	return min(tokens.Estimate(mailBlock(l.Message, "", recordMark, team.Native)), p.limit/wholeShare)
}

// heap counts a letter among the others of its sender.
func (p *backlogItem) heap(l journal.BatchMessage) {
	h := p.heaps[l.Message.From]
	if h == nil {
		h = &journal.SenderGroup{From: l.Message.From, First: l.Seq}
		p.heaps[l.Message.From] = h
	}
	h.Count, h.Last = h.Count+1, l.Seq
	h.Newest = append(h.Newest, journal.Words{Seq: l.Seq, Text: briefly(l.Message, "")})
	h.Newest = h.Newest[max(0, len(h.Newest)-maxNewest):]
}

// done returns the pile with its heaps: those who sent most apart, the others together.
func (p *backlogItem) done() *journal.Batch {
	p.Talks = p.ear.Talks
	for _, h := range p.heaps {
		p.Rest = append(p.Rest, *h)
	}
	slices.SortFunc(p.Rest, func(a, b journal.SenderGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.From, b.From))
	})
	if len(p.Rest) > maxHeaps {
		rest := journal.SenderGroup{First: p.Rest[maxHeaps].First}
		for _, h := range p.Rest[maxHeaps:] {
			rest.Count, rest.First, rest.Last = rest.Count+h.Count, min(rest.First, h.First), max(rest.Last, h.Last)
		}
		p.Rest = append(p.Rest[:maxHeaps:maxHeaps], rest)
	}
	return &p.Batch
}

// restBlock tells of the messages of a pile that are not told whole.
func restBlock(p journal.Batch, mark string) string {
	var b strings.Builder
	n := p.Count - len(p.Whole)
	fmt.Fprintf(&b, "<mail count=\"%d\" mark=\"%s\">\n%d more messages had come than could be told whole. read_mail shows them, by number.\n", n, mark, n)
	for _, h := range p.Rest {
		from := attribute(string(h.From))
		if from == "" {
			from = "others"
		}
		fmt.Fprintf(&b, "- %s: %d (numbers %d to %d)", from, h.Count, h.First, h.Last)
		if len(h.Newest) > 0 {
			b.WriteString(", the newest:")
		}
		for _, w := range h.Newest {
			fmt.Fprintf(&b, "\n  %d: %s", w.Seq, neutral(team.OneLine(w.Text)))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "</mail %s>", mark)
	return b.String()
}
