package render_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/agent/runtime"
	"agentteam/pkg/store/feed"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/view/render"
)

var update = flag.Bool("update", false, "write the golden files")

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// teller makes entries, each a second behind the one before.
type teller struct {
	now     time.Time
	tasks   map[team.TaskID]team.Task
	entries []feed.Entry
}

func newTeller() *teller { return &teller{now: noon, tasks: map[team.TaskID]team.Task{}} }

func (w *teller) event(a team.AgentID, b team.EventBody, value any) {
	if value != nil {
		b.Value, _ = json.Marshal(value) // of records, which can be written
	}
	w.now = w.now.Add(time.Second)
	w.entries = append(w.entries, feed.Entry{Time: w.now, Event: team.Event{TeamID: "red", AgentID: a, Event: b}})
}

func (w *teller) says(a team.AgentID, text string) {
	w.event(a, team.EventBody{Type: team.TextChunk, Delta: text, Tokens: 600}, nil)
}

// calls is a call and its result, which takes a second.
func (w *teller) calls(a team.AgentID, tool, args, result string) {
	w.begins(a, "c1", tool, args)
	w.ends(a, "c1", tool, result)
}

func (w *teller) begins(a team.AgentID, id, tool, args string) {
	w.event(a, team.EventBody{Type: team.ToolCallChunk, ToolCallID: id, ToolCallName: tool, Delta: args}, nil)
}

func (w *teller) ends(a team.AgentID, id, tool, result string) {
	w.event(a, team.EventBody{Type: team.ToolCallResult, ToolCallID: id, ToolCallName: tool, Content: result}, nil)
}

func (w *teller) mail(typ team.MessageType, from, to team.AgentID, text string) {
	w.event(from, team.EventBody{Type: team.MailSent}, team.Message{Type: typ, From: from, To: to, Content: text, Summary: team.Summarize(text)})
}

// asks is a question, and its sender waits for the answer.
func (w *teller) asks(from, to team.AgentID, text string, choices ...string) {
	m := team.Message{ID: "01M7Q2V9Q2S4M6K8XW3F5T7Y9Z", Type: team.MsgMessage, From: from, To: to, Content: text, Summary: team.Summarize(text), AwaitReply: true, Choices: choices}
	w.event(from, team.EventBody{Type: team.MailSent}, m)
}

func (w *teller) member(typ team.EventType, m team.Member) {
	m.Role = "coder"
	w.event(m.AgentID, team.EventBody{Type: typ}, m)
}

func (w *teller) plan(by team.AgentID, typ team.EventType, a team.Approval) {
	a.ID, a.AgentID, a.Task, a.Plan = "9f0c", "coder-1", "T-001", "1. the lexer\n2. its tests"
	w.event(by, team.EventBody{Type: typ}, a)
}

func (w *teller) task(by team.AgentID, typ team.EventType, id team.TaskID, change func(*team.Task)) {
	t := w.tasks[id]
	t.ID, t.UpdatedBy, t.UpdatedAt = id, by, w.now
	if t.Status == "" {
		t.Status, t.CreatedBy, t.CreatedAt = team.Pending, by, w.now
	}
	if change != nil {
		change(&t)
	}
	w.tasks[id] = t
	w.event(by, team.EventBody{Type: typ}, t)
}

func (w *teller) create(id team.TaskID, title string, after ...team.TaskID) {
	w.task(team.Leader, team.TaskCreated, id, func(t *team.Task) { t.Title, t.Dependencies = title, after })
}

func (w *teller) claim(a team.AgentID, id team.TaskID) {
	w.task(a, team.TaskClaimed, id, func(t *team.Task) {
		at := w.now
		t.Status, t.Assignee, t.Epoch, t.ClaimedAt = team.InProgress, a, t.Epoch+1, &at
	})
}

