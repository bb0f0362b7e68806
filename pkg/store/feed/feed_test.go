package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"agentteam/pkg/model"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

func differs(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s is\n%q\nwant\n%q", what, got, want)
	}
}

// All four sources come in the order in which things happened, and what nobody
// can read is left out.
func TestOrder(t *testing.T) {
	r := newRig(t)
	_, err := r.bt.Events.Publish(t.Context(), subject.Event("t", "coder-1", team.Custom), "nonsense", []byte("nonsense"))
	r.ok(err)
	want := r.day()
	_, err = r.bt.Logs.Append(t.Context(), subject.Log("t", "ann"), []byte("nonsense"), 0)
	r.ok(err)
	_, err = r.bt.Messages.Publish(t.Context(), subject.Inbox("t", "ann", "bob"), "x", []byte("nonsense"))
	r.ok(err)
	_, err = r.bt.Bucket.Put(t.Context(), subject.KeyTask("T-009"), []byte("nonsense"), 0)
	r.ok(err)

	all := r.past(Options{})
	differs(t, "the feed", tell(all), want)
	var last time.Time
	for _, e := range all {
		if e.Time.Before(last) || e.Event.Event.Timestamp != e.Time.UnixMilli() || e.TeamID != "t" {
			t.Errorf("%s: %v after %v, stamped %d, of %q", told(e), e.Time, last, e.Event.Event.Timestamp, e.TeamID)
		}
		if role := e.RoleName; e.AgentID == "coder-1" && role != "coder" || e.AgentID == "user" && role != "" {
			t.Errorf("%s: the role is %q", told(e), role)
		}
		last = e.Time
	}
}

// Events name the record that they are from; the sender of mail is the one whom the
// connection vouches for.
func TestFields(t *testing.T) {
	r := newRig(t)
	said := r.says("coder-1", "text", "bash")
	_, err := r.bt.Messages.Publish(t.Context(), subject.Inbox("t", "ann", "bob"), "x",
		[]byte(`{"v":2,"id":"m1","type":"message","from":"leader","to":"ann","content":"I am the leader"}`))
	r.ok(err)
	all := r.past(Options{})
	if len(all) != 3 {
		t.Fatalf("the feed is %q", tell(all))
	}
	text, call, sent := all[0].Event.Event, all[1].Event.Event, all[2]
	if text.MessageID != said.ID || call.MessageID != said.ID || text.RunID != "run-of-coder-1" || all[0].RunID != "run-of-coder-1" || text.Role != "assistant" {
		t.Errorf("a turn with id %s is told as\n%+v\n%+v", said.ID, text, call)
	}
	if call.ToolCallID != "call-0" || call.ToolCallName != "bash" || call.Delta != "{}" {
		t.Errorf("the call is %+v", call)
	}
	var m team.Message
	if err := json.Unmarshal(sent.Event.Event.Value, &m); err != nil || sent.AgentID != "bob" || m.From != "bob" || m.Content != "I am the leader" || sent.Event.Event.MessageID != "m1" {
		t.Errorf("the mail is %+v of %s, %v", m, sent.AgentID, err)
	}
}

// A reader that goes on at any cursor, in the middle of a turn too, has just the rest.
func TestResumeAnywhere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.day()
	whole := r.past(Options{})
	if again := r.past(Options{}); !reflect.DeepEqual(again, whole) {
		t.Errorf("two readings differ:\n%+v\n%+v", whole, again)
	}
	conn := brokertest.Connect(t, r.bt.Conn.Server()) // as another process has one
	other, err := conn.Open(t.Context(), "t")
	r.ok(err)
	for i, e := range whole {
		for _, follow := range []bool{false, true} {
			var rest []Entry
			want := whole[i+1:]
			enough := errors.New("enough")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err := Read(ctx, other, Options{After: e.Cursor, Follow: follow}, func(e Entry) error {
				if rest = append(rest, e); follow && len(rest) == len(want) {
					return enough
				}
				return nil
			})
			cancel()
			if follow && len(want) > 0 && errors.Is(err, enough) {
				err = nil
			}
			if err != nil || !slices.EqualFunc(rest, want, func(a, b Entry) bool { return reflect.DeepEqual(a, b) }) {
				t.Errorf("after entry %d (%s) come %v\n%q\nwant\n%q", i, told(e), err, tell(rest), tell(want))
			}
			if len(want) == 0 {
				break // following would wait
			}
		}
	}
}

