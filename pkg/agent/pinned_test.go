package agent

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/model"
	"agentteam/pkg/model/tokens"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
)

// agreement is mail of about 300 tokens.
func agreement(i int) string {
	return fmt.Sprintf("agreement %d. ", i) + strings.Repeat("as we said before, ", 60)
}

// newTask has the agent take its next task, and returns what the model is told then.
func newTask(r *rig, n int) string {
	r.next(team.Task{ID: team.TaskID(fmt.Sprintf("T-%03d", n)), Title: "Next", Status: team.Pending})
	before := len(r.asked)
	r.offer()
	return transcript(r.asked[before].Messages[1:])
}

// Mail that stands is told word for word up to a limit, that of people first; older mail by
// its first words, with the id by which read_mail shows it. No model is asked about that.
func TestOlderMailByFirstWords(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.decide = func([]*model.Message) string { return "well" }
		r.start()
		seq := uint64(0)
		mail := func(from team.AgentID, n int) {
			for range n {
				seq++
				r.post(seq, from, team.MsgMessage, agreement(int(seq)))
			}
		}
		mail(team.UserAgent, 1)
		mail(team.Leader, 5)
		if got := newTask(r, 1); !strings.Contains(got, "agreement 1.") || strings.Contains(got, "first words") {
			t.Errorf("with little mail:\n%s", got)
		}
		mail(team.Leader, 20)
		asked := len(r.asked)
		got := newTask(r, 2)
		if n := strings.Count(r.kinds(), "compact"); n > 0 || strings.Contains(transcript(r.asked[asked].Messages), "Sum it up") {
			t.Errorf("%d compactions", n)
		}
		for _, want := range []string{agreement(1), agreement(26), "- leader, id m2: agreement 2.", "read_mail"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in\n%s", want, got)
			}
		}
		if n := tokens.Estimate(got); n < maxFacts || n > maxFacts+2*maxBriefs {
			t.Errorf("%d tokens of it are told", n)
		}
		r.stop()
		r.opts.Member.Incarnation = 2
		r.start() // the journal tells all of it
		if again := newTask(r, 3); !strings.Contains(again, agreement(1)) || !strings.Contains(again, "- leader, id m2: agreement 2.") {
			t.Errorf("after a restart:\n%s", again)
		}
	})
}

// In a small window less of it is told.
func TestOlderMailInSmallWindow(t *testing.T) {
	c := fold(t, mailRecord(1, team.UserAgent, team.MsgUser, "never push"))
	for i := range 20 {
		if err := c.Add(mailRecord(uint64(i+2), team.Leader, team.MsgMessage, agreement(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Add(turnRecord("ok")); err != nil {
		t.Fatal(err)
	}
	got := transcript(c.fresh("T-001", 2000).Messages)
	if n := tokens.Estimate(got); n > 2000 || !strings.Contains(got, "|never push|") {
		t.Errorf("%d tokens:\n%s", n, got)
	}
}

// The goal takes no room from other mail that stands.
func TestLongGoalBesideOlderMail(t *testing.T) {
	mail := func(goal, words int) fact {
		return fact{From: team.UserAgent, Type: team.MsgUser, Goal: goal, Block: strings.Repeat(" word", words)}
	}
	c := newConversation("")
	c.Goal, c.Facts, c.Known = 2, []fact{mail(1, 1900), mail(1, 1900), mail(2, 5000)}, 3
	if told := c.standing(maxFacts); len(told) != 3 {
		t.Errorf("told word for word: %v", told)
	}
}

// The next goal's leader reads how the goals before ended, and not their orders. What the
// person has said besides stands.
func TestGoalsBefore(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.Member.AgentID, r.journal[0].Goal = team.Leader, 1
		r.says("!look", "the parser is there", "I see")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "write a parser for INI files")
		r.post(2, team.UserAgent, team.MsgUser, "never run git push")
		r.stop()
		at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
		r.journal = append(r.journal, journal.Record{Kind: journal.Start, Incarnation: 2, Goal: 2, PastGoals: []team.PastGoal{
			{Number: 1, Goal: "write a parser for INI files", Status: team.TeamFinished, EndedAt: &at, Summary: "ini.go has Parse; go vet is clean", Tasks: "T-001 to T-002: 2 completed"}}})
		r.opts.Member.Incarnation = 2
		r.says("well", "and so on")
		r.start()
		r.post(3, team.UserAgent, team.MsgUser, "Now add tests for that")
		want := []string{"Goals before this one. They have ended", "- Goal 1, finished on 2026-11-23 12:00: write a parser for INI files",
			"Summary: ini.go has Parse; go vet is clean", "Tasks: T-001 to T-002: 2 completed", "never run git push", "Now add tests for that"}
		told := func() string { return transcript(r.asked[len(r.asked)-1].Messages[1:]) }
		got := told()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%q is missing in\n%s", w, got)
			}
		}
		if strings.Count(got, "write a parser") != 1 || strings.Contains(got, "earlier") {
			t.Errorf("the old order stands as mail:\n%s", got)
		}
		r.stop()
		r.journal = append(r.journal, journal.Record{Kind: journal.Start, Incarnation: 3, Goal: 2})
		r.opts.Member.Incarnation = 3
		r.start()
		r.post(4, team.UserAgent, team.MsgUser, "go on")
		if again := told(); !strings.HasPrefix(again, got) {
			t.Errorf("after a restart it is told\n%s", again)
		}
	})
}

// Older goals than are kept are counted; a leader without a journal is told too.
func TestGoalsBeforeAreCounted(t *testing.T) {
	loop(t, func(t *testing.T, r *rig) {
		r.opts.Member.AgentID = team.Leader
		r.journal[0].Goal, r.journal[0].PastGoals = 9, nil
		for n := 4; n <= 8; n++ {
			r.journal[0].PastGoals = append(r.journal[0].PastGoals, team.PastGoal{Number: n, Goal: fmt.Sprint("goal number ", n), Status: team.TeamFailed})
		}
		r.journal[0].PastGoals[4].Reason = "tasks have failed: T-007"
		r.says("well")
		r.start()
		r.post(1, team.UserAgent, team.MsgUser, "go")
		got := transcript(r.asked[0].Messages[1:])
		if !strings.Contains(got, "- Goal 4, failed: goal number 4|- Goal 5") || !strings.Contains(got, "- and 3 earlier") || !strings.Contains(got, "- Goal 8, failed: goal number 8|  It failed: tasks have failed: T-007|") {
			t.Errorf("the leader is told\n%s", got)
		}
	})
}