func (w *teller) complete(a team.AgentID, id team.TaskID, summary string) {
	w.task(a, team.TaskCompleted, id, func(t *team.Task) {
		at := w.now
		t.Status, t.ResultSummary, t.CompletedAt = team.Completed, summary, &at
	})
}

// aDay is a team's story with all that may happen in it.
func aDay() []feed.Entry {
	w := newTeller()
	w.mail(team.MsgUser, team.UserAgent, team.Leader, "Write the parser anew.\nKeep its tests.")
	w.member(team.MemberJoined, team.Member{AgentID: team.Leader, Color: "white", Incarnation: 1})
	w.event(team.Leader, team.EventBody{Type: team.RunStarted}, nil)
	w.says(team.Leader, "I look at the parser first, then I make a task of each of its parts, so that three of us can work at once.\n\n- lexer\n- grammar: 写一个测试 für alle Fälle, die heute schon getestet werden 🚀")
	w.calls(team.Leader, "spawn_teammate", `{"role":"coder"}`, `{"agent_id":"coder-1"}`)
	for i, a := range []team.AgentID{"coder-1", "coder-2"} {
		w.member(team.MemberCreated, team.Member{AgentID: a, Color: team.Colour(i), Incarnation: 1})
		w.member(team.MemberJoined, team.Member{AgentID: a, Color: team.Colour(i), Incarnation: 1})
	}
	w.member(team.MemberJoined, team.Member{AgentID: "alice", Color: "magenta", Incarnation: 1, Backend: team.Person})
	w.create("T-001", "Write the lexer")
	w.create("T-002", "Write the grammar", "T-001")
	for n := 3; n <= 8; n++ {
		w.create(team.MakeTaskID(n), fmt.Sprintf("Part %d", n))
	}
	w.create("T-009", "Publish it", "T-002", "T-008")
	w.event("coder-2", team.EventBody{Type: team.RunFinished}, nil) // nobody's business
	w.claim("coder-1", "T-001")
	w.claim("alice", "T-003")
	w.calls("coder-1", "read_file", `{"path":"parser/lexer.go","limit":200}`, "package parser\n")
	w.calls("coder-1", "bash", `{"command":"cat >lexer.go <<'EOF'\npackage parser\nEOF\n"}`, "(no output)")
	w.calls("coder-1", "bash", `{"command":"go test ./parser/... -run TestLexer -count=1 -v -timeout 5m -coverprofile lexer.out"}`, "=== RUN TestLexer\n--- FAIL: TestLexer\n    lexer_test.go:12: want ident\nFAIL\nexit status 1")
	w.calls("coder-1", "grep", `{"pattern":"func lex","path":"parser"}`, "a.go:1: func lex()\nb.go:2: func lexAll()\nc.go:3: func lexNone()")
	w.calls("coder-1", "edit_file", `{"path":"lexer.go","old_string":"a\nb","new_string":"c"}`, `{"error":"old_string is not in lexer.go","code":"invalid_argument","status":"error"}`)
	w.begins("coder-1", "c7", "bash", `{"command":"make lexer"}`)
	w.mail(team.MsgMessage, "coder-2", "coder-1", "Which names do the tokens have?")
	w.ends("coder-1", "c7", "bash", "built\nit")
	w.asks("coder-1", team.UserAgent, "Shall I keep the old names of the tokens?\nThe grammar needs to know.\nSo do the tests.\nAnd the docs.", "keep them", "rename them")
	w.mail(team.MsgUser, team.UserAgent, "coder-1", "Yes, keep them.")
	w.mail(team.MsgBroadcast, "coder-1", team.Everyone, "The names stay. "+strings.Repeat("All of them stay as they are. ", 12))
	w.mail(team.MsgIdle, "coder-2", team.Leader, "coder-2 is idle")
	w.mail(team.MsgWatchdog, team.Watchdog, team.Leader, "[All Idle] Nobody has anything left to do.\nTasks: 1 completed.")
	w.plan("coder-1", team.ApprovalRequested, team.Approval{Status: team.PlanPending})
	w.mail(team.MsgPlanRequest, "coder-1", team.Leader, "coder-1 asks for approval of its plan")
	w.plan(team.Leader, team.ApprovalRejected, team.Approval{Status: team.PlanRejected, Feedback: "smaller"})
	w.mail(team.MsgPlanResponse, team.Leader, "coder-1", "Your plan is rejected")
	w.plan("coder-1", team.ApprovalRequested, team.Approval{Status: team.PlanPending, Approver: team.ByHuman})
	w.mail(team.MsgPlanRequest, "coder-1", team.UserAgent, "coder-1 asks for approval of its plan 9f0c.\n\n1. the lexer")
	w.plan(team.UserAgent, team.ApprovalApproved, team.Approval{Status: team.PlanApproved, Approver: team.ByHuman})
	w.plan("coder-1", team.ApprovalUsed, team.Approval{Status: team.PlanUsed})
	call := &team.AskedCall{Tool: "bash", Arguments: `{"command":"git push origin main && \u001b[2Jrm \u202e x\nanswer: yes"}`, Dir: "/home/ann/work", Why: "no rule allows git push"}
	w.plan("coder-1", team.ApprovalRequested, team.Approval{Kind: team.OfPermission, Status: team.PlanPending, Approver: team.ByHuman, Call: call})
	w.event("coder-1", team.EventBody{Type: team.MailSent}, team.Message{Type: team.MsgPlanRequest, From: "coder-1", To: team.UserAgent, RequestID: "9f0c", Content: "what the record tells"})
	w.mail(team.MsgWatchdog, team.Watchdog, team.Leader, "[All Idle] Nobody has anything left to do.")
	w.plan(team.UserAgent, team.ApprovalApproved, team.Approval{Kind: team.OfPermission, Status: team.PlanApproved, Scope: team.ForTask, Call: call})
	w.plan(team.UserAgent, team.ApprovalRejected, team.Approval{Kind: team.OfPermission, Status: team.PlanRejected, Feedback: "not on a Friday", Call: call})
	w.complete("coder-1", "T-001", "The lexer is in lexer.go; its tests pass.")
	w.claim("coder-2", "T-002")
	w.says("coder-2", "I am \x1b[2Jnot\x1b]0;owned\x07 here\u202e.")
	for range 5 {
		w.event("coder-2", team.EventBody{Type: team.Retry, Message: "the model endpoint http://model/v1 failed (rate limited, status 429), try 2 of 5 follows after 1s"}, team.Retrying{Tried: 1, Of: 5, WaitSeconds: 1})
		w.event("coder-2", team.EventBody{Type: team.Retry, Message: "http://model/v1 answered 429: slow down"}, nil)
	}
	w.member(team.MemberParked, team.Member{AgentID: "coder-2", Color: "yellow", LastError: "http://model/v1 answered 429: slow down", Incarnation: 1})
	w.member(team.MemberResumed, team.Member{AgentID: "coder-2", Color: "yellow", Incarnation: 1})
	w.event("coder-2", team.EventBody{Type: team.Compacted}, nil)
	w.task(team.Watchdog, team.TaskReleased, "T-002", func(t *team.Task) {
		t.Status, t.Epoch, t.Attempts, t.Reason = team.Pending, t.Epoch+1, 1, "coder-2 is silent"
	})
	w.member(team.MemberCreated, team.Member{AgentID: "coder-2", Color: "yellow", Incarnation: 2})
	w.member(team.MemberJoined, team.Member{AgentID: "coder-2", Color: "yellow", Incarnation: 2})
	w.claim("coder-2", "T-002")
	w.task("coder-2", team.TaskReleased, "T-002", func(t *team.Task) { t.Status, t.Reason = team.Pending, "the grammar is unclear" })
	w.task(team.UserAgent, team.TaskUpdated, "T-002", func(t *team.Task) { t.Priority = 1 })
	w.claim("coder-2", "T-002")
	w.task("coder-2", team.TaskFailed, "T-002", func(t *team.Task) { t.Status, t.Reason = team.Failed, "it is ambiguous" })
	w.task(team.UserAgent, team.TaskCancelled, "T-008", func(t *team.Task) { t.Status, t.Reason = team.Cancelled, "not needed" })
	w.event("coder-1", team.EventBody{Type: team.RunError, Message: "the run had 50 turns"}, nil)
	w.event("", team.EventBody{Type: team.Custom, Name: "reset"}, feed.Reset{Missing: []feed.Missing{{Source: "events", Why: "forgotten", From: 1, To: 9}}})
	w.member(team.MemberLost, team.Member{AgentID: "coder-1", Color: "cyan", Incarnation: 1})
	w.now = w.now.Add(12 * time.Hour)
	w.member(team.MemberStopped, team.Member{AgentID: "coder-1", Color: "cyan", Incarnation: 1})
	w.member(team.MemberStopped, team.Member{AgentID: "coder-2", Color: "yellow", Incarnation: 2})
	w.calls(team.Leader, "finish_team", `{"summary":"done"}`, `{"summary":"done"}`)
	return w.entries
}

