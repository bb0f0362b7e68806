package team

import "testing"

// model is a member of whose mail only the numbers count.
type model struct {
	name  AgentID
	talks Talks
}

// writes sends a message and returns whether it is held, and whether the person is notified.
func (a *model) writes(seq uint64, question bool, to ...*model) (held, first bool) {
	m := Message{Type: MsgMessage, From: a.name, To: to[0].name, AwaitReply: question}
	if len(to) > 1 {
		m.Type, m.To = MsgBroadcast, Everyone
	}
	e := a.talks.Next(m.To, seq)
	m.Exchange = &e
	a.talks = a.talks.Sent(Sent{To: m.To, Exchange: e, Question: question})
	for _, r := range to {
		var h, f bool
		r.talks, h, f = r.talks.Heard(m)
		held, first = held || h, first || f
	}
	return held, first
}

func TestTalks(t *testing.T) {
	for name, tt := range map[string]struct {
		play  func(a, b, c *model, n int) (held, first bool) // the n-th message
		from  int                                            // it is held from this message on; 0: never
		first int                                            // of how many messages the person is notified; more than 0 if any is held
	}{
		"two in turns": {func(a, b, _ *model, n int) (bool, bool) {
			if n%2 == 0 {
				return b.writes(0, false, a)
			}
			return a.writes(0, false, b)
		}, 7, 1},
		"one who gets no answer": {func(a, b, _ *model, _ int) (bool, bool) { return a.writes(5, false, b) }, 7, 1},
		"one who has called another tool": {func(a, b, _ *model, n int) (bool, bool) {
			if n%2 == 0 {
				return b.writes(0, false, a)
			}
			a.talks = a.talks.News()
			return a.writes(0, false, b)
		}, 0, 0},
		"the other has called one, and answers": {func(a, b, _ *model, n int) (bool, bool) {
			if n%4 == 0 { // before it hears the message that it answers
				return b.writes(0, false, a)
			}
			if n%4 == 3 {
				b.talks = b.talks.News()
			}
			return a.writes(0, false, b)
		}, 0, 0},
		"a task changes at each fifth": {func(a, b, _ *model, n int) (bool, bool) {
			if n%2 == 0 {
				return b.writes(uint64(n/5), false, a)
			}
			return a.writes(uint64(n/5), false, b)
		}, 0, 0},
		"a task has changed before the third": {func(a, b, _ *model, n int) (bool, bool) {
			seq := uint64(0)
			if n >= 3 {
				seq = 9
			}
			if n%2 == 0 {
				return b.writes(seq, false, a)
			}
			return a.writes(seq, false, b)
		}, 9, 1},
		"questions": {func(a, b, _ *model, n int) (bool, bool) {
			if n%2 == 0 {
				return b.writes(0, false, a)
			}
			return a.writes(0, true, b)
		}, 0, 0},
		"broadcasts that answer broadcasts": {func(a, b, c *model, n int) (bool, bool) {
			all := []*model{a, b, c}
			k := (n - 1) % 3
			return all[k].writes(0, false, all[(k+1)%3], all[(k+2)%3])
		}, 10, 1}, // each pair has written two of three
		"messages that answer broadcasts": {func(a, b, c *model, n int) (bool, bool) {
			if n%2 == 0 {
				return b.writes(0, false, a)
			}
			return a.writes(0, false, b, c)
		}, 7, 1},
		"three in a circle": {func(a, b, c *model, n int) (bool, bool) {
			all := []*model{a, b, c}
			return all[(n-1)%3].writes(0, false, all[n%3])
		}, 19, 3},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, c := &model{name: "a"}, &model{name: "b"}, &model{name: "c"}
			notified := 0
			for n := 1; n <= 60; n++ {
				held, first := tt.play(a, b, c, n)
				if want := tt.from > 0 && n >= tt.from; held != want {
					t.Errorf("message %d: held %v, want %v", n, held, want)
				}
				if first {
					notified++
				}
			}
			if notified != tt.first {
				t.Errorf("the person is notified %d times, want %d", notified, tt.first)
			}
		})
	}
}

// What people and the runtime write is news, but for the notice that all are idle.
func TestTalksWithPeople(t *testing.T) {
	for want, m := range map[int]Message{
		1: {Type: MsgUser, From: UserAgent, Content: "go on"},
		2: {Type: MsgWatchdog, From: Watchdog, Content: AllIdle + " nothing moves"},
	} {
		talks, _, _ := Talks{}.Heard(Message{Type: MsgMessage, From: "b", Exchange: &Exchange{N: 1}})
		talks = talks.Sent(Sent{To: "b", Exchange: talks.Next("b", 0)})
		talks, held, first := talks.Heard(m)
		if e := talks.Next("b", 0); held || first || (e.N == 1) != (want == 1) {
			t.Errorf("after %q the next message has %+v; it was held: %v", m.Content, e, held)
		}
	}
}