// A reader that begins where its last read has ended, be it in the middle of a message, has the same as one
// that reads on, and looks up nothing that it has read.
func TestPieces(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.day()
	r.member("coder-1", team.Joined, "")
	r.ran("coder-1", "r9", team.RunStarted)
	r.member("coder-1", team.Stopped, "") // which ends its run, too
	whole := r.past(Options{})
	enough := errors.New("enough")
	for _, begun := range []int{0, 3} {
		for size := 1; size < len(whole); size++ {
			memory := new(Memory)
			pieces := slices.Clone(whole[:begun])
			var after Cursor
			if begun > 0 {
				after = whole[begun-1].Cursor
			}
			for err := enough; err != nil; {
				n := 0
				var at Place
				at, err = Walk(t.Context(), r.bt, Options{After: after, Memory: memory}, func(s Step) error {
					pieces = append(pieces, s.Entry)
					if n++; n == size {
						return enough
					}
					return nil
				})
				if after = at.Cursor("t"); err != nil && !errors.Is(err, enough) {
					t.Fatal(err)
				}
			}
			if !reflect.DeepEqual(pieces, whole) {
				t.Fatalf("from %d on in pieces of %d come\n%q\nwant\n%q", begun, size, tell(pieces), tell(whole))
			}
			if n := memory.view.looked; begun == 0 && n > 0 || n > 4 {
				t.Errorf("from %d on in pieces of %d it has looked up %d keys", begun, size, n)
			}
		}
	}
}

// What a reader has learnt is kept where its function has ended the reading, and given up where
// anything else has: that may have come in the middle of learning.
func TestMemoryAfterErrors(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.day()
	for name, tt := range map[string]struct {
		cancel bool
		err    error
		kept   bool
	}{
		"read to the end":       {kept: true},
		"ended by its function": {err: errors.New("enough"), kept: true},
		"cancelled":             {cancel: true},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		memory := &Memory{}
		at, _ := Walk(ctx, r.bt, Options{Memory: memory, Follow: tt.cancel}, func(Step) error {
			if tt.cancel {
				cancel()
			}
			return tt.err
		})
		cancel()
		if kept := memory.view != nil; kept != tt.kept || kept && memory.at != at {
			t.Errorf("%s: it is kept: %v, at %v, and the reader is at %v", name, kept, memory.at, at)
		}
	}
}

// A reader that begins in the middle looks up a few keys one by one, and then all the others together,
// however often those were changed before.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	coder := team.Holder{Agent: "coder-1", Incarnation: 1}
	for range 500 {
		r.member("coder-1", team.Joined, "")
	}
	_, err := r.board.Create(t.Context(), "user", slices.Repeat([]team.NewTask{{Title: "one of many"}}, 100)...)
	r.ok(err)
	begin, err := End(t.Context(), r.bt)
	r.ok(err)
	for i := range 100 {
		_, err := r.board.Claim(t.Context(), team.TaskID(fmt.Sprintf("T-%03d", i+1)), coder)
		r.ok(err)
	}
	all := r.past(Options{})
	memory := new(Memory)
	if rest := r.past(Options{After: begin, Memory: memory}); !reflect.DeepEqual(rest, all[len(all)-100:]) {
		t.Errorf("the rest is\n%q\nwant\n%q", tell(rest), tell(all[len(all)-100:]))
	}
	if n := memory.view.looked; n > 5 { // a bucket keeps 64 values of a key
		t.Errorf("it has looked up %d times what stood before", n)
	}
}

// What happens between the past and the following is told once, and so is what happens
// later; two followers are told the same.
func TestFollow(t *testing.T) {
	r := newRig(t)
	want := r.day()
	a, b := r.follow(Options{}, streamsOf(r.bt)), r.follow(Options{}, streamsOf(r.bt))
	first := a.take(1)
	r.says("ann", "in between", "bash")
	want = append(want, "ann TEXT_MESSAGE_CHUNK in between", "ann TOOL_CALL_CHUNK bash")
	got := append(first, a.take(len(want)-1)...)
	for i := range 50 {
		switch i % 3 {
		case 0:
			r.says("ann", "later")
			want = append(want, "ann TEXT_MESSAGE_CHUNK later")
		case 1:
			r.mails("ann", team.Leader, "later")
			want = append(want, "ann MAIL_SENT later")
		case 2:
			r.runs("ann", team.RunStarted)
			want = append(want, "ann RUN_STARTED")
		}
	}
	got = append(got, a.take(len(want)-len(got))...)
	differs(t, "what was followed", tell(got), want)
	if other := b.take(len(got)); !reflect.DeepEqual(got, other) {
		t.Errorf("another follower was told\n%q\nwant\n%q", tell(other), tell(got))
	}
	a.end()
	b.end()
}