// told is the story of entries at a width, and how things stand at its end.
func told(o render.Options, entries []feed.Entry) []string {
	o.Zone = time.UTC
	if o.Width != 200 { // at which the answer is known
		o.Answer = func(q team.Message) string { return "teamctl answer " + q.ID + " " + q.AnswerUsage() }
		o.Decide = func(p team.Approval) string { return "allow: teamctl approvals approve " + p.ID }
	}
	o.Traits = runtime.Traits
	s := render.New(o)
	var lines []string
	for _, e := range entries {
		lines = append(lines, s.Render(e)...)
	}
	lines = append(lines, s.Flush()...)
	if o.Width > 0 {
		lines = append(lines, s.Foot(entries[len(entries)-1].Time.Add(3*time.Second), noon, o.Width))
	}
	return lines
}

// What a person sees, at the widths of terminals, with and without colours; and that no
// line is wider than its terminal, and nothing acts on it.
func TestStory(t *testing.T) {
	for _, width := range []int{0, 20, 40, 80, 200} {
		lines := told(render.Options{Width: width}, aDay())
		text := strings.Join(lines, "\n") + "\n"
		golden(t, fmt.Sprintf("%d.colour", width), strings.ReplaceAll(text, "\x1b", "␛"))
		golden(t, fmt.Sprintf("%d.plain", width), ansi.Strip(text))
		for _, l := range lines {
			if n := ansi.StringWidth(l); width > 0 && n > width {
				t.Errorf("at %d cells a line takes %d: %q", width, n, l)
			}
			if acts(l) {
				t.Errorf("a line acts on the terminal: %q", l)
			}
		}
	}
}

