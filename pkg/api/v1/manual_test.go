package v1_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentteam/pkg/agent/control"
	"agentteam/pkg/store/approval"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
	"agentteam/pkg/team"
	"agentteam/pkg/teamtest/testenv"
)

var (
	manualShell = regexp.MustCompile(`(?m)^api\(\) .*$`)
	manualRow   = regexp.MustCompile("(?m)^\\| ([^|]+) \\| `(api [^`]+)` \\|(.*)\\|$")
	manualArray = regexp.MustCompile("`(\\w+)`")
)

// The requests of the manual work in its order, from top to bottom, and their answers have the
// arrays that it names.
func TestManual(t *testing.T) {
	testenv.Program(t, "curl")
	manual, err := os.ReadFile("../../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	gone, err := control.Announce(r.bt.Conn, control.Process{ID: "p-1", Kind: "leader"}) // whose status is asked for
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gone)
	var id string               // of what the row is about
	ready := map[string]func(){ // what the members do before a row
		"list teams": func() { r.enter(t, "red") },
		"complete it": func() {
			v, err := r.team.Board().Task(t.Context(), "T-001")
			if err == nil {
				err = os.MkdirAll(filepath.Dir(filepath.Join(r.dir, v.DeliverablePath)), 0o755)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(r.dir, v.DeliverablePath), []byte("done"), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"see a message's delivery status": func() { id = r.sent(t) },
		"see questions": func() {
			id = r.post(t, team.Message{Type: team.MsgMessage, From: "coder-1", To: team.UserAgent, Content: "Shall I?", AwaitReply: true}).ID
		},
		"see what waits for a decision": func() { id = r.plans(t) },
	}
	shell, dir, done := string(manualShell.Find(manual)), t.TempDir(), 0
	for _, row := range manualRow.FindAllSubmatch(manual, -1) {
		what, request := string(row[1]), string(row[2])
		if f := ready[what]; f != nil {
			f()
			delete(ready, what)
		}
		// What waits, waits shorter here, and of a stream the first line is read.
		request = strings.NewReplacer("/ID", "/"+id, "wait=30", "wait=1", "timeout=20", "timeout=1", "api -N", "api -i -N").Replace(request)
		if strings.Contains(request, " -N ") {
			request += " | head -n 1 | cut -d ' ' -f 2"
		} else {
			request += " -w '\\n%{http_code}'"
		}
		cmd := exec.CommandContext(t.Context(), "bash", "-c", shell+"\n"+request)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "TOKEN=none", "API="+r.url)
		out, _ := cmd.Output() // the status says more than curl's
		text := strings.TrimSpace(string(out))
		if status := text[max(0, len(text)-3):]; len(status) != 3 || status[0] != '2' {
			t.Fatalf("%s: %s\n%s", what, request, text)
		}
		for _, name := range manualArray.FindAllSubmatch(row[3], -1) {
			if !strings.Contains(text, fmt.Sprintf("%q:[", name[1])) {
				t.Errorf("%s: there is no array %s in %s", what, name[1], text)
			}
		}
		done++
	}
	if done < 30 || len(ready) > 0 {
		t.Errorf("%d requests were sent; never came %v", done, ready)
	}
}

// enter has the processes of the test serve another team, which is there.
func (r *rig) enter(t *testing.T, id team.TeamID) {
	t.Helper()
	var err error
	if r.team, err = r.client.Open(t.Context(), id); err == nil {
		r.bt, err = r.bt.Conn.Open(t.Context(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.roster, r.board = roster.New(r.bt), board.New(r.bt.Bucket, board.Options{})
	r.standby(t)
}

// sent is the id of a message that the user has sent.
func (r *rig) sent(t *testing.T) string {
	t.Helper()
	letters, _, err := r.team.Mail().InboxPage(t.Context(), "coder-1", 0, 100)
	if err != nil || len(letters) == 0 {
		t.Fatalf("%d letters, %v", len(letters), err)
	}
	return letters[len(letters)-1].ID
}

// plans has a member submit a plan, and returns its id.
func (r *rig) plans(t *testing.T) string {
	t.Helper()
	m, err := r.roster.Get(t.Context(), "coder-1")
	if err != nil {
		t.Fatal(err)
	}
	m.PlanMode, m.Approver = true, team.ByHuman
	if m, err = r.roster.Put(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	plans := approval.New(r.bt.Bucket, approval.Options{Tasks: r.board, Members: r.roster, Post: mailbox.New(r.bt, mailbox.Options{Members: r.roster})})
	gate, err := plans.Gate(t.Context(), m, noTask{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := gate.Submit(t.Context(), "First I look.")
	if err != nil {
		t.Fatal(err)
	}
	return a.ID
}
