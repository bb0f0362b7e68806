package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// inbox is what is stored for the agent of a rig, in order.
type inbox []mailbox.Delivery

func (in *inbox) add(from team.AgentID, typ team.MessageType, text string) {
	seq := uint64(len(*in) + 1)
	m := team.Message{ID: fmt.Sprintf("m%d", seq), Type: typ, From: from, To: "coder-1", Content: text, Summary: team.Summarize(text)}
	if typ.Asks() {
		m.RequestID = "r1"
	}
	*in = append(*in, mailbox.Delivery{Message: m, Seq: seq})
}

func (in *inbox) read(_ context.Context, from uint64, f func(mailbox.Delivery) error) error {
	for _, d := range *in {
		if d.Seq < from {
			continue
		}
		if err := f(d); err != nil {
			return err
		}
	}
	return nil
}

// deliver hands a stored message to the agent, as the server does.
func (r *rig) deliver(in inbox, seq uint64) {
	d := in[seq-1]
	d.Pending, d.Ack = uint64(len(in))-seq, func() { r.acked = append(r.acked, seq) }
	r.mail <- d
}

// Sixty messages come while the agent is at a command, the first of them alone: the server
// hands out the next once the one before is acknowledged. The model reads all of them before
// it acts on the first.
func TestPileIsReadWhole(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		var in inbox
		r.team.backlog = func(ctx context.Context, from uint64, f func(mailbox.Delivery) error) error {
			return in.read(ctx, from, f)
		}
		r.tools["bash"] = func(context.Context, tool.Call) tool.Result {
			in.add(team.UserAgent, team.MsgUser, "delete the table")
			taken := make(chan struct{})
			first := in[0]
			first.Ack = func() { taken <- struct{}{} }
			r.mail <- first // nothing stands behind it yet
			for i := range 58 {
				in.add("coder-2", team.MsgMessage, fmt.Sprintf("remark %d", i))
			}
			in.add(team.UserAgent, team.MsgUser, "no, wait")
			go func() {
				for i, d := range in[1:] {
					<-taken
					time.Sleep(time.Millisecond) // until the server has heard of it
					d.Pending, d.Ack = uint64(len(in)-2-i), first.Ack
					r.mail <- d
				}
				<-taken
			}()
			return tool.Result{Content: "done"}
		}
		r.says("!bash", "I wait")
		r.start()
		r.offer()
		r.pass(time.Second)
		if len(r.asked) < 2 {
			t.Fatalf("the model was asked %d times", len(r.asked))
		}
		told := transcript(r.asked[1].Messages)
		for _, want := range []string{"delete the table", "no, wait", "58 more messages", "remark 57"} {
			if !strings.Contains(told, want) {
				t.Errorf("the first request after the command does not tell %q:\n%s", want, told)
			}
		}
	})
}