var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// acts reports whether a line does more to a terminal than to print and to colour.
func acts(line string) bool {
	bare := colours.ReplaceAllString(line, "")
	return bare != render.Printable(bare)
}

// Whatever a model, a command or a record says, no line acts on the terminal or is wider than
// it, however narrow that is.
func TestHostile(t *testing.T) {
	for _, evil := range []string{"\x1b[2J\x1b]0;mine\x07", "\u009b2J\u0090x\u009c", "\xff\x9b31m", "a\r\n\u2028b\u2029c\u0085d", "写写写写写写", "👩‍👩‍👧‍👦👩‍👩‍👧‍👦", strings.Repeat("e\u0301", 50), "\u202eabc\u2067", "- --", "_ \u00a0(x)\u2011"} {
		w := newTeller()
		w.member(team.MemberJoined, team.Member{AgentID: "coder-1", Incarnation: 1, LastError: evil})
		w.create("T-001", evil)
		w.claim("coder-1", "T-001")
		w.says("coder-1", evil)
		w.calls("coder-1", evil, fmt.Sprintf(`{"command":%q}`, evil), evil)
		w.calls("coder-1", "bash", fmt.Sprintf(`{"command":%q}`, evil), evil+"\nexit status 1")
		w.mail(team.MsgMessage, "coder-1", team.UserAgent, evil)
		w.member(team.MemberLost, team.Member{AgentID: "coder-2", Incarnation: 1, LastError: evil})
		w.complete("coder-1", "T-001", evil)
		w.task(team.Leader, team.TaskFailed, "T-002", func(t *team.Task) { t.Status, t.Reason, t.Title = team.Failed, evil, evil })
		w.begins("coder-1", "c9", evil, evil)
		for _, full := range []bool{false, true} {
			for _, width := range []int{0, 20, 30, 61, 80} {
				lines := told(render.Options{Width: width, Full: full}, w.entries)
				for _, l := range lines {
					if acts(l) {
						t.Errorf("of %q a line at %d cells acts on the terminal: %q", evil, width, l)
					}
					if n := ansi.StringWidth(l); width > 0 && n > width {
						t.Errorf("of %q a line at %d cells takes %d: %q", evil, width, n, l)
					}
				}
			}
			s := render.New(render.Options{Traits: runtime.Traits})
			for _, e := range w.entries {
				s.Render(e)
			}
			if l := s.Foot(w.now.Add(time.Second), noon, 500); acts(l) {
				t.Errorf("of %q the line below acts on the terminal: %q", evil, l)
			}
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not as it was (look at it with -update and git diff):\n%s", path, got)
	}
}

// The whole of it, with the raw calls and the team's name.
func TestFull(t *testing.T) {
	golden(t, "full", ansi.Strip(strings.Join(told(render.Options{Width: 100, Full: true, Team: "red"}, aDay()), "\n")+"\n"))
}

// A Task without a team is told as the subagent that it is.
func TestSubagentOfClaude(t *testing.T) {
	w := newTeller()
	w.calls("coder-1", "Task", `{"prompt":"Look.","subagent_type":"Explore"}`, "It is there.")
	w.calls("coder-1", "Task", `{"prompt":"Look.","subagent_type":"Explore"}`, `{"error":"too many","status":"error"}`)
	text := ansi.Strip(strings.Join(told(render.Options{Width: 80}, w.entries), "\n"))
	if strings.Count(text, "· subagent") != 2 || !strings.Contains(text, "✗ subagent: too many") || strings.Contains(text, "spawn_teammate") {
		t.Error(text)
	}
}

// One member's story has its tasks and its mail, also what others write to it.
func TestOnly(t *testing.T) {
	text := ansi.Strip(strings.Join(told(render.Options{Width: 80, Only: "coder-2"}, aDay()), "\n"))
	for _, want := range []string{"coder-1 → all: The names stay.", "▸ T-002 claimed", "! is lost; it is brought back", "taken from coder-2"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not told in\n%s", want, text)
		}
	}
	for _, others := range []string{"T-001 claimed", "Yes, keep them", "make lexer"} {
		if strings.Contains(text, others) {
			t.Errorf("%q is told, which does not concern it", others)
		}
	}
}

