package screen

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/cockroachdb/datadriven"

	"agentteam/pkg/client"
	"agentteam/pkg/store/feed"
	"agentteam/pkg/store/feed/state/timeline"
	"agentteam/pkg/team"
)

// began is when the goal of the tests was set.
var began = time.Date(2026, 11, 27, 14, 0, 0, 0, time.UTC)

func at(minutes int) time.Time   { return began.Add(time.Duration(minutes) * time.Minute) }
func ptr(t time.Time) *time.Time { return &t }

// stage is the cluster of a test: it notes what it is asked, and does what it is to do at once.
type stage struct {
	asked []string
	fault error // comes of what it is to do
}

func (s *stage) note(format string, args ...any) tea.Cmd {
	s.asked = append(s.asked, fmt.Sprintf(format, args...))
	return nil
}
func (s *stage) teams(session) tea.Cmd                   { return s.note("list the teams") }
func (s *stage) enter(_ session, id team.TeamID) tea.Cmd { return s.note("enter %s", id) }
func (s *stage) again()                                  { s.note("read it again") }
func (s *stage) follow(a team.AgentID)                   { s.note("follow %q", a) }
func (s *stage) life(id team.TaskID) tea.Cmd             { return s.note("read the life of %s", id) }
func (s *stage) whole(id string) tea.Cmd                 { return s.note("read %s", id) }
func (s *stage) chart() tea.Cmd                          { return s.note("read the timeline") }
func (s *stage) do(d action) tea.Cmd {
	s.note("do: %s", d)
	return func() tea.Msg { return done{action: d, err: s.fault} }
}

// String is the deed in the order of its parts.
func (d action) String() string {
	parts := []string{string(d.kind)}
	for _, s := range []string{string(d.agent), string(d.task), d.id, string(d.scope)} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if d.urgent {
		parts = append(parts, "urgent")
	}
	if d.text != "" {
		parts = append(parts, fmt.Sprintf("%q", d.text))
	}
	return strings.Join(parts, " ")
}

// play is a screen with its cluster.
type play struct {
	*model
	*stage
	quit bool
}

func newPlay(width, height int) *play {
	s := &stage{}
	p := &play{model: newModel(s, nil, time.UTC, Leave{}), stage: s}
	p.now = at(10)
	p.send(tea.WindowSizeMsg{Width: width, Height: height})
	return p
}

func (p *play) send(msg tea.Msg) {
	_, cmd := p.Update(msg)
	if cmd == nil {
		return
	}
	switch msg.(type) {
	case tick:
		return
	case tea.WindowSizeMsg:
		p.Update(resized(p.sizes))
		return
	}
	switch msg := cmd().(type) {
	case tea.QuitMsg:
		p.quit = true
	case done:
		p.send(msg)
	}
}

var keys = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift},
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "shift+up": {Code: tea.KeyUp, Mod: tea.ModShift}, "shift+down": {Code: tea.KeyDown, Mod: tea.ModShift},
	"pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "backspace": {Code: tea.KeyBackspace}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
}