// Ten thousand messages are one record and one short block. What the leader and people say
// and the awaited answer are told whole; the same is told after a restart, and nothing twice.
func TestBacklog(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		var in inbox
		r.team.backlog = in.read
		r.limits.Window = 128_000
		r.awaits("tester-1")
		ask := r.tools["ask"]
		r.tools["ask"] = func(ctx context.Context, c tool.Call) tool.Result { // while it is busy with this call
			in.add(team.Leader, team.MsgMessage, "use the new parser")
			for i := range 9_995 {
				in.add(team.AgentID(fmt.Sprintf("coder-%d", 2+i%10)), team.MsgMessage, fmt.Sprintf("thank you </mail> %d %s", i, strings.Repeat("x", 300)))
			}
			in.add("tester-1", team.MsgMessage, "the answer is 42")
			in.add("tester-1", team.MsgMessage, "by the way")
			in.add(team.UserAgent, team.MsgUser, "be quick")
			in.add("coder-2", team.MsgIdle, "coder-2 is idle")
			return ask(ctx, c)
		}
		r.tools["end"] = func(context.Context, tool.Call) tool.Result { return r.complete("done") }
		r.team.backlog = func(ctx context.Context, from uint64, f func(mailbox.Delivery) error) error {
			return in.read(ctx, from, f)
		}
		r.says("!ask", "!end", "more")
		r.start()
		r.offer()
		r.deliver(in, 1)
		synctest.Wait()

		r.wantKinds("start task turn result end backlog turn result end")
		asked := r.asked[1]
		text := transcript(asked.Messages[1:])
		for _, want := range []string{"use the new parser", "the answer is 42", "be quick", `count="9997"`, "- coder-2: 1001", "thank you &lt;/mail> 9994", "tester-1: 1 ("} {
			if !strings.Contains(text, want) {
				t.Errorf("the model is not told %q", want)
			}
		}
		if n := sizeOf(asked.Messages); n > 8_000 {
			t.Errorf("the request has %d tokens:\n%.3000s", n, text)
		}
		pile := r.journal[5]
		for seq := uint64(1); seq <= uint64(len(in)); seq++ {
			if !pile.Took(seq) {
				t.Fatalf("message %d of %d is lost: %+v", seq, len(in), pile.Backlog.Runs)
			}
		}
		if pile.Took(uint64(len(in)+1)) || pile.Backlog.Count != len(in) || r.agent.Taken().Seq != uint64(len(in)) || !slices.Equal(r.acked, []uint64{1}) {
			t.Errorf("the record has %d messages, up to %v; acknowledged %v", pile.Backlog.Count, r.agent.Taken(), r.acked)
		}
		r.deliver(in, 2) // it comes again and is skipped
		synctest.Wait()
		r.wantKinds("start task turn result end backlog turn result end")
		again, err := Fold("", r.journal[:6])
		if err != nil || transcript(again.Messages) != text || again.Await != nil {
			t.Errorf("after a restart it is told otherwise, or waits for %+v: %v", again.Await, err)
		}
	})
}

// A message that code acts on ends a pile and is taken in by itself, also if it is close
// behind others; what is read already is not counted again.
func TestBacklogEndsAtRequest(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		var in inbox
		for range 60 {
			in.add("coder-2", team.MsgMessage, "hello")
		}
		in.add(team.Leader, team.MsgShutdownRequest, "leave")
		for range 60 {
			in.add("coder-2", team.MsgMessage, "hello again")
		}
		r.team.backlog = in.read
		r.says("hm")
		r.start()
		r.deliver(in, 1)
		synctest.Wait()
		r.wantKinds("start backlog turn end")
		if n := r.journal[1].Backlog.Count; n != 60 {
			t.Errorf("the pile has %d messages, want those before the request", n)
		}
		r.says("yes")
		r.deliver(in, 61)
		synctest.Wait()
		if r.journal[4].Kind != journal.Mail || r.journal[4].Message.Type != team.MsgShutdownRequest {
			t.Errorf("the request was taken in as %s", r.journal[4].Kind)
		}
	})
	loop(t, func(t *testing.T, r *rig) {
		var in inbox
		in.add("coder-2", team.MsgMessage, "the first")
		in.add(team.Leader, team.MsgShutdownRequest, "leave")
		for range 60 {
			in.add("coder-2", team.MsgMessage, "hello")
		}
		r.team.backlog = in.read
		r.says("hm")
		r.start()
		r.deliver(in, 1)
		r.pass(nextWithin)
		r.wantKinds("start mail turn end") // it could be told whole
	})
}

// Of many short messages the pile tells no more than its limit, with the frame of each.
func TestPileCountsFrames(t *testing.T) {
	p := backlogItem{limit: 1000, ear: newConversation(""), heaps: map[team.AgentID]*journal.SenderGroup{}}
	for i := range 400 {
		p.add(mailbox.Delivery{Message: team.Message{ID: fmt.Sprintf("01JD%022d", i), Type: team.MsgUser, From: team.UserAgent, Content: "go on"}, Seq: uint64(i + 1)})
	}
	c := newConversation("")
	if err := c.Add(journal.Record{ID: recordID, Kind: journal.Backlog, InboxSeq: 400, Backlog: p.done()}); err != nil {
		t.Fatal(err)
	}
	if n := sizeOf(c.Messages); n > 1200 || n < 800 || p.Count != 400 {
		t.Errorf("%d messages are told in %d tokens, want about 1000", p.Count, n)
	}
}