// What was stored of a task that had ended is told of the member that held it.
func TestOnlyWhatItHeld(t *testing.T) {
	w := newTeller()
	w.create("T-001", "Write the lexer")
	w.claim("coder-1", "T-001")
	w.task(team.Leader, team.TaskCancelled, "T-001", func(t *team.Task) { t.Status, t.Assignee = team.Cancelled, "coder-2" })
	w.task(team.Leader, team.TaskUpdated, "T-001", func(t *team.Task) { *t = t.Left(team.Try{By: "coder-1", Epoch: 1}) })
	for only, want := range map[team.AgentID]bool{"": true, "coder-1": true, "coder-7": false} {
		text := ansi.Strip(strings.Join(told(render.Options{Width: 80, Only: only, Full: true}, w.entries), "\n"))
		if got := regexp.MustCompile(`coder-1 .*stored what a former holder has changed`).MatchString(text); got != want {
			t.Errorf("of %q it is told: %v\n%s", only, got, text)
		}
	}
}

// How things stand: what needs somebody stands first, and what does not fit is counted.
func TestFoot(t *testing.T) {
	w := newTeller()
	for i := range 6 {
		w.member(team.MemberJoined, team.Member{AgentID: team.AgentID(fmt.Sprintf("coder-%d", i+1)), Incarnation: 1})
		w.create(team.MakeTaskID(i+1), "x")
		w.claim(team.AgentID(fmt.Sprintf("coder-%d", i+1)), team.MakeTaskID(i+1))
	}
	w.member(team.MemberJoined, team.Member{AgentID: "alice", Backend: team.Person})
	w.create("T-007", "x")
	w.claim("alice", "T-007")
	w.says("coder-2", "x")
	w.begins("coder-2", "c1", "bash", `{"command":"make"}`)
	w.begins("coder-3", "c1", "send_message", `{"to":"alice","content":"?","await_reply":true}`)
	w.complete("coder-1", "T-001", "done")
	s := render.New(render.Options{Traits: runtime.Traits})
	for _, e := range w.entries {
		s.Render(e)
	}
	for width, want := range map[int]string{
		200: "1/7 done · alice has T-007 6s · coder-3 waits for alice · coder-4 T-004 its model 15s · coder-5 T-005 its model 12s · coder-6 T-006 its model 9s · coder-2 T-002 bash 4s · coder-1 2s · 600 tok · 27s",
		80:  "1/7 done · alice has T-007 6s · coder-3 waits for alice · +5 · 600 tok · 27s",
		40:  "1/7 done · 600 tok · 27s",
		20:  "1/7 27s",
		5:   "1/7 2",
	} {
		if got := ansi.Strip(s.Foot(w.now.Add(2*time.Second), noon, width)); got != want || ansi.StringWidth(got) > width {
			t.Errorf("at %d cells: %q, want %q", width, got, want)
		}
	}
}