// press types keys by their names, and texts in quotes.
func (p *play) press(t *testing.T, words ...string) {
	for _, w := range words {
		if k, ok := keys[w]; ok {
			p.send(k)
			continue
		}
		if text, err := strconv.Unquote(w); err == nil {
			w = text
		}
		for _, r := range w {
			p.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// draw is the screen without colours, or with each change of style in braces.
func (p *play) draw(t *testing.T, coloured bool) string {
	t.Helper()
	content := p.View().Content
	all := strings.Split(content, "\n")
	if len(all) != p.height {
		t.Errorf("%d lines on a screen of %d", len(all), p.height)
	}
	for i, l := range all {
		if n := ansi.StringWidth(l); n > p.width {
			t.Errorf("a line takes %d of %d cells: %q", n, p.width, l)
		}
		if !coloured {
			all[i] = strings.TrimRight(ansi.Strip(l), " ")
		}
	}
	content = strings.Join(all, "\n")
	content = styles.ReplaceAllString(content, "{$1}")
	return regexp.MustCompile(`\n{3,}`).ReplaceAllString(content, "\n\n") + "\n"
}

var styles = regexp.MustCompile(`\x1b\[([0-9;]*)m`)

// entry is one of the feed.
func entry(minutes int, who team.AgentID, b team.EventBody, value any) feed.Entry {
	if value != nil {
		b.Value, _ = json.Marshal(value)
	}
	return feed.Entry{Time: at(minutes), Event: team.Event{AgentID: who, RunID: string(who), Event: b}}
}

func member(name team.AgentID, role, color string) team.Member {
	return team.Member{AgentID: name, Role: role, Color: color, State: team.Joined, Incarnation: 1, Backend: team.Pool}
}

func task(n int, title string, status team.TaskStatus) team.Task {
	return team.Task{ID: team.MakeTaskID(n), Title: title, Status: status, CreatedAt: began, UpdatedAt: began}
}

// show sets the stage: a team of five that ports a parser, in which four things wait.
func (p *play) show() {
	members := []team.Member{member("leader", "leader", ""), member("ann", "coder", "cyan"), member("bob", "coder", "yellow"), member("eve", "reviewer", "magenta"), member("zoe", "coder", "green")}
	tasks := []team.Task{task(1, "Port the tokens", team.InProgress), task(2, "Write down the 今天 grammar 🚀", team.InProgress),
		task(3, "Test both", team.Pending), task(4, "Set up the build", team.Completed), task(5, "Measure the old parser", team.Failed), task(6, "Announce it", team.Pending), task(7, "From before", team.Completed)}
	tasks[0].Assignee, tasks[0].ClaimedAt, tasks[0].Priority = "ann", ptr(at(2)), 2
	tasks[1].Assignee, tasks[1].ClaimedAt = "bob", ptr(at(4))
	tasks[2].Dependencies = []team.TaskID{"T-001", "T-002"}
	tasks[3].Assignee, tasks[3].ResultSummary = "zoe", "make builds it"
	tasks[4].Reason = "there is no machine for it"
	tasks[5].Role = "reviewer"
	p.toTeam("red")
	record := team.Team{ID: "red", Status: team.Active, Goal: "Port the parser to Go, and keep its tests", GoalNumber: 1}
	p.send(entered{session: 1, id: "red", record: record, members: members, tasks: tasks, counts: func(id team.TaskID) bool { return id != "T-007" }, begun: began})
	question := team.Message{ID: "Q1", Type: team.MsgMessage, From: "ann", To: team.UserAgent, Content: "Shall I keep the names of all the tokens, as they are 今天?", Choices: []string{"keep them", "rename them"}, TaskID: "T-001", AwaitReply: true}
	letter := team.Message{ID: "L1", Type: team.MsgMessage, From: "zoe", To: team.UserAgent, Content: "The build is set up.\nIt takes 3 s."}
	look := snapshot{record: record,
		messages: []client.StoredMessage{{Message: letter, StoredAt: at(5), Deliveries: []client.Delivery{{AgentID: team.UserAgent, Status: team.MailDelivered}}}, {Message: question, StoredAt: at(7), Open: true}},
		plans: []client.Plan{{Approval: team.Approval{ID: "P1", AgentID: "bob", Task: "T-002", Approver: team.ByHuman, Plan: "1. Read the old grammar.\n2. Write each rule.", Status: team.PlanPending, CreatedAt: at(8)}},
			{Approval: team.Approval{ID: "C1", Kind: team.OfPermission, AgentID: "eve", Approver: team.ByHuman, Status: team.PlanPending, CreatedAt: at(9),
				Call: &team.AskedCall{Tool: "bash", Arguments: `{"command":"git push origin main"}`, Dir: "/w", Why: "the rule Bash(git push *) asks", Rule: "Bash(git push origin main)"}}}},
		agents: []client.Agent{{Member: members[0], State: team.Idle, Turn: 4, Context: 4900, Window: 128000},
			{Member: members[1], State: team.WaitingUser, Task: "T-001", Turn: 12, Since: ptr(at(7)), Awaits: team.UserAgent, Asked: "Q1", Context: 42000, Window: 128000},
			{Member: members[2], State: team.WaitingApproval, Task: "T-002", Turn: 3, Since: ptr(at(8)), Awaits: team.UserAgent, Asked: "P1"},
			{Member: members[3], State: team.WaitingApproval, Turn: 7, Since: ptr(at(9)), Awaits: team.UserAgent, Asked: "C1", Context: 9000},
			{Member: members[4], State: team.Running, Turn: 21, Tool: "bash", Since: ptr(at(9))}},
	}
	p.send(looked{1, look})
	p.send(billed{1, bill{total: "1.25 USD", by: map[team.AgentID]string{"leader": "0.10 USD", "ann": "0.75 USD", "zoe": "0.40 USD"}}})
	p.send(newEntries{session: 1, at: at(10), entries: []feed.Entry{
		entry(1, "leader", team.EventBody{Type: team.TextChunk, MessageID: "m1", Delta: "I split the work: the tokens, the grammar, and the tests that need both."}, nil),
		entry(2, "ann", team.EventBody{Type: team.ToolCallChunk, MessageID: "m2", ToolCallID: "c1", ToolCallName: "bash", Delta: `{"command":"go test ./..."}`}, nil),
		entry(3, "ann", team.EventBody{Type: team.ToolCallResult, MessageID: "m3", ToolCallID: "c1", Content: "ok  tokens\nok  tree\n"}, nil),
		entry(6, "zoe", team.EventBody{Type: team.TextChunk, MessageID: "m4", Delta: "The build takes 3 s.\nNow the tests."}, nil),
		entry(7, "ann", team.EventBody{Type: team.MailSent}, question),
	}})
}

// TestScreens plays what people press, and compares what they see. The commands of its files:
//
//	open [width=N] [height=N] [teams]  a new screen, of the team or of the list of teams
//	press                              the keys that stand there, by name or as texts in quotes
//	show [width=N] [height=N] [colour] what is seen, on another screen too
func TestScreens(t *testing.T) {
	datadriven.Walk(t, "testdata/screens", func(t *testing.T, path string) {
		p := newPlay(80, 24)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			width, height := p.width, p.height
			if d.HasArg("width") {
				d.ScanArgs(t, "width", &width)
			}
			if d.HasArg("height") {
				d.ScanArgs(t, "height", &height)
			}
			switch d.Cmd {
			case "open":
				p = newPlay(width, height)
				if d.HasArg("teams") {
					p.send(listed{teams: someTeams()})
				} else {
					p.show()
				}
			case "press":
				p.asked = nil
				p.press(t, words(d.Input)...)
				if slices.Contains(p.asked, "read the timeline") {
					p.send(charted{session: 1, timeline: someTimeline()})
				}
				text := strings.Join(p.asked, "\n")
				if p.quit {
					text += "quit"
				}
				if p.prompt != nil || p.notice != "" {
					text += "\nbelow:"
					for _, l := range p.footer() {
						text += " " + strings.TrimRight(ansi.Strip(l), " ") + "\n"
					}
				}
				return strings.TrimPrefix(strings.TrimSpace(text)+"\n", "\n")
			}
			p.send(tea.WindowSizeMsg{Width: width, Height: height})
			return p.draw(t, d.HasArg("colour"))
		})
	})
}

// someTimeline is that of three members of the team, in the ten minutes of the goal.
func someTimeline() timeline.Timeline {
	span := func(from, to int, kind timeline.Kind, wait team.WaitFor) timeline.Span {
		return timeline.Span{Kind: kind, For: wait, From: at(from), To: at(to)}
	}
	return timeline.Timeline{From: began, To: at(10), Sentence: "Two tasks in a row took 8m of 10m; another member would not have helped.",
		Lanes: []timeline.Lane{
			{AgentID: "leader", Spans: []timeline.Span{span(0, 1, timeline.Model, ""), span(1, 10, timeline.Idle, "")}, Seconds: map[timeline.Kind]float64{timeline.Model: 60, timeline.Idle: 540}},
			{AgentID: "ann", Color: "cyan", Spans: []timeline.Span{span(1, 2, timeline.Model, ""), span(2, 7, timeline.Tool, ""), span(7, 10, timeline.Wait, team.ForPerson)},
				Seconds: map[timeline.Kind]float64{timeline.Model: 60, timeline.Tool: 300, timeline.Wait: 180}},
			{AgentID: "bob", Color: "yellow", Spans: []timeline.Span{span(4, 5, timeline.Unknown, ""), span(5, 8, timeline.Model, ""), span(8, 10, timeline.Wait, team.ForPlan)},
				Seconds: map[timeline.Kind]float64{timeline.Unknown: 60, timeline.Model: 180, timeline.Wait: 120}},
		},
		Tasks: []timeline.Bar{{Task: "T-004", Title: "Set up the build", AgentID: "zoe", Status: team.Completed, From: at(1), To: at(2)},
			{Task: "T-001", Title: "Port the tokens", AgentID: "ann", Status: team.InProgress, From: at(2), To: at(10)},
			{Task: "T-002", Title: "Write down the 今天 grammar 🚀", AgentID: "bob", Status: team.InProgress, From: at(4), To: at(10)}},
		Edges:    []team.Edge{{From: "T-004", To: "T-001"}},
		Critical: []timeline.Stage{{Task: "T-004"}, {Task: "T-001"}},
	}
}

// words are keys and quoted texts.
func words(input string) []string {
	return regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(input, -1)
}

func someTeams() []client.TeamStatus {
	return []client.TeamStatus{
		{ID: "blue", Status: team.TeamFinished, Goal: "Count the pages", Tasks: team.Counts{team.Completed: 3}},
		{ID: "green", Status: team.Active, Goal: "Find out why the tests are slow", Tasks: team.Counts{team.Completed: 1, team.InProgress: 4}, Members: map[team.MemberState]int{team.Running: 4, team.Idle: 1}},
		{ID: "red", Status: team.Active, Goal: "Port the parser to Go", Tasks: team.Counts{team.Pending: 3}, Members: map[team.MemberState]int{team.WaitingUser: 1}, Waiting: 1},
	}
}
