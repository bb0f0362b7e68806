package e2e

import (
	"strings"
	"sync"
	"syscall"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// chatter is an endpoint of a team whose members only write to each other.
type chatter struct {
	*endpoint

	mu    sync.Mutex
	turns map[string]int                        // answers with a call, by member
	play  func(r *request, heard string) []call // the calls of a member that has heard something; nil: none
}

// talkative starts a cluster whose leader spawns members, and then plays like all others.
func talkative(t *testing.T, members []string, play func(r *request, heard string) []call) (*cluster, *chatter) {
	t.Helper()
	ch := &chatter{turns: map[string]int{}, play: play}
	ch.mu.Lock() // no request is answered before ch.endpoint is there
	ch.endpoint = serve(t, func(r *request) answer {
		ch.mu.Lock()
		defer ch.mu.Unlock()
		ch.turns[r.agent]++
		if r.role == "leader" && ch.turns[r.agent] == 1 {
			var calls []call
			for _, name := range members {
				calls = append(calls, use("spawn_teammate", "role", "coder", "name", name))
			}
			return ch.endpoint.say("", calls...)
		}
		if r.messages[len(r.messages)-1].Role == "tool" && (r.role != "leader" || ch.turns[r.agent] != 2) {
			return ch.endpoint.say("That is sent.")
		}
		if calls := ch.play(r, r.heard()); calls != nil {
			return ch.endpoint.say("", calls...)
		}
		return ch.endpoint.say("I have nothing to do.")
	})
	ch.mu.Unlock()
	return upAt(t, ch.url, len(members)), ch
}

func (ch *chatter) asked(agent string) int {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.turns[agent]
}

// thank is a message to a member.
func thank(to string) call { return use("send_message", "to", to, "content", "Thank you!") }

// Members that only thank each other end up idle, the person is notified, and the goal ends by the leader's
// text, whoever writes to whom.
func TestHeldMailEndsTheGoal(t *testing.T) {
	begins := func(heard string) bool { return strings.Contains(heard, `"agent_id"`) } // the leader has spawned them
	for name, tt := range map[string]struct {
		members []string
		play    func(r *request, heard string) []call
		most    int // requests of all
	}{
		"a leader that thanks each idle member": {[]string{"ann", "ben"}, func(r *request, heard string) []call {
			if r.role != "leader" || !begins(heard) && !strings.Contains(heard, team.AllIdle) {
				return nil
			}
			return []call{thank("ann"), thank("ben")}
		}, 60},
		"two that thank each other": {[]string{"ann", "ben"}, func(r *request, heard string) []call {
			switch {
			case r.role == "leader" && begins(heard):
				return []call{use("send_message", "to", "ann", "content", "Greet ben.")}
			case r.agent == "ann" && (strings.Contains(heard, "Greet ben") || strings.Contains(heard, "Thank you")):
				return []call{thank("ben")}
			case r.agent == "ben" && strings.Contains(heard, "Thank you"):
				return []call{thank("ann")}
			}
			return nil
		}, 40},
		"three in a circle": {[]string{"ann", "ben", "cy"}, func(r *request, heard string) []call {
			switch next := map[string]string{"ann": "ben", "ben": "cy", "cy": "ann"}[r.agent]; {
			case r.role == "leader" && begins(heard):
				return []call{use("send_message", "to", "ann", "content", "Greet them.")}
			case next != "" && (strings.Contains(heard, "Thank you") || strings.Contains(heard, "Greet them")):
				return []call{thank(next)}
			}
			return nil
		}, 70},
		"broadcasts that answer broadcasts": {[]string{"ann", "ben", "cy"}, func(r *request, heard string) []call {
			if r.role == "leader" && begins(heard) || strings.Contains(heard, "Thank you all") {
				return []call{use("broadcast", "content", "Thank you all!")}
			}
			return nil
		}, 110},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, ch := talkative(t, tt.members, tt.play)
			code, out, errs := exit(t, c.command("run", "--timeout", "170s", "Be kind."))
			if code != 0 {
				t.Fatalf("run ended with %d:\n%s%s", code, out, errs)
			}
			sum := 0
			for _, name := range append(tt.members, "leader") {
				sum += ch.asked(name)
			}
			if sum > tt.most {
				t.Errorf("%d requests, want %d at most", sum, tt.most)
			}
			if n := strings.Count(out+errs, "[Held]"); n < 1 || n > 2 { // of the leader, with each of two, or of the others
				t.Errorf("run prints the notice %d times:\n%s%s", n, out, errs)
			}
			t.Logf("%d requests", sum)
		})
	}
}