// What holders call their work stands in the foot as far as there is room beside everybody:
// it pushes nobody out.
func TestFootTellsWhatHoldersDo(t *testing.T) {
	s := render.New(render.Options{Traits: runtime.Traits})
	doing := func(id team.TaskID, who team.AgentID, form string) team.Task {
		return team.Task{ID: id, Status: team.InProgress, Assignee: who, UpdatedAt: noon, Metadata: []byte(`{"activeForm":"` + form + `"}`)}
	}
	s.Know([]team.Member{{AgentID: "coder-1", State: team.Joined}, {AgentID: "coder-2", State: team.Joined}},
		[]team.Task{doing("T-001", "coder-1", `Writing\u202e the lexer`), doing("T-002", "coder-2", "Testing")},
		func(team.TaskID) bool { return true })
	for width, want := range map[int]string{
		91: "0/2 done · coder-1 T-001 (Writing the lexer) 1m00s · coder-2 T-002 (Testing) 1m00s · 1m00s",
		80: "0/2 done · coder-1 T-001 (Writing the lexer) 1m00s · coder-2 T-002 1m00s · 1m00s",
		70: "0/2 done · coder-1 T-001 1m00s · coder-2 T-002 (Testing) 1m00s · 1m00s",
		60: "0/2 done · coder-1 T-001 1m00s · coder-2 T-002 1m00s · 1m00s",
		50: "0/2 done · coder-1 T-001 1m00s · +1 · 1m00s",
	} {
		if got := ansi.Strip(s.Foot(noon.Add(time.Minute), noon, width)); got != want || ansi.StringWidth(got) > width {
			t.Errorf("at %d cells: %q, want %q", width, got, want)
		}
	}
}

