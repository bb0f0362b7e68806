package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/store/broker/brokertest"
	"agentteam/pkg/team"
)

const (
	smallWindow = 32_000           // tokens
	pieceLines  = 50               // of a file that is read at once
	lineBytes   = 80               // so a piece has 4 KB
	longWork    = 10 * time.Minute // far above what it takes
)

// narrow is a team of one, whose model takes a small window. What it hears first is what
// has to be known at the end.
type narrow struct {
	e    *endpoint
	tm   *client.Team
	past *history
}

// newNarrow starts it. Each task takes this many pieces of a long file.
func newNarrow(t *testing.T, pieces int) *narrow {
	t.Helper()
	n := &narrow{}
	work := &crew{turns: pieces, call: func(i int) call {
		return use("read_file", "path", "long.txt", "offset", 1+i*pieceLines, "limit", pieceLines)
	}}
	n.e = serve(t, func(r *request) answer {
		if r.role == "leader" {
			return n.e.say("I wait.")
		}
		return work.next(n.e, r)
	})
	n.e.window = smallWindow
	c := upAt(t, n.e.url, 1, fmt.Sprintf("AGENTTEAM_WINDOW=%d", smallWindow))
	var long strings.Builder
	for i := range pieces * pieceLines { // prose, of which a token is about four bytes
		line := fmt.Sprintf("%d bottles of green glass stand on the wall, and one of them may fall down by accident.", i+1)
		long.WriteString(line[:lineBytes-1] + "\n")
	}
	if err := os.WriteFile(filepath.Join(c.dir, "long.txt"), []byte(long.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	conn := c.connect()
	tm, bt := watched(t, conn, team.DefaultTeam, shortLease)
	n.tm = tm
	n.past = remember(t, bt)
	if _, err := n.tm.Members().Spawn(t.Context(), team.Member{Role: "coder"}, 1); err != nil {
		t.Fatal(err)
	}
	return n
}

// knows wants the newest request of the one teammate to hold who it is, its task and
// these facts, and no request to have been over the window.
func (n *narrow) knows(t *testing.T, task team.TaskID, facts ...string) {
	t.Helper()
	r := n.e.lastOf(string(n.tm.ID()), "coder-1")
	if first := r.messages[0].text(); !strings.HasSuffix(first, "\nYou are coder-1, role coder, in team "+string(n.tm.ID())+".\n") {
		t.Errorf("the last request begins with %q", first)
	}
	if r.task() != string(task) {
		t.Errorf("the last request tells of task %q, want %s", r.task(), task)
	}
	said := strings.Join(r.said(), "\n")
	for _, fact := range facts {
		if !strings.Contains(said, fact) {
			t.Errorf("the last request does not know that %s", fact)
		}
	}
	n.e.mu.Lock()
	defer n.e.mu.Unlock()
	t.Logf("%d requests, %d of them for a summary; the largest had %d tokens", n.e.calls, n.e.sums, n.e.largest)
	if n.e.refused > 0 {
		t.Errorf("%d requests were over the window", n.e.refused)
	}
}

// wait waits until a task is completed, and fails at once if an attempt is counted.
func (n *narrow) wait(t *testing.T, id team.TaskID) {
	t.Helper()
	brokertest.Within(t, longWork, string(id)+" is completed", func() bool {
		if spoilt := n.past.spoilt(id); spoilt != "" {
			t.Fatal(spoilt)
		}
		return n.past.last(id).Status == team.Completed
	})
	if last := n.past.last(id); last.Epoch != 1 {
		t.Errorf("%s was claimed %d times", id, last.Epoch)
	}
}

// tell sends the teammate a mail, and returns once that is part of its conversation.
func (n *narrow) tell(t *testing.T, text string) {
	t.Helper()
	if _, _, err := n.tm.Mail().Send(t.Context(), client.NewMail{To: "coder-1", Text: text}); err != nil {
		t.Fatal(err)
	}
	until(t, "the mail is read", func() bool {
		r := n.e.lastOf(string(n.tm.ID()), "coder-1")
		return r != nil && strings.Contains(strings.Join(r.said(), "\n"), text)
	})
}

// One task takes turns of 4 KB each, together many times the window.
func TestLongTask(t *testing.T) {
	t.Parallel()
	turns := 120
	if os.Getenv(longEnv) != "" {
		turns = 300
	}
	n := newNarrow(t, turns)
	n.tell(t, "Agreed: the port is 47113.")
	added, _, err := n.tm.Board().Add(t.Context(), "", team.NewTask{Title: "read it all", Description: "The colour of the report is vermilion."})
	if err != nil {
		t.Fatal(err)
	}
	n.wait(t, added[0].ID)
	n.knows(t, added[0].ID, "the port is 47113", "vermilion")
	if n.e.calls < turns {
		t.Errorf("%d requests for %d turns", n.e.calls, turns)
	}
}

// Twenty tasks go through one teammate in a day: what was agreed in the morning is known
// in the evening.
func TestTeamDay(t *testing.T) {
	t.Parallel()
	const tasks, turns = 20, 15
	n := newNarrow(t, turns)
	n.tell(t, "Agreed: the port is 47113.")
	if _, _, err := n.tm.Mail().Send(t.Context(), client.NewMail{To: team.Everyone, Text: "Agreed: the release is called Heron."}); err != nil {
		t.Fatal(err)
	}
	var last team.TaskID
	for i := range tasks {
		added, _, err := n.tm.Board().Add(t.Context(), "", team.NewTask{Title: fmt.Sprintf("task %d of the day", i+1)})
		if err != nil {
			t.Fatal(err)
		}
		last = added[0].ID
		n.wait(t, last)
	}
	n.knows(t, last, "the port is 47113", "the release is called Heron")
}