// A member whose process is killed amid such an exchange continues to count where it was; a question is not
// held; and held mail is read with the next news. The process dies while it waits for its model: a call that was cut
// off would be reported as unknown, and it is the model's to decide what to do then.
func TestHeldMailSurvivesKill(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	quiet, thanks, victim := false, 0, 0
	c, ch := talkative(t, []string{"ann", "ben"}, func(r *request, heard string) []call {
		mu.Lock()
		defer mu.Unlock()
		other := map[string]string{"ann": "ben", "ben": "ann"}[r.agent]
		switch {
		case r.role == "leader" && strings.Contains(heard, `"agent_id"`):
			return []call{use("ask_user", "question", "Shall we end?")}
		case r.role == "leader" && strings.Contains(heard, "Yes, end"):
			return []call{use("finish_team", "summary", "all were kind")}
		case strings.Contains(heard, "Ask ben"):
			return []call{use("send_message", "to", "ben", "content", "Which colour?", "await_reply", true)}
		case strings.Contains(heard, "Which colour?"):
			return []call{use("send_message", "to", "ann", "content", "Green.")}
		case r.agent == "ben" && thanks == 3 && victim != 0:
			if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			victim = 0
			<-r.gone
			return nil
		case other != "" && !quiet && (strings.Contains(heard, "Thank you") || strings.Contains(heard, "Greet ben")):
			thanks++
			return []call{thank(other)}
		}
		return nil
	})
	goal := c.begin("--timeout", "170s", "Be kind.")
	conn := c.connect()
	var tm *client.Team
	until(t, "the members are there", func() bool {
		var err error
		if tm, err = conn.Open(t.Context(), team.DefaultTeam); err != nil {
			return false
		}
		a, err := tm.Members().Get(t.Context(), "leader")
		return err == nil && a.State == team.WaitingUser
	})
	ben, err := tm.Members().Get(t.Context(), "ben")
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	victim = ben.PID
	mu.Unlock()
	c.ok("send", "ann", "Greet ben.")
	held := func() (n int) {
		letters, err := tm.Mail().Inbox(t.Context(), team.UserAgent)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range letters {
			if strings.HasPrefix(l.Content, "[Held] ann and ben") || strings.HasPrefix(l.Content, "[Held] ben and ann") {
				n++
			}
		}
		return n
	}
	until(t, "the person is notified", func() bool { return held() > 0 })
	mu.Lock()
	n := thanks
	quiet = true
	mu.Unlock()
	if n != team.HeldFrom || victim != 0 {
		t.Errorf("%d messages had gone to and fro; the process to kill: %d", n, victim)
	}
	before := ch.asked("ben")
	c.ok("send", "ann", "Ask ben for a colour.")
	until(t, "ann has the answer", func() bool {
		r := ch.lastOf(string(team.DefaultTeam), "ann")
		return r != nil && strings.Contains(strings.Join(r.said(), "\n"), "Green.")
	})
	if ch.asked("ben") == before {
		t.Error("the question did not wake ben")
	}
	told := strings.Join(append(ch.lastOf(string(team.DefaultTeam), "ann").said(), ch.lastOf(string(team.DefaultTeam), "ben").said()...), "\n")
	if got := strings.Count(told, "Thank you!"); got < n {
		t.Errorf("of %d messages %d were read:\n%s", n, got, told)
	}
	if h := held(); h != 1 {
		t.Errorf("the person is notified %d times", h)
	}
	c.ok("answer", "Yes, end.")
	if r := goal.end(t); r.Status != "finished" || r.Summary != "all were kind" {
		t.Errorf("the goal is %s: %s", r.Status, r.Summary)
	}
}