// A pane that shows one member tells what that one is at: how the team stands is told beside it.
func TestFootOfOneMember(t *testing.T) {
	members := []team.Member{{AgentID: "coder-1", State: team.Joined}, {AgentID: "coder-2", State: team.Joined}}
	tasks := []team.Task{{ID: "T-001", Status: team.InProgress, Assignee: "coder-1", UpdatedAt: noon, Metadata: []byte(`{"activeForm":"Writing"}`)}}
	for who, want := range map[team.AgentID]string{"coder-1": "T-001 (Writing) 1m00s", "coder-2": ""} {
		s := render.New(render.Options{Traits: runtime.Traits, Only: who})
		s.Know(members, tasks, func(team.TaskID) bool { return true })
		if got := ansi.Strip(s.Foot(noon.Add(time.Minute), noon, 80)); got != want {
			t.Errorf("of %s: %q, want %q", who, got, want)
		}
	}
}

// What people read of the end of a member, of notices and of a new conversation is what it
// means, and only what means something to them.
func TestMeaning(t *testing.T) {
	no, yes := false, true
	for name, tt := range map[string]struct {
		entries func(w *teller)
		want    string
	}{
		"nobody moves, and the leader goes on": {func(w *teller) {
			w.mail(team.MsgWatchdog, team.Watchdog, team.Leader, "[All Idle] Two tasks are done.")
		}, ""},
		"a person is waited for": {func(w *teller) {
			w.member(team.MemberJoined, team.Member{AgentID: "alice", Backend: team.Person, Incarnation: 1})
			w.asks("coder-1", team.UserAgent, "Why?")
			w.claim("alice", "T-001")
			w.mail(team.MsgWatchdog, team.Watchdog, team.Leader, "[All Idle] Nobody moves.")
		}, "the team waits for a person: alice has T-001; coder-1 waits for user"},
		"a person is waited for still": {func(w *teller) {
			w.asks("coder-1", team.UserAgent, "Why?")
			w.mail(team.MsgWatchdog, team.Watchdog, team.Leader, "[All Idle] Nobody moves.")
			w.says(team.Leader, "I wait.")
			w.mail(team.MsgWatchdog, team.Watchdog, team.Leader, "[All Idle] Nobody moves.")
		}, "leader I wait."},
		"asked to leave": {func(w *teller) {
			w.mail(team.MsgShutdownRequest, team.Leader, "coder-1", "go home")
		}, "leader asks coder-1 to leave: go home"},
		"drained": {func(w *teller) {
			w.event(team.UserAgent, team.EventBody{Type: team.MailSent}, team.Message{Type: team.MsgShutdownRequest, From: team.UserAgent, To: "coder-1", Drain: true})
		}, "user asks coder-1 to leave after its task"},
		"refuses": {func(w *teller) {
			w.event("coder-1", team.EventBody{Type: team.MailSent}, team.Message{Type: team.MsgShutdownResponse, From: "coder-1", To: team.Leader, Content: "in the middle of it", Approve: &no})
		}, "coder-1 refuses to leave: in the middle of it"},
		"agrees": {func(w *teller) {
			w.event("coder-1", team.EventBody{Type: team.MailSent}, team.Message{Type: team.MsgShutdownResponse, From: "coder-1", To: team.Leader, Approve: &yes})
		}, "coder-1 agrees to leave"},
		"its process was told to end": {func(w *teller) {
			w.member(team.MemberJoined, team.Member{AgentID: "coder-1", Incarnation: 1})
			w.member(team.MemberLost, team.Member{AgentID: "coder-1", Incarnation: 1})
			w.member(team.MemberCreated, team.Member{AgentID: "coder-1", Incarnation: 2})
		}, "coder-1 - its process has ended"},
		"its process fell silent": {func(w *teller) {
			w.member(team.MemberJoined, team.Member{AgentID: "coder-1", Incarnation: 1})
			w.member(team.MemberCreated, team.Member{AgentID: "coder-1", Incarnation: 2})
		}, "coder-1 ! is lost; it is brought back"},
		"the leader is back after an outage": {func(w *teller) {
			w.member(team.MemberJoined, team.Member{AgentID: team.Leader, Incarnation: 1})
			w.member(team.MemberJoined, team.Member{AgentID: team.Leader, Incarnation: 2})
		}, "leader + leads again"},
		"another goal": {func(w *teller) {
			w.event(team.Leader, team.EventBody{Type: team.Compacted, Message: journal.NewGoal}, nil)
		}, ""},
		"tasks that were created at once come in any order": {func(w *teller) {
			w.create("T-1000", "Last")
			w.create("T-002", "Second")
			w.create("T-001", "First")
		}, "leader + T-001 First; T-002 Second; T-1000 Last"},
		"no room": {func(w *teller) {
			w.event(team.Leader, team.EventBody{Type: team.Compacted, Message: "it is full"}, nil)
		}, "leader made its conversation shorter"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTeller()
			tt.entries(w)
			lines := told(render.Options{Zone: time.UTC}, w.entries)
			last := ""
			if n := len(lines); n > 0 {
				last = strings.Join(strings.Fields(ansi.Strip(lines[n-1]))[1:], " ")
			}
			if last != tt.want {
				t.Errorf("told is %q, want %q", last, tt.want)
			}
		})
	}
	first := ansi.Strip(told(render.Options{Zone: time.UTC, Dated: true}, aDay())[0])
	if first != "— "+noon.Format(time.DateOnly) {
		t.Errorf("the first line is %q, not the day", first)
	}
}