// What is quiet is confirmed by the server, so an entry comes long before patience is
// over; and nobody asks while nothing happens.
func TestFollowIsPrompt(t *testing.T) {
	r := newRig(t)
	f := r.follow(Options{}, streamsOf(r.bt))
	r.says("ann", "first")
	f.take(1)
	var quickest time.Duration = time.Hour
	for range 20 {
		begun := time.Now()
		r.says("ann", "text")
		f.take(1)
		quickest = min(quickest, time.Since(begun))
	}
	if quickest > patience/4 {
		t.Errorf("an entry takes %v at least", quickest)
	}
}

// A follower survives the end of the server, and its restart, without a gap or a
// repetition.
func TestFollowThroughRestart(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), brokertest.Port()
	srv, err := embedded.Start(embedded.Options{Dir: dir, Port: port})
	if err != nil {
		t.Fatal(err)
	}
	url := srv.URL()
	bt, err := brokertest.Connect(t, url).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	r := rigOn(t, bt)
	want := r.day()
	f := r.follow(Options{}, streamsOf(bt))
	got := f.take(len(want))
	srv.Shutdown()
	if srv, err = embedded.Start(embedded.Options{Dir: dir, Port: port}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Shutdown() })
	r.says("ann", "one")
	r.mails("ann", team.Leader, "two")
	r.runs("ann", team.RunStarted)
	r.member("ann", team.Joined, "")
	differs(t, "the past", tell(got), want)
	since := tell(f.take(4))
	slices.Sort(since) // one of the streams may take longer than patience to come back
	differs(t, "what was followed since", since, []string{"ann MAIL_SENT two", "ann MEMBER_JOINED", "ann RUN_STARTED", "ann TEXT_MESSAGE_CHUNK one"})
	f.end()
	want = append(want, "ann TEXT_MESSAGE_CHUNK one", "ann MAIL_SENT two", "ann RUN_STARTED", "ann MEMBER_JOINED")
	differs(t, "the past afterwards", tell(r.past(Options{})), want)
}

// What a filter leaves out has been read all the same.
func TestFilters(t *testing.T) {
	r := newRig(t)
	r.day()
	o := Options{Agents: []team.AgentID{"user", "ann"}, Types: []team.EventType{team.TaskCreated, team.MailSent}}
	all := r.past(o)
	differs(t, "the filtered feed", tell(all), []string{"user TASK_CREATED", "user TASK_CREATED", "user MAIL_SENT hello"})
	o.After = all[2].Cursor
	if rest := r.past(o); len(rest) > 0 {
		t.Errorf("then comes %q", tell(rest))
	}
	o.Agents = nil
	differs(t, "the mail of all", tell(r.past(o)), []string{"coder-1 MAIL_SENT it is done"})
}

