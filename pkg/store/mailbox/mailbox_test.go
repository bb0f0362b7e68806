package mailbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/store/broker/embedded"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
	"agentteam/pkg/telemetry/telemetrytest"
)

// members is a team's roster.
type members []team.Member

func (m members) List(context.Context) ([]team.Member, error) { return m, nil }

func (m members) Get(_ context.Context, a team.AgentID) (team.Member, error) {
	i := slices.IndexFunc(m, func(o team.Member) bool { return o.AgentID == a })
	if i < 0 {
		return team.Member{}, team.Errorf(team.NotFound, "no %s", a)
	}
	return m[i], nil
}

var crew = members{
	{AgentID: team.Leader, State: team.Joined},
	{AgentID: "coder-1", State: team.Joined},
	{AgentID: "tester-1", State: team.Created},
	{AgentID: "coder-0", State: team.Stopped},
}

func open(t *testing.T) (*mailbox.Mailbox, *broker.Storage) {
	t.Helper()
	bt := brokertest.Team(t, "t")
	return mailbox.New(bt, mailbox.Options{Members: crew}), bt
}

func send(t *testing.T, b *mailbox.Mailbox, from, to team.AgentID, text string) team.Message {
	t.Helper()
	typ := team.MsgMessage
	if to == team.Everyone {
		typ = team.MsgBroadcast
	}
	m, _, err := b.Send(t.Context(), team.Message{Type: typ, From: from, To: to, Content: text})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// inbox is one incarnation that receives.
type inbox struct {
	t     *testing.T
	taken mailbox.Mark // the newest message that was taken
	mail  chan mailbox.Delivery
	done  chan error
	stop  func()
}

func receive(t *testing.T, b *mailbox.Mailbox, a team.AgentID, incarnation, from uint64) *inbox {
	t.Helper()
	return receiveBehind(t, b, a, incarnation, mailbox.Mark{Seq: from - 1})
}

func receiveBehind(t *testing.T, b *mailbox.Mailbox, a team.AgentID, incarnation uint64, after mailbox.Mark) *inbox {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	in := &inbox{t: t, mail: make(chan mailbox.Delivery, 1000), done: make(chan error, 1), stop: stop}
	if !after.At.IsZero() {
		in.taken = after
	}
	go func() {
		in.done <- b.Receive(ctx, a, incarnation, after, func(d mailbox.Delivery) error { in.mail <- d; return nil })
	}()
	return in
}

// next waits for the next message, sees that it is this one, and has it recorded.
func (in *inbox) next(text string) mailbox.Delivery {
	in.t.Helper()
	d := in.take(text)
	d.Ack()
	return d
}

// take is next by a receiver that has not recorded the message yet.
func (in *inbox) take(text string) mailbox.Delivery {
	in.t.Helper()
	for {
		select {
		case d := <-in.mail:
			if in.taken.Covers(d.Seq, d.At) {
				continue // what is not recorded comes again
			}
			if d.Content != text {
				in.t.Fatalf("received %q from %s, want %q", d.Content, d.From, text)
			}
			in.taken = mailbox.Mark{Seq: d.Seq, At: d.At}
			return d
		case err := <-in.done:
			in.t.Fatalf("waiting for %q: Receive = %v", text, err)
		case <-time.After(brokertest.Longest):
			in.t.Fatalf("%q does not come", text)
		}
	}
}

// end stops receiving and sees that nothing else had come.
func (in *inbox) end() {
	in.t.Helper()
	in.stop()
	in.ended(nil)
}

// ended waits for Receive to end in this way and sees that nothing else had come.
func (in *inbox) ended(want error) {
	in.t.Helper()
	if err := brokertest.Receive(in.t, "Receive ends", in.done); !errors.Is(err, want) {
		in.t.Errorf("Receive = %v, want %v", err, want)
	}
	for len(in.mail) > 0 {
		if d := <-in.mail; d.Seq > in.taken.Seq {
			in.t.Errorf("received %q too", d.Content)
		}
	}
}

func TestPointToPoint(t *testing.T) {
	b, _ := open(t)
	long := strings.Repeat("字", team.MaxTextBytes/3)
	send(t, b, team.Leader, "tester-1", "not for coder-1")
	sent := send(t, b, team.Leader, "coder-1", "你好 🚀\nsecond line")
	send(t, b, "coder-1", team.Leader, "its own answer")
	send(t, b, team.UserAgent, "coder-1", long)

	in := receive(t, b, "coder-1", 1, 1)
	got := in.next("你好 🚀\nsecond line")
	if got.From != team.Leader || got.ID != sent.ID || got.Summary != "你好 🚀" || got.Seq == 0 || got.CreatedAt.IsZero() {
		t.Errorf("received %+v", got)
	}
	if d := in.next(long); d.From != team.UserAgent || d.Seq <= got.Seq {
		t.Errorf("received from %s with sequence %d after %d", d.From, d.Seq, got.Seq)
	}
	in.end()
}

func TestBroadcast(t *testing.T) {
	b, _ := open(t)
	_, to, err := b.Send(t.Context(), team.Message{Type: team.MsgBroadcast, From: "coder-1", To: team.Everyone, Content: "to all"})
	if want := []team.AgentID{team.Leader, "tester-1"}; err != nil || !slices.Equal(to, want) {
		t.Errorf("delivered to %v, %v, want %v", to, err, want)
	}
	send(t, b, team.Leader, "coder-1", "after it")
	for _, a := range []team.AgentID{team.Leader, "tester-1"} {
		in := receive(t, b, a, 1, 1)
		if d := in.next("to all"); d.To != team.Everyone || d.From != "coder-1" {
			t.Errorf("%s received %+v", a, d)
		}
		in.end()
	}
	own := receive(t, b, "coder-1", 1, 1)
	own.next("after it")
	own.end()
}

func TestSendRefused(t *testing.T) {
	b, bt := open(t)
	for name, tt := range map[string]struct {
		m    team.Message
		want team.Code
		hint string
	}{
		"unknown":  {team.Message{Type: team.MsgMessage, From: team.Leader, To: "nobody", Content: "x"}, team.NotFound, "coder-1, tester-1"},
		"oneself":  {team.Message{Type: team.MsgMessage, From: "coder-1", To: "coder-1", Content: "x"}, team.InvalidArgument, "leader, tester-1"},
		"empty":    {team.Message{Type: team.MsgMessage, From: team.Leader, To: "coder-1", Content: "\n "}, team.InvalidArgument, ""},
		"too long": {team.Message{Type: team.MsgMessage, From: team.Leader, To: "coder-1", Content: strings.Repeat("x", team.MaxMessageBytes+1)}, team.InvalidArgument, ""},
	} {
		_, _, err := b.Send(t.Context(), tt.m)
		if team.CodeOf(err) != tt.want || !strings.Contains(team.HintOf(err), tt.hint) {
			t.Errorf("%s: %v (%s), hint %q, want %s and %q", name, err, team.CodeOf(err), team.HintOf(err), tt.want, tt.hint)
		}
	}
	if last, err := bt.Messages.LastSeq(t.Context()); last != 0 || err != nil {
		t.Errorf("%d messages were stored, %v", last, err)
	}
}

// A person is written to under a name that no member has. Who has left is written to as well.
func TestPeople(t *testing.T) {
	b, _ := open(t)
	for _, m := range []team.Message{
		{Type: team.MsgMessage, From: "coder-1", To: team.UserAgent, Content: "x"},
		{Type: team.MsgUser, From: team.UserAgent, To: "coder-0", Content: "x"},
		{Type: team.MsgMessage, From: "coder-1", To: "coder-0", Content: "x"},
	} {
		if _, got, err := b.Send(t.Context(), m); err != nil || !slices.Equal(got, []team.AgentID{m.To}) {
			t.Errorf("%s to %s: delivered to %v, %v", m.From, m.To, got, err)
		}
	}
}

// A text that is too long for a message is stored, and the message says where.
func TestLongText(t *testing.T) {
	b, bt := open(t)
	long := strings.Repeat("a line of words\n", team.MaxTextBytes/16) + "the end"
	sent := send(t, b, team.Leader, "coder-1", long)
	in := receive(t, b, "coder-1", 1, 1)
	got := in.next(sent.Content)
	in.end()
	whole, err := blob.In(bt.Files).Get(t.Context(), got.Stored)
	if err != nil || whole != long || len(got.Content) > 8<<10 || !strings.HasSuffix(got.Content, "the end") || !strings.Contains(got.Content, got.Stored) {
		t.Errorf("received %d bytes, stored at %q (%v), which has %d of %d", len(got.Content), got.Stored, err, len(whole), len(long))
	}
}

// Its leader has an inbox also while no process leads the team.
func TestLeaderIsAlwaysThere(t *testing.T) {
	bt := brokertest.Team(t, "t")
	b := mailbox.New(bt, mailbox.Options{Members: members{{AgentID: "coder-1", State: team.Joined}}})
	for _, to := range []team.AgentID{team.Leader, team.Everyone} {
		if _, got, err := b.Send(t.Context(), team.Message{Type: team.MsgMessage, From: "coder-1", To: to, Content: "x"}); err != nil || !slices.Equal(got, []team.AgentID{team.Leader}) {
			t.Errorf("to %s: delivered to %v, %v", to, got, err)
		}
	}
}

func TestOrder(t *testing.T) {
	b, _ := open(t)
	in := receive(t, b, "coder-1", 1, 1)
	for i := range 100 {
		to := team.AgentID("coder-1")
		if i%3 == 0 {
			to = team.Everyone
		}
		send(t, b, team.Leader, to, fmt.Sprint(i))
	}
	for i, last := 0, uint64(0); i < 100; i++ {
		d := in.next(fmt.Sprint(i))
		if d.Seq <= last {
			t.Errorf("message %d has sequence %d after %d", i, d.Seq, last)
		}
		last = d.Seq
		d.Ack()
	}
	in.end()
}

// The sender is the one of the subject, whatever the payload claims.
func TestSenderOfSubject(t *testing.T) {
	b, bt := open(t)
	data, err := json.Marshal(team.Message{V: team.Protocol, ID: "x", Type: team.MsgMessage, From: team.Leader, To: "coder-1", Content: "forged"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bt.Messages.Publish(t.Context(), subject.Inbox("t", "coder-1", "tester-1"), "x", data); err != nil {
		t.Fatal(err)
	}
	in := receive(t, b, "coder-1", 1, 1)
	if d := in.next("forged"); d.From != "tester-1" {
		t.Errorf("the message counts as from %s", d.From)
	}
	in.end()
}

// What an incarnation did not get to record comes again to the next one, which
// shuts the earlier one out.
func TestNextIncarnation(t *testing.T) {
	b, _ := open(t)
	send(t, b, team.Leader, "coder-1", "one")
	send(t, b, team.Leader, "coder-1", "two")
	first := receive(t, b, "coder-1", 1, 1)
	one := first.next("one")
	first.take("two")

	next := receive(t, b, "coder-1", 2, one.Seq+1)
	next.next("two")
	send(t, b, team.Leader, "coder-1", "three")
	next.next("three")
	next.end()
	first.ended(team.ErrSuperseded)
}

// An incarnation that never received does not hide those before it.
func TestIncarnationWithoutMail(t *testing.T) {
	b, _ := open(t)
	first := receive(t, b, "coder-1", 1, 1)
	send(t, b, team.Leader, "coder-1", "one")
	first.take("one")
	third := receive(t, b, "coder-1", 3, 1)
	third.next("one")
	first.ended(team.ErrSuperseded)
	third.end()
}

// Only the predecessors of this very member: another's name may begin with its own.
func TestNeighboursStay(t *testing.T) {
	b, _ := open(t)
	a := receive(t, b, "coder", 1, 1)   // consumer coder-1
	c := receive(t, b, "coder-1", 1, 1) // consumer coder-1-1
	send(t, b, team.Leader, team.Everyone, "hello")
	a.next("hello")
	c.next("hello")
	next := receive(t, b, "coder-1", 3, 1)
	next.next("hello")
	c.ended(team.ErrSuperseded)
	send(t, b, team.Leader, team.Everyone, "still there?")
	a.next("still there?")
	a.end()
}

// What the server wrote to a connection that dies is delivered again before what was
// sent later, and soon.
func TestLostConnection(t *testing.T) {
	t.Parallel()
	url := brokertest.Server(t)
	bt, err := brokertest.Connect(t, url).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	b := mailbox.New(bt, mailbox.Options{Members: crew})
	p := brokertest.NewProxy(t, url)
	far, err := brokertest.Connect(t, p.URL).Open(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	in := receive(t, mailbox.New(far, mailbox.Options{Members: crew}), "coder-1", 1, 1)
	send(t, b, team.Leader, "coder-1", "one")
	in.next("one")
	said := p.Swallow("two")
	send(t, b, team.Leader, "coder-1", "two")
	brokertest.Receive(t, "the server has sent it", said)
	p.Close()
	p.Open()
	begun := time.Now()
	send(t, b, team.Leader, "coder-1", "three")
	in.next("two")
	if took := time.Since(begun); took > 20*time.Second { // 3 s on a machine that has time
		t.Errorf("it took %v", took)
	}
	in.next("three")
	in.end()
}

func TestUnreadable(t *testing.T) {
	b, bt := open(t)
	for i, data := range []string{"nonsense", `{"v":9,"content":"of another version"}`, `{"v":2,"type":"launch_rocket","from":"leader","content":"of no type that is known"}`, `{"v":2,"content":"of none"}`} {
		if _, err := bt.Messages.Publish(t.Context(), subject.Inbox("t", "coder-1", "tester-1"), fmt.Sprint(i), []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	send(t, b, team.Leader, "coder-1", "readable")
	in := receive(t, b, "coder-1", 1, 1)
	in.next("readable")
	in.end()
	var dead []string
	if err := bt.Messages.Read(t.Context(), 1, func(m broker.Msg) error { dead = append(dead, string(m.Data)); return nil }, subject.Dead("t", "coder-1")); err != nil {
		t.Fatal(err)
	}
	if len(dead) != 4 || dead[0] != "nonsense" {
		t.Errorf("set aside: %q", dead)
	}
}

// What a message says of itself is not to make a label of its own.
func TestMetrics(t *testing.T) {
	bt := brokertest.Team(t, "t")
	reg := prometheus.NewRegistry()
	b := mailbox.New(bt, mailbox.Options{Members: crew, Metrics: reg})
	for i, data := range []string{`{"v":2,"type":"T-001"}`, `{"v":2,"type":"T-002"}`, "nonsense"} {
		if _, err := bt.Messages.Publish(t.Context(), subject.Inbox("t", "coder-1", "tester-1"), fmt.Sprint(i), []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	send(t, b, team.Leader, "coder-1", "the last")
	in := receive(t, b, "coder-1", 1, 1)
	in.next("the last")
	in.end()
	telemetrytest.Lint(t, reg)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"agentteam_messages_sent_total message": 1, "agentteam_messages_sent_total watchdog": 0,
		"agentteam_messages_received_total message": 1, "agentteam_messages_received_total dead": 3,
		"agentteam_messages_received_total user_message": 0,
	} {
		if n, ok := got[name]; n != want || !ok {
			t.Errorf("%s is %v, %v; want %v", name, n, ok, want)
		}
	}
	if len(got) != 2*len(team.MessageTypes())+1 {
		t.Errorf("series: %v", got)
	}
}

// Only mail that wakes its reader is unread, and only until it was recorded.
func TestUnread(t *testing.T) {
	b, _ := open(t)
	unread := func(want int) {
		t.Helper()
		if n, err := b.Unread(t.Context(), "coder-1", 1); n != want || err != nil {
			t.Errorf("%d unread, %v, want %d", n, err, want)
		}
	}
	if _, err := b.Unread(t.Context(), "coder-1", 1); team.CodeOf(err) != team.NotFound {
		t.Errorf("before it receives: %v, want not_found", err)
	}
	in := receive(t, b, "coder-1", 1, 1)
	send(t, b, team.Leader, "coder-1", "one")
	one := in.take("one")
	unread(1)
	if _, _, err := b.Send(t.Context(), team.Message{Type: team.MsgIdle, From: "tester-1", To: "coder-1"}); err != nil {
		t.Fatal(err)
	}
	send(t, b, "coder-1", team.Everyone, "its own") // comes to others only
	send(t, b, "tester-1", team.Leader, "for the leader")
	send(t, b, "tester-1", team.Everyone, "two")
	unread(2)
	one.Ack()
	in.next("")
	two := in.take("two")
	unread(1)
	two.Ack()
	in.end()
	if err := b.Close(t.Context(), "coder-1", 1); err != nil {
		t.Error(err)
	}
	if _, err := b.Unread(t.Context(), "coder-1", 1); team.CodeOf(err) != team.NotFound {
		t.Errorf("after it has left: %v, want not_found", err)
	}
}

// Mail that was sent after a member was made and before its process came is there
// when it comes; what is older is not for it.
func TestMailBeforeJoining(t *testing.T) {
	b, bt := open(t)
	send(t, b, team.Leader, team.Everyone, "before it was made")
	last, err := bt.Messages.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send(t, b, team.Leader, "tester-1", "welcome")
	send(t, b, team.Leader, team.Everyone, "all together")
	in := receive(t, b, "tester-1", 1, last+1)
	in.next("welcome")
	in.next("all together")
	in.end()
}

func TestRestartedServer(t *testing.T) {
	t.Parallel()
	dir, port := t.TempDir(), brokertest.Port()
	srv, err := embedded.Start(embedded.Options{Dir: dir, Port: port})
	if err != nil {
		t.Fatal(err)
	}
	bt, err := brokertest.Connect(t, srv.URL()).Make(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	b := mailbox.New(bt, mailbox.Options{Members: crew})
	in := receive(t, b, "coder-1", 1, 1)
	send(t, b, team.Leader, "coder-1", "before")
	in.next("before")
	srv.Shutdown()
	if srv, err = embedded.Start(embedded.Options{Dir: dir, Port: port}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Shutdown)
	send(t, b, team.Leader, "coder-1", "after")
	in.next("after")
	in.end()
}