// Tasks and members that were there before count as they stand.
func TestKnow(t *testing.T) {
	s := render.New(render.Options{Traits: runtime.Traits})
	s.Know([]team.Member{{AgentID: "coder-1", State: team.Joined}, {AgentID: "coder-2", State: team.Stopped}},
		[]team.Task{{ID: "T-001", Status: team.Completed}, {ID: "T-002", Status: team.InProgress, Assignee: "coder-1", UpdatedAt: noon}},
		func(id team.TaskID) bool { return id != "T-001" })
	if got, want := ansi.Strip(s.Foot(noon.Add(time.Minute), noon, 80)), "0/1 done · coder-1 T-002 its model 1m00s · 1m00s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A colour that the roster gives out and the story does not know would show nothing.
func TestColoursOfEveryMember(t *testing.T) {
	for n := range 5 {
		if render.Ink(team.Colour(n)).Render("x") == "x" {
			t.Errorf("members in %s are told without a colour", team.Colour(n))
		}
	}
}

// What an agent read acts on nobody's terminal.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"写 🚀 für\tall":                                         "写 🚀 für all",
		"\x1b[2Jgone\r\x07":                                    "[2Jgone",
		"a\u202eb\u202c c\u2066d\u2069":                        "ab cd",
		"o\u200bn\u200de\u2028l\ufeffi\u00adne":                "oneline",
		"👩\u200d👧 ❤\ufe0f 👍🏽":                                  "👩👧 ❤ 👍",
		"e\u0301 a\u0300\u0301\u0302\u0303\u0304\u0305b\u0300": "e\u0301 a\u0300\u0301\u0302b\u0300",
	} {
		if got := render.Printable(in); got != want {
			t.Errorf("Printable(%q) = %q, want %q", in, got, want)
		}
	}
}

// Of a tool that is not known, such as one of another program, the call and its result are told.
func TestUnknownTool(t *testing.T) {
	w := newTeller()
	w.calls("coder-1", "mcp__far__look", `{"path":"a.txt"}`, "seen")
	w.calls("coder-1", "get_task", `{"task_id":"T-001"}`, "hidden")
	text := ansi.Strip(strings.Join(told(render.Options{Zone: time.UTC}, w.entries), "\n"))
	if !strings.Contains(text, "· mcp__far__look a.txt") || !strings.Contains(text, "seen") || strings.Contains(text, "hidden") {
		t.Errorf("told:\n%s", text)
	}
}
