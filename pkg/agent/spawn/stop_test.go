package spawn_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/agent/spawn"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// post is how a member hears that it shall stop.
type post func(team.Message) error

func (p post) Send(_ context.Context, m team.Message) (team.Message, []team.AgentID, error) {
	return m, []team.AgentID{m.To}, p(m)
}

func (p post) Close(context.Context, team.AgentID, uint64) error { return nil }

// The inbox of a member whose process died goes with the member.
func TestStopClosesInbox(t *testing.T) {
	s := newSite(t)
	m, err := s.roster.Create(t.Context(), coder, roster.Limit{Team: 10})
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(2) { // of two incarnations that both died
		if _, err := s.team.Messages.Consumer(t.Context(), subject.Consumer(m.AgentID, n+1), broker.Mark{}, subject.Mail("t", m.AgentID)...); err != nil {
			t.Fatal(err)
		}
	}
	m.State, m.Incarnation = team.Joined, 2
	if _, err := s.roster.Put(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	box := mailbox.New(s.team, mailbox.Options{Members: s.roster})
	if err := s.spawner().Force(t.Context(), box, m.AgentID); err != nil {
		t.Fatal(err)
	}
	if left, err := s.team.Messages.Consumers(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestStop(t *testing.T) {
	s := newSite(t)
	spawned := func() team.Member {
		s.standby(s.join)
		m, err := s.spawner().Spawn(t.Context(), coder, 10)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	asked := 0
	leaves := post(func(m team.Message) error {
		asked++
		if m.Type != team.MsgShutdownRequest || m.From != team.Leader || m.RequestID == "" || m.Content != "we are too many" {
			t.Errorf("asked with %+v", m)
		}
		return s.roster.Leave(t.Context(), m.To, 1, "")
	})
	deaf := post(func(team.Message) error { asked++; return nil })
	stop := func(p spawn.Mailer, a team.AgentID, wait time.Duration) (bool, error) {
		return s.spawner().Stop(t.Context(), p, spawn.Request{From: team.Leader, To: a, Reason: "we are too many"}, wait)
	}
	stopped := func(m team.Member, requests int) {
		t.Helper()
		if now, err := s.roster.Get(t.Context(), m.AgentID); err != nil || now.State != team.Stopped || asked != requests {
			t.Errorf("%s is %s after %d requests, %v; want stopped after %d", m.AgentID, now.State, asked, err, requests)
		}
	}

	polite := spawned()
	for range 2 { // the second time it is stopped already
		if forced, err := stop(leaves, polite.AgentID, time.Minute); err != nil || forced {
			t.Fatal(forced, err)
		}
	}
	stopped(polite, 1)

	atOnce := spawned()
	if forced, err := stop(deaf, atOnce.AgentID, 0); err != nil || !forced {
		t.Fatal(forced, err)
	}
	stopped(atOnce, 1)

	silent := spawned()
	if forced, err := stop(deaf, silent.AgentID, time.Millisecond); err != nil || !forced {
		t.Fatal(forced, err)
	}
	stopped(silent, 2)

	broken := spawned() // which would answer only after a repair
	broken.State = team.WaitingRepair
	if _, err := s.roster.Put(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	if forced, err := stop(deaf, broken.AgentID, time.Hour); err != nil || !forced {
		t.Fatal(forced, err)
	}
	stopped(broken, 2)

	if _, err := stop(deaf, "nobody", 0); team.CodeOf(err) != team.NotFound {
		t.Errorf("a stranger: %v, want not_found", err)
	}
}

// answers is a member that answers what it is asked, after what else it has to say.
func (s *site) answers(approve bool, reason string) post {
	box := mailbox.New(s.team, mailbox.Options{Members: s.roster})
	return func(m team.Message) error {
		for _, answer := range []team.Message{
			{Type: team.MsgMessage, Content: "one moment"},
			{Type: team.MsgShutdownResponse, RequestID: "another", Approve: new(bool), Content: "that was before"},
			{Type: team.MsgShutdownResponse, RequestID: m.RequestID, Approve: &approve, Content: reason},
		} {
			answer.From, answer.To = m.To, m.From
			if _, _, err := box.Send(s.t.Context(), answer); err != nil {
				return err
			}
		}
		return nil
	}
}

// A refusal ends the request at once: the member stays, and no force follows.
func TestRefused(t *testing.T) {
	for _, from := range []team.AgentID{team.UserAgent, team.Leader} {
		t.Run(string(from), func(t *testing.T) {
			s := newSite(t)
			s.standby(s.join)
			m, err := s.spawner().Spawn(t.Context(), coder, 10)
			if err != nil {
				t.Fatal(err)
			}
			forced, err := s.spawner().Stop(t.Context(), s.answers(false, "half of it is written"), spawn.Request{From: from, To: m.AgentID}, time.Minute)
			if forced || team.CodeOf(err) != team.Conflict || !strings.Contains(err.Error(), "half of it is written") || team.HintOf(err) == "" {
				t.Errorf("Stop = %t, %v", forced, err)
			}
			if now, err := s.roster.Get(t.Context(), m.AgentID); err != nil || now.State != team.Joined {
				t.Errorf("after its refusal it is %s, %v", now.State, err)
			}
		})
	}
}

// The process dies after it was asked: its successor's answer counts.
func TestSuccessorAnswers(t *testing.T) {
	s := newSite(t)
	s.standby(s.join)
	m, err := s.spawner().Spawn(t.Context(), coder, 10)
	if err != nil {
		t.Fatal(err)
	}
	died := make(chan team.Message, 1)
	go func() {
		request := <-died
		m, err := s.roster.Get(t.Context(), m.AgentID)
		if err == nil {
			m.Incarnation++
			_, err = s.roster.Put(t.Context(), m)
		}
		if err == nil {
			err = s.answers(false, "I am back")(request)
		}
		if err != nil {
			t.Error(err)
		}
	}()
	dies := post(func(m team.Message) error { died <- m; return nil })
	_, err = s.spawner().Stop(t.Context(), dies, spawn.Request{From: team.UserAgent, To: m.AgentID}, time.Minute)
	if team.CodeOf(err) != team.Conflict || !strings.Contains(err.Error(), "I am back") {
		t.Errorf("Stop = %v", err)
	}
}