// What people say is told whole before what the leader and the runtime say, however old it is.
func TestPileKeepsOrdersOfPeople(t *testing.T) {
	p := backlogItem{limit: 1000, ear: newConversation(""), heaps: map[team.AgentID]*journal.SenderGroup{}}
	add := func(seq uint64, from team.AgentID, text string) {
		p.add(mailbox.Delivery{Seq: seq, Message: team.Message{ID: fmt.Sprint(seq), From: from, Type: team.MsgMessage, Content: text}})
	}
	add(1, team.UserAgent, rule)
	for seq := range uint64(60) {
		add(2+seq, team.Leader, strings.Repeat("look again ", 20))
	}
	if len(p.Whole) < 3 || p.Whole[0].Message.Content != rule || p.Whole[len(p.Whole)-1].Seq != 61 || p.size > p.limit {
		t.Errorf("of %d tokens these are told whole: %+v", p.size, p.Whole)
	}
	for seq := range uint64(60) {
		add(62+seq, team.UserAgent, strings.Repeat("and this too ", 20))
	}
	if last := p.Whole[len(p.Whole)-1]; last.Seq != 121 || p.Whole[0].Message.From != team.UserAgent || p.size > p.limit {
		t.Errorf("of %d tokens these are told whole: %+v", p.size, p.Whole)
	}
}

// A pile keeps no more text than it tells, however much the leader writes, and the newest.
func TestPileIsBounded(t *testing.T) {
	p := backlogItem{limit: 1000, ear: newConversation(""), heaps: map[team.AgentID]*journal.SenderGroup{}}
	for i := range 2000 {
		from := team.Leader
		if i%2 == 0 {
			from = team.AgentID(fmt.Sprintf("a-%d", i))
		}
		p.add(mailbox.Delivery{Seq: uint64(10 * i), Message: team.Message{ID: fmt.Sprint(i), From: from, Content: strings.Repeat("word ", 100+i)}})
		size := 0
		for _, l := range p.Whole {
			size += p.sizeOf(l)
		}
		if size > p.limit || size != p.size {
			t.Fatalf("%d letters of %d tokens, counted as %d", len(p.Whole), size, p.size)
		}
	}
	done := p.done()
	if last := done.Whole[len(done.Whole)-1]; last.Seq != 19990 || len(done.Whole) < wholeShare {
		t.Errorf("%d letters are told, up to %d", len(done.Whole), last.Seq)
	}
	n := len(done.Whole)
	for _, h := range done.Senders {
		n += h.Count
	}
	if n != 2000 || len(done.Senders) != maxHeaps+1 || done.Senders[0].From != team.Leader || done.Senders[maxHeaps].From != "" || len(done.Runs) != 2000 {
		t.Errorf("%d of 2000 are accounted for, in %d heaps, %d runs", n, len(done.Senders), len(done.Runs))
	}
}

// All that waits is taken in before the model is asked, though one message comes only once
// the one before is acknowledged.
func TestWaitingMailIsTakenIn(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		var in inbox
		in.add("coder-2", team.MsgMessage, "one")
		in.add("coder-2", team.MsgMessage, "two")
		r.team.backlog = in.read
		r.stored = func() {
			if r.journal[len(r.journal)-1].Kind == journal.Mail && r.journal[len(r.journal)-1].InboxSeq == 1 {
				go func() { r.deliver(in, 2) }()
			}
		}
		r.says("both")
		r.start()
		r.deliver(in, 1)
		r.settle()
		r.wantKinds("start mail mail turn end")
	})
}
