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

// Mail that has piled up is recorded in one record and shown in one block.
const (
	// maxSingly is how many waiting messages are recorded one by one. Each costs a write to the
	// journal and some 35 tokens in addition to its text: 50 of a few lines are about 4,000 tokens,
	// for which any window has room.
	maxSingly = 50
	// maxBacklog is the most messages in one record; their sequences stay below 512 KiB.
	maxBacklog = 10_000
	// maxWhole is how many tokens of a backlog are shown in full, if the window has room.
	maxWhole = 8000
	// recordMark is a placeholder, of the same length, for the mark of a record that is not written
	// yet.
	recordMark = "012345"
	// wholeShare is the minimum number of messages that fit into maxWhole; longer messages are cut.
	wholeShare = 4

	maxHeaps  = 20 // senders that are listed separately
	maxNewest = 3  // newest messages of each, whose first words are shown
)

// crowded reports whether d begins so much mail that it is recorded as one: more than maxSingly
// messages, or more after the mail since the last turn already takes a quarter of the window.
func (a *Agent) crowded(d mailbox.Delivery) bool {
	if d.Pending == 0 || alone(d.Message) {
		return false
	}
	return d.Pending >= maxSingly || a.conv.Mail >= 0 && a.engine.Crowds(a.conv.Messages[a.conv.Mail])
}

// alone reports whether code acts on a message, which is then recorded separately.
func alone(m team.Message) bool { return m.RequestID != "" || m.Type.Asks() || m.Type.Answers() }

// errPiled ends the reading of a backlog.
var errPiled = errors.New("the pile is complete")

// takeBacklog records d and the mail after it in one record: up to the present end of the inbox, or
// to a message that is recorded separately.
func (a *Agent) takeBacklog(ctx context.Context, d mailbox.Delivery) error {
	limit := min(a.engine.ExcerptLimit(), maxWhole)
	p := backlogItem{limit: limit, ear: a.conv.ear(), heaps: map[team.AgentID]*journal.SenderGroup{}}
	err := a.o.Team.Backlog(ctx, d.Seq, func(d mailbox.Delivery) error {
		if alone(d.Message) || p.Count == maxBacklog {
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

// backlogItem is a backlog as far as it was read. It holds no more text than it shows.
type backlogItem struct {
	journal.Batch
	last   mailbox.Mark   // position of the last message that was read
	limit  int            // tokens that may be shown in full
	answer uint64         // sequence of the awaited answer
	ear    *Conversation  // a conversation that has taken in the mail read so far
	held   []team.Message // the first message of each row that is held from there on
	size   int            // tokens that are shown in full so far
	heaps  map[team.AgentID]*journal.SenderGroup
}

// add takes in the next message. Messages of the leader, of people and of the runtime are shown in
// full, and the awaited answer. If they are too many, those of people come first, since they are
// orders, then the newest.
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
		p.group(l)
		return
	}
	p.Whole = append(p.Whole, l)
	p.size += p.sizeOf(l)
	for p.size > p.limit {
		i := p.least()
		if i < 0 {
			return
		}
		p.group(p.Whole[i])
		p.size -= p.sizeOf(p.Whole[i])
		p.Whole = slices.Delete(p.Whole, i, i+1)
	}
}

// least returns the index of the message to drop from those shown in full: the oldest, messages of
// people last; -1 if only the newest and the awaited answer are left.
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

// sizeOf returns how many tokens a message takes when it is shown, with its frame, which is longer
// than most messages.
func (p *backlogItem) sizeOf(l journal.BatchMessage) int {
	return min(tokens.Estimate(mailBlock(l.Message, "", recordMark, team.Native)), p.limit/wholeShare)
}

// group counts a message in the group of its sender.
func (p *backlogItem) group(l journal.BatchMessage) {
	h := p.heaps[l.Message.From]
	if h == nil {
		h = &journal.SenderGroup{From: l.Message.From, First: l.Seq}
		p.heaps[l.Message.From] = h
	}
	h.Count, h.Last = h.Count+1, l.Seq
	h.Newest = append(h.Newest, journal.Words{Seq: l.Seq, Text: briefly(l.Message, "")})
	h.Newest = h.Newest[max(0, len(h.Newest)-maxNewest):]
}

// done returns the batch with its groups: the senders with the most messages separately, the others
// together.
func (p *backlogItem) done() *journal.Batch {
	p.Talks = p.ear.Talks
	for _, h := range p.heaps {
		p.Senders = append(p.Senders, *h)
	}
	slices.SortFunc(p.Senders, func(a, b journal.SenderGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.From, b.From))
	})
	if len(p.Senders) > maxHeaps {
		rest := journal.SenderGroup{First: p.Senders[maxHeaps].First}
		for _, h := range p.Senders[maxHeaps:] {
			rest.Count, rest.First, rest.Last = rest.Count+h.Count, min(rest.First, h.First), max(rest.Last, h.Last)
		}
		p.Senders = append(p.Senders[:maxHeaps:maxHeaps], rest)
	}
	return &p.Batch
}

// remainingBlock lists the messages of a backlog that are not shown in full.
func remainingBlock(p journal.Batch, mark string) string {
	var b strings.Builder
	n := p.Count - len(p.Whole)
	fmt.Fprintf(&b, "<mail count=\"%d\" mark=\"%s\">\n%d more messages had come than could be told whole. read_mail shows them, by number.\n", n, mark, n)
	for _, h := range p.Senders {
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
