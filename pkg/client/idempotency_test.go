package client_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// A message is stored once for a key, however often and from wherever it is sent; another
// one under that key is refused, and another sender's key is another key.
func TestSendOnce(t *testing.T) {
	r := newRig(t)
	r.active(t)
	before := len(r.inbox(t, team.Leader))
	m := client.NewMail{To: team.Leader, Text: "请看 🎯"}
	const senders = 5
	var wg sync.WaitGroup
	ids := make([]string, senders)
	for i := range senders {
		wg.Go(func() {
			msg, to, _, err := r.Mail().SendOnce(t.Context(), "order 7", m)
			if err != nil || len(to) != 1 || to[0] != team.Leader || msg.Content != m.Text {
				t.Errorf("sent %+v to %v, %v", msg, to, err)
			}
			ids[i] = msg.ID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("the same key sent %v", ids)
		}
	}
	if msg, _, existed, err := r.Mail().SendOnce(t.Context(), "order 7", m); err != nil || !existed || msg.ID != ids[0] {
		t.Errorf("again: %+v, existed %v, %v", msg, existed, err)
	}
	if got := r.inbox(t, team.Leader); len(got) != before+1 {
		t.Errorf("the leader has %d messages, and had %d", len(got), before)
	}
	for name, tt := range map[string]struct {
		key  string
		m    client.NewMail
		want team.Code
	}{
		"another text":        {"order 7", client.NewMail{To: team.Leader, Text: "other"}, team.Conflict},
		"to somebody else":    {"order 7", client.NewMail{To: team.Everyone, Text: m.Text}, team.Conflict},
		"urgent":              {"order 7", client.NewMail{To: team.Leader, Text: m.Text, Urgent: true}, team.Conflict},
		"no key":              {"", m, team.InvalidArgument},
		"a key that is long":  {strings.Repeat("k", 257), m, team.InvalidArgument},
		"to nobody":           {"order 8", client.NewMail{To: "nobody", Text: "x"}, team.NotFound},
		"in answer to nought": {"order 8", client.NewMail{To: team.Leader, Text: "x", ReplyTo: "nought"}, team.NotFound},
	} {
		_, _, _, err := r.Mail().SendOnce(t.Context(), tt.key, tt.m)
		wantCode(t, name, err, tt.want)
	}
	if _, _, existed, err := r.Mail().SendOnce(t.Context(), "order 8", client.NewMail{To: team.Leader, Text: "x"}); err != nil || existed {
		t.Errorf("after a refusal the key is used up: %v, %v", existed, err)
	}
	long := client.NewMail{To: team.Everyone, Text: strings.Repeat("长", team.MaxTextBytes)}
	first, _, existed, err := r.Mail().SendOnce(t.Context(), "long", long)
	if err != nil || existed || first.Stored == "" {
		t.Errorf("a long text: existed %v, stored at %q, %v", existed, first.Stored, err)
	}
	if again, to, existed, err := r.Mail().SendOnce(t.Context(), "long", long); err != nil || !existed || again.ID != first.ID || len(to) == 0 {
		t.Errorf("a long text again: existed %v, to %v, %v", existed, to, err)
	}
}

// A goal is set once for a key: not again once it has ended, and not beside another one. What
// was mailed and not set, since the caller was killed in between, is set by the repetition.
func TestSetGoal(t *testing.T) {
	r := newRig(t)
	set := func(key, text string, existed, started bool, number int) {
		t.Helper()
		g, again, err := r.Goals().Set(t.Context(), client.NewGoal{Text: text, Key: key, Add: true})
		if err != nil || again != existed || g.Started() != started || g.Record().GoalNumber != number {
			t.Errorf("%s: existed %v, goal %+v, %v; want existed %v, started %v, goal %d", key, again, g, err, existed, started, number)
		}
	}
	set("a", "migrate", false, true, 1)
	set("a", "migrate", true, true, 1)
	set("b", "and test", false, false, 1) // it is at work
	set("b", "and test", true, false, 1)
	_, _, err := r.Goals().Set(t.Context(), client.NewGoal{Text: "another", Key: "a"})
	wantCode(t, "another text under the key", err, team.Conflict)
	for _, key := range []string{"", "other"} {
		_, _, err = r.Goals().Set(t.Context(), client.NewGoal{Text: "beside it", Key: key})
		wantCode(t, "a goal beside another one, key "+key, err, team.Conflict)
	}
	_, _, err = r.Goals().Set(t.Context(), client.NewGoal{Text: "x", Key: strings.Repeat("k", 257)})
	wantCode(t, "a key that is too long", err, team.InvalidArgument)
	if got := r.inbox(t, team.Leader); len(got) != 2 {
		t.Errorf("the leader has %d messages, want 2", len(got))
	}
	r.end(t, "done")
	set("a", "migrate", true, true, 1)
	if rec := record(t, r.Team); rec.Status != team.TeamFinished {
		t.Errorf("repeated after its end, the goal runs again: %+v", rec)
	}
	set("c", "migrate", false, true, 2)
	r.end(t, "done")
}

// Calls that race with one key come to one message: the one that stored it says that it was new,
// the others that it existed. If they say different things, all but one are refused.
func TestKeysThatRace(t *testing.T) {
	r := newRig(t)
	r.active(t)
	const callers, rounds = 4, 10
	race := func(call func(i int) (existed bool, err error)) (fresh, existed, refused int) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for i := range callers {
			wg.Go(func() {
				was, err := call(i)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case team.CodeOf(err) == team.Conflict:
					refused++
				case err != nil:
					t.Error(err)
				case was:
					existed++
				default:
					fresh++
				}
			})
		}
		wg.Wait()
		return fresh, existed, refused
	}
	for k := range rounds {
		key := fmt.Sprint("key ", k)
		send := func(text string) (bool, error) {
			_, _, existed, err := r.Mail().SendOnce(t.Context(), key, client.NewMail{To: team.Leader, Text: text})
			return existed, err
		}
		if fresh, existed, _ := race(func(int) (bool, error) { return send("same") }); fresh != 1 || existed != callers-1 {
			t.Errorf("of %d messages that are the same %d were new and %d existed", callers, fresh, existed)
		}
		key += " b"
		if fresh, _, refused := race(func(i int) (bool, error) { return send(fmt.Sprint(i)) }); fresh != 1 || refused != callers-1 {
			t.Errorf("of %d messages that differ %d were new and %d refused", callers, fresh, refused)
		}
		for n := range 4 {
			differ, add := n%2 == 1, n < 2
			r.end(t, "done")
			before, number := len(r.inbox(t, team.Leader)), record(t, r.Team).GoalNumber
			fresh, existed, refused := race(func(i int) (bool, error) {
				text := fmt.Sprint("goal ", k)
				if differ {
					text = fmt.Sprint("goal ", k, " of ", i)
				}
				g, existed, err := r.Goals().Set(t.Context(), client.NewGoal{Text: text, Key: fmt.Sprint(key, n), Add: add})
				if err == nil && (!g.Started() || g.Record().Goal != text) {
					t.Errorf("it set %q, and got %+v", text, g)
				}
				return existed, err
			})
			if fresh != 1 || fresh+existed+refused != callers || differ && refused != callers-1 || !differ && refused != 0 {
				t.Errorf("differ %v, add %v: of %d goals %d were new, %d existed and %d were refused", differ, add, callers, fresh, existed, refused)
			}
			mail := r.inbox(t, team.Leader)
			if rec := record(t, r.Team); len(mail) != before+1 || rec.GoalNumber != number+1 || rec.Goal != mail[len(mail)-1].Content {
				t.Errorf("differ %v: the goal is %d, %q, after %d; %d messages", differ, rec.GoalNumber, rec.Goal, number, len(mail)-before)
			}
		}
	}
}