// The reader's error ends the feed, and so does its time; half of the past does not
// pass for the whole.
func TestEnds(t *testing.T) {
	r := newRig(t)
	r.day()
	enough := errors.New("enough")
	for _, follow := range []bool{false, true} {
		n := 0
		err := Read(t.Context(), r.bt, Options{Follow: follow}, func(Entry) error {
			if n++; n == 3 {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || n != 3 {
			t.Errorf("follow %v: after %d entries %v, want the reader's error after 3", follow, n, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = Read(ctx, r.bt, Options{Follow: follow}, func(Entry) error { cancel(); return nil })
		if follow && err != nil || !follow && !errors.Is(err, team.Unavailable) {
			t.Errorf("follow %v: out of time it is %v", follow, err)
		}
	}
	end, err := End(t.Context(), r.bt)
	r.ok(err)
	if rest := r.past(Options{After: end}); len(rest) > 0 {
		t.Errorf("behind the end comes %q", tell(rest))
	}
}

// stream is the JetStream stream of a kind.
func (r *rig) stream(name string) jetstream.Stream {
	r.t.Helper()
	js, err := jetstream.New(r.bt.Conn.NATS())
	r.ok(err)
	s, err := js.Stream(r.t.Context(), name)
	r.ok(err)
	return s
}

// A reader behind what the event log still has is told so, once, and goes on with the
// oldest; one that begins at the beginning has missed nothing.
func TestForgotten(t *testing.T) {
	r := newRig(t)
	name, _ := subject.Events("t")
	for range 10 {
		r.runs("ann", team.RunStarted)
	}
	all := r.past(Options{})
	r.ok(r.stream(name).Purge(t.Context(), jetstream.WithPurgeSequence(8)))
	if left := r.past(Options{}); len(left) != 3 {
		t.Errorf("a new reader has %q", tell(left))
	}
	for _, o := range []Options{{}, {Agents: []team.AgentID{"ann"}}, {Types: []team.EventType{team.RunStarted}}} {
		o.After = all[1].Cursor
		rest := r.past(o)
		if len(rest) != 4 || told(rest[0]) != " CUSTOM reset" || string(rest[0].Event.Event.Value) != `{"missing":[{"source":"events","why":"forgotten","from":3,"to":7}]}` {
			t.Fatalf("behind the second comes %q", tell(rest))
		}
		if !reflect.DeepEqual(rest[1:], all[7:]) {
			t.Errorf("after the reset comes %q", tell(rest[1:]))
		}
		o.After = rest[0].Cursor
		if again := r.past(o); !reflect.DeepEqual(again, all[7:]) {
			t.Errorf("behind the reset comes %q", tell(again))
		}
	}
	r.ok(r.stream(name).Purge(t.Context())) // and nothing is left
	if rest := r.past(Options{After: all[8].Cursor}); len(rest) != 1 || told(rest[0]) != " CUSTOM reset" {
		t.Errorf("of an empty log comes %q", tell(rest))
	}
}

// What is forgotten while a reader is slow is told when it comes there.
func TestForgottenMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	name, _ := subject.Events("t")
	const all = 2000 // more than is on its way to a reader at once
	for range all {
		r.runs("ann", team.RunStarted)
	}
	var got []Entry
	err := Read(t.Context(), r.bt, Options{}, func(e Entry) error {
		if got = append(got, e); len(got) == 1 {
			return r.stream(name).Purge(t.Context(), jetstream.WithPurgeSequence(all-1))
		}
		return nil
	})
	r.ok(err)
	n := len(got)
	if n < 4 || told(got[n-3]) != " CUSTOM reset" {
		t.Fatalf("%d entries, the last %q", n, tell(got[max(0, n-4):]))
	}
	var reset Reset
	r.ok(json.Unmarshal(got[n-3].Event.Event.Value, &reset))
	if m := reset.Missing[0]; m.From != uint64(n-2) || m.To != all-2 {
		t.Errorf("after %d entries the reset says %+v", n-3, m)
	}
}

// A stream that was made anew begins anew, and the reader is told so.
func TestMadeAnew(t *testing.T) {
	r := newRig(t)
	r.runs("ann", team.RunStarted)
	r.says("ann", "kept")
	all := r.past(Options{})
	name, subjects := subject.Events("t")
	cfg := r.stream(name).CachedInfo().Config
	js, err := jetstream.New(r.bt.Conn.NATS())
	r.ok(err)
	r.ok(js.DeleteStream(t.Context(), name))
	cfg.Subjects = subjects
	_, err = js.CreateStream(t.Context(), cfg)
	r.ok(err)
	r.runs("bob", team.RunStarted)
	r.runs("bob", team.RunFinished)
	rest := r.past(Options{After: all[len(all)-1].Cursor})
	differs(t, "the rest", tell(rest), []string{" CUSTOM reset", "bob RUN_STARTED", "bob RUN_FINISHED"})
	if got := string(rest[0].Event.Event.Value); got != `{"missing":[{"source":"events","why":"made_anew"}]}` {
		t.Errorf("the reset says %s", got)
	}
}

// What stood at the end of a stream and was taken away is not waited for.
func TestEndTakenAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	name, _ := subject.Messages("t")
	r.mails("ann", team.Leader, "one")
	r.mails("ann", team.Leader, "two")
	r.says("ann", "three")
	r.ok(r.stream(name).DeleteMsg(t.Context(), 2))
	want := []string{"ann MAIL_SENT one", "ann TEXT_MESSAGE_CHUNK three"}
	differs(t, "the past", tell(r.past(Options{})), want)
	f := r.follow(Options{}, streamsOf(r.bt))
	differs(t, "what was followed", tell(f.take(2)), want)
	r.mails("ann", team.Leader, "four")
	f.take(1)
	f.end()
}

// Since finds the place of a time, between any two entries.
func TestSince(t *testing.T) {
	r := newRig(t)
	r.day()
	all := r.past(Options{})
	for i, e := range all {
		if i > 0 && e.Time.Equal(all[i-1].Time) {
			continue
		}
		after, err := Since(t.Context(), r.bt, e.Time)
		r.ok(err)
		rest := r.past(Options{After: after})
		if len(rest) != len(all)-i || rest[0].Event.Event.Type != e.Event.Event.Type {
			t.Errorf("from %v on %d of %d entries are told, want %d", e.Time, len(rest), len(all), len(all)-i)
		}
	}
	after, err := Since(t.Context(), r.bt, time.Now().Add(time.Hour))
	r.ok(err)
	if rest := r.past(Options{After: after}); len(rest) > 0 {
		t.Errorf("%d entries are told of the time to come", len(rest))
	}
}

// What is recent is bounded by time and by number.
func TestRecent(t *testing.T) {
	r := newRig(t)
	for range 10 {
		r.runs("ann", team.RunStarted)
		r.says("ann", "text")
	}
	for _, tt := range []struct {
		since time.Time
		most  uint64
		want  int
	}{{time.Time{}, 3, 6}, {time.Time{}, 100, 20}, {time.Now().Add(time.Hour), 3, 0}} {
		from, end, err := Recent(t.Context(), r.bt, tt.since, tt.most)
		r.ok(err)
		if got := r.past(Options{After: from.Cursor("t")}); len(got) != tt.want || !end.Covers(from) {
			t.Errorf("of the last %d since %v come %d, want %d", tt.most, tt.since, len(got), tt.want)
		}
		if got := r.past(Options{After: end.Cursor("t")}); len(got) > 0 {
			t.Errorf("behind the end comes %q", tell(got))
		}
	}
}

// A conversation tells what its agent was told, said and did, in order, and nothing of others.
func TestConversation(t *testing.T) {
	r := newRig(t)
	r.member("coder-1", team.Joined, "")
	r.member("coder-2", team.Joined, "")
	r.record("coder-1", journal.Record{Kind: journal.Mail, InboxSeq: 1, Message: &team.Message{V: team.Protocol, ID: "1", Type: team.MsgUser, From: team.UserAgent, To: "coder-1", Content: "hello"}})
	r.record("coder-1", journal.Record{Kind: journal.Task, Task: &team.Task{ID: "T-001"}})
	r.says("coder-2", "not of it")
	r.record("coder-1", journal.Record{Kind: journal.Note, Text: "go on"})
	thought, err := json.Marshal(model.Reply{Message: model.Message{Role: "assistant", Content: "I do", Extra: map[string]json.RawMessage{"reasoning_content": json.RawMessage(`"Shall I?"`)}}})
	r.ok(err)
	r.record("coder-1", journal.Record{Kind: journal.Turn, Turn: thought})
	var got []string
	r.ok(Conversation(t.Context(), r.bt, "coder-1", false, func(e Entry) error {
		b := e.Event.Event
		got = append(got, string(e.AgentID)+" "+string(b.Type)+" "+b.Name+b.Message+b.Delta)
		return nil
	}))
	want := []string{"user MAIL_SENT ", "coder-1 CUSTOM task", "coder-1 CUSTOM notego on", "coder-1 CUSTOM thinkingShall I?", "coder-1 TEXT_MESSAGE_CHUNK I do"}
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// A stream that was restored from an older copy uses sequences a second time. Who follows meanwhile misses nothing and reads nothing
// twice; a cursor of what is lost is reset, also when the stream has passed its sequence.
func TestRestoredStream(t *testing.T) {
	for name, more := range map[string]int{"below the old end": 1, "at the old end": 2, "above the old end": 4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := brokertest.NewRestorable(t)
			bt, err := brokertest.Connect(t, srv.URL()).Make(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			r := rigOn(t, bt)
			stream, _ := subject.Messages("t")
			r.mails(team.UserAgent, team.Leader, "kept")
			srv.Keep(stream)
			r.mails(team.UserAgent, team.Leader, "lost 1")
			r.mails(team.UserAgent, team.Leader, "lost 2")
			f := r.follow(Options{}, streamsOf(bt))
			read := f.take(3)
			srv.Restore(stream, nil)
			var want []string
			for n := range more {
				text := fmt.Sprint("new ", n+1)
				r.mails(team.UserAgent, team.Leader, text)
				want = append(want, "user MAIL_SENT "+text)
			}
			differs(t, "the follower", tell(f.take(more)), want)
			f.end()
			after := r.past(Options{After: read[2].Cursor})
			if len(after) != more+2 || !IsReset(after[0].Event) {
				t.Errorf("behind what is lost there is %q", tell(after))
			}
			if after := r.past(Options{After: read[0].Cursor}); len(after) != more || IsReset(after[0].Event) {
				t.Errorf("behind what was kept there is %q", tell(after))
			}
		})
	}
}
