package screen

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"agentteam/pkg/client"
	"agentteam/pkg/store/feed"
	"agentteam/pkg/team"
)

// hostile is a text that would act on the terminal, if it were more than text, and takes much
// room.
var hostile = "\x1b[2J\x1b]0;owned\a\r\x9b31m\u202eeltit\u202c \u2066x\u2069 zero\u200bwidth\u200d\ufeff Z" + strings.Repeat("\u0301", 50) +
	" 👩\u200d👩\u200d👧 ❤\ufe0f 👍🏽 今天" + strings.Repeat("宽", 400) + "\n\t" + strings.Repeat("x", 1<<20) + "\nlast"

// Whatever others write is text on each page and at each width: it takes the lines and cells that
// it is given, and no more.
func TestHostileTexts(t *testing.T) {
	p := newPlay(80, 24)
	p.show()
	r := p.room
	for i := range r.snapshot.agents {
		a := &r.snapshot.agents[i]
		a.Trouble, a.Tool, a.LastError, a.Role, a.Model = hostile, hostile, hostile, hostile, hostile
		a.Jobs = []team.Job{{ID: hostile, Type: hostile, About: hostile, Ended: hostile}}
		r.cost.by[a.AgentID] = "1"
	}
	for i := range r.snapshot.messages {
		r.snapshot.messages[i].Content, r.snapshot.messages[i].Choices = hostile, []string{hostile, "b"}
	}
	record, _ := head(hostile, team.MaxTextBytes) // none may hold more
	r.snapshot.plans[0].Plan, r.snapshot.plans[1].Call.Arguments, r.snapshot.plans[1].Call.Why = record, hostile[:team.MaxAskedBytes], record[:2000]
	r.snapshot.record.Goal, r.snapshot.record.Reason = hostile, hostile
	bad := task(1, record[:team.MaxTitleBytes], team.Failed)
	bad.Description, bad.Reason, bad.Check, bad.DeliverablePath, bad.Role = record, record, record, record, record
	p.send(newEntries{session: 1, at: at(10), entries: []feed.Entry{
		entry(8, "ann", team.EventBody{Type: team.TaskFailed}, bad),
		entry(8, "ann", team.EventBody{Type: team.TextChunk, MessageID: "h1", Delta: hostile}, nil),
		entry(8, "ann", team.EventBody{Type: team.ToolCallChunk, MessageID: "h2", ToolCallID: "h", ToolCallName: hostile, Delta: hostile}, nil),
		entry(8, "ann", team.EventBody{Type: team.ToolCallResult, MessageID: "h3", ToolCallID: "h", Content: hostile}, nil),
		entry(8, "ann", team.EventBody{Type: team.RunError, Message: hostile}, nil),
		entry(8, "ann", team.EventBody{Type: team.MailSent}, team.Message{ID: "h4", From: "ann", To: team.UserAgent, Content: hostile}),
	}, deltas: []team.Delta{{AgentID: "zoe", MessageID: "h5", Text: hostile}}})
	p.send(lived{task: "T-001", steps: []string{hostile}})
	p.send(done{text: hostile})
	pages := [][]string{{"1"}, {"2"}, {"enter"}, {"3"}, {"v"}, {"4"}, {"enter"}, {"esc", "down", "enter"}, {"esc", "down", "enter"}, {"esc", "down", "enter"}, {"5"}, {"1", "enter"}, {"m"}, {"esc", "s"}, {"n", "?"}, {"esc", "4", "g", "down", "down", "w"}, {"n", "y"}}
	for _, keys := range pages {
		p.press(t, keys...)
		p.send(reply{session: 1, agent: r.agent, entries: []feed.Entry{entry(8, "ann", team.EventBody{Type: team.TextChunk, MessageID: "h1", Delta: hostile}, nil)}})
		for _, size := range []tea.WindowSizeMsg{{Width: 20, Height: 8}, {Width: 40, Height: 24}, {Width: 120, Height: 24}} {
			width := size.Width
			p.send(size)
			p.draw(t, false)
			for l := range strings.SplitSeq(styles.ReplaceAllString(p.View().Content, ""), "\n") {
				for _, c := range l {
					if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) {
						t.Fatalf("after %v at %d cells there is %U in %q", keys, width, c, ansi.Truncate(l, 200, "…"))
					}
				}
			}
		}
	}
}

// Who reads further up stays there while more comes; at the end one sees what comes.
func TestReadingStaysWhereItIs(t *testing.T) {
	p := newPlay(80, 14)
	p.show()
	say := func(from, to int) {
		var all []feed.Entry
		for n := from; n < to; n++ {
			all = append(all, entry(9, "zoe", team.EventBody{Type: team.TextChunk, MessageID: fmt.Sprint("n", n), Delta: fmt.Sprintf("number %d", n)}, nil))
		}
		p.send(newEntries{session: 1, entries: all, at: at(10)})
	}
	body := func() string { return strings.Join(strings.Split(p.draw(t, false), "\n")[5:13], "\n") }
	say(0, 100)
	p.press(t, "3")
	if !strings.Contains(body(), "number 99") {
		t.Errorf("the stream does not end with its end:\n%s", body())
	}
	p.press(t, "pgup", "pgup")
	before := body()
	say(100, 130)
	if after := body(); after != before || !strings.Contains(before, "number 8") {
		t.Errorf("what was read has moved:\n%s\nbefore:\n%s", after, before)
	}
	p.press(t, "G")
	if !strings.Contains(body(), "number 129") {
		t.Errorf("G does not go to the end:\n%s", body())
	}
	say(130, 130+mostEntries+2*dropEntries)
	if n := len(p.room.transcript.entries); n > mostEntries+dropEntries+1 {
		t.Errorf("%d entries are held", n)
	}
}

// Also while what is old goes, many entries at the same time. What has gone is known all the same when
// the lines are made again: who has joined, with its colour.
func TestWhatIsOldGoes(t *testing.T) {
	p := newPlay(80, 14)
	p.show()
	n := 0
	say := func(count int) {
		var all []feed.Entry
		for range count {
			n++
			all = append(all, entry(9, "kim", team.EventBody{Type: team.TextChunk, MessageID: fmt.Sprint("n", n), Delta: fmt.Sprintf("number %d", n)}, nil))
		}
		p.send(newEntries{session: 1, entries: all, at: at(10)})
	}
	p.send(newEntries{session: 1, entries: []feed.Entry{entry(8, "kim", team.EventBody{Type: team.MemberJoined}, member("kim", "coder", "magenta"))}})
	p.press(t, "3")
	for len(p.room.transcript.entries) < mostEntries+dropEntries {
		say(1)
	}
	for _, filter := range []string{"", "number"} {
		p.page().filter = filter
		p.press(t, "pgup", "pgup")
		body := func() string { return strings.Join(strings.Split(p.draw(t, true), "\n")[5:13], "\n") }
		before := body()
		if say(dropEntries + 1); body() != before {
			t.Errorf("what was read has moved:\n%s\nbefore:\n%s", body(), before)
		}
		p.send(tea.WindowSizeMsg{Width: 100, Height: 14})
		p.send(tea.WindowSizeMsg{Width: 80, Height: 14})
		if body() != before || !strings.Contains(before, "{35}kim{}") {
			t.Errorf("made again it is\n%s\nbefore:\n%s", body(), before)
		}
		p.press(t, "G")
	}
}

// A task that is shown has its history read again when it has another step, and so have what is shown
// of a team with another goal: the task and the conversation.
func TestShownIsReadAgain(t *testing.T) {
	p := newPlay(80, 24)
	p.show()
	p.press(t, "2", "enter")
	p.send(lived{session: 1, task: "T-001", steps: []string{"ann took it"}})
	p.asked = nil
	p.send(newEntries{session: 1, at: at(10), entries: []feed.Entry{entry(10, "ann", team.EventBody{Type: team.TaskFailed}, task(1, "Port the tokens", team.Failed)), entry(10, "ann", team.EventBody{Type: team.TaskFailed}, task(2, "Other", team.Failed))}})
	if !slices.Equal(p.asked, []string{"read the life of T-001"}) || !strings.Contains(p.draw(t, false), "ann took it") {
		t.Errorf("after another step it asks for %q and shows\n%s", p.asked, p.draw(t, false))
	}
	p.toAgent("bob")
	p.asked = nil
	p.toTeam("red")
	p.send(entered{session: p.visit, id: "red", record: p.room.record, members: p.room.members})
	if !slices.Equal(p.asked, []string{"enter red", `follow "bob"`, "read the life of T-001"}) {
		t.Errorf("with another goal it asks for %q", p.asked)
	}
}

// Of a window that is pulled, lines are made for the last size.
func TestResizing(t *testing.T) {
	p := newPlay(80, 24)
	p.show()
	for _, width := range []int{90, 100} {
		p.Update(tea.WindowSizeMsg{Width: width, Height: 24})
	}
	if p.Update(resized(p.sizes - 1)); p.room.transcript.o.Width != 80 {
		t.Errorf("the lines are made at %d cells while the window is pulled", p.room.transcript.o.Width)
	}
	if p.Update(resized(p.sizes)); p.room.transcript.o.Width != 100 {
		t.Errorf("the lines are made at %d cells", p.room.transcript.o.Width)
	}
}

// What belongs to a team that was left is not taken for one of the team that is shown. Another
// goal begins the story anew, and a team that is gone is said to be.
func TestVisits(t *testing.T) {
	p := newPlay(80, 24)
	p.show()
	p.send(newEntries{session: 0, entries: []feed.Entry{entry(9, "zoe", team.EventBody{Type: team.TextChunk, Delta: "of another team"}, nil)}})
	p.press(t, "3")
	if strings.Contains(p.draw(t, false), "of another team") {
		t.Error("what another team has said is shown")
	}
	l := p.room.snapshot
	l.record.GoalNumber++
	p.asked = nil
	p.send(looked{1, l})
	if !slices.Equal(p.asked, []string{"enter red"}) {
		t.Errorf("with another goal it asks for %q", p.asked)
	}
	p.send(entered{session: 2, id: "red", record: l.record})
	p.send(looked{2, snapshot{err: team.Errorf(team.NotFound, "there is no team red")}})
	if text := p.draw(t, false); !strings.Contains(text, "there is no team red") {
		t.Errorf("of a team that was deleted it shows\n%s", text)
	}
	p.send(linked(false))
	if text := p.draw(t, false); !strings.Contains(text, "no connection") {
		t.Errorf("without a connection it shows\n%s", text)
	}
	p.send(linked(true))
	if text := p.draw(t, false); strings.Contains(text, "no connection") {
		t.Errorf("with a connection it shows\n%s", text)
	}
	p.toTeams()
	p.send(entered{session: 2, id: "red", record: l.record})
	if p.room != nil {
		t.Error("a team is shown that comes after it was left")
	}
	p.toTeam("gone")
	p.send(entered{session: 4, id: "gone", err: team.Errorf(team.NotFound, "there is no team gone")})
	if text := p.draw(t, false); !strings.HasPrefix(text, "teams") || !strings.Contains(text, "there is no team gone") {
		t.Errorf("of a team that cannot be opened it shows\n%s", text)
	}
}

// The end of a goal is said, and one who leaves before it is asked where that ends something.
func TestLeaving(t *testing.T) {
	p := newPlay(80, 24)
	p.leave = Leave{Ask: "the cluster ends; leave?", Ends: true}
	p.show()
	p.press(t, "q", "n")
	if p.quit {
		t.Fatal("it was left without a yes")
	}
	l := p.room.snapshot
	l.record.Status, l.record.Summary = team.TeamFinished, "It is ported."
	p.send(looked{1, l})
	if p.press(t, "q", "n"); p.quit {
		t.Fatal("another team has ended, and q leaves")
	}
	p.send(ended{})
	if text := p.draw(t, false); !strings.Contains(text, "the goal has ended as finished: It is ported.") || !strings.Contains(text, "q shows the result") {
		t.Errorf("at the end it shows\n%s", text)
	}
	if p.press(t, "q"); !p.quit {
		t.Error("q does not leave a goal that has ended")
	}
}

// The conversation of the next agent comes by Shift and an arrow, from any page and around the
// end; a person's seat has none.
func TestNextAgent(t *testing.T) {
	p := newPlay(80, 24)
	p.show()
	p.room.snapshot.agents = append(p.room.snapshot.agents, client.Agent{Member: team.Member{AgentID: "carl", Backend: team.Person}})
	for _, step := range []struct{ key, want string }{{"shift+down", "bob"}, {"shift+up", "ann"}, {"shift+up", "leader"}, {"shift+up", "zoe"}, {"shift+down", "leader"}} {
		if p.press(t, step.key); p.room.agent != team.AgentID(step.want) {
			t.Errorf("after %s it reads %s, want %s", step.key, p.room.agent, step.want)
		}
	}
	if p.press(t, "esc"); p.room.agent != "" || len(p.over) != 0 {
		t.Errorf("after Esc it follows %q", p.room.agent)
	}
}

// The mouse is optional: its wheel moves, a click chooses, another one goes in, and names of pages
// can be clicked.
func TestPointer(t *testing.T) {
	p := newPlay(120, 24)
	p.show()
	if p.View().MouseMode != tea.MouseModeNone {
		t.Error("the mouse is taken from the terminal without being asked for")
	}
	if p.press(t, `":mouse"`, "enter"); p.View().MouseMode != tea.MouseModeCellMotion {
		t.Error(":mouse does not turn it on")
	}
	all := strings.Split(p.draw(t, false), "\n")
	click := func(text string) {
		for y, l := range all {
			if x := strings.Index(l, text); x >= 0 {
				p.send(tea.MouseClickMsg{X: ansi.StringWidth(l[:x]), Y: y, Button: tea.MouseLeft})
				return
			}
		}
		t.Fatalf("%q is not there", text)
	}
	if click("eve "); p.subject() != "eve" || len(p.over) > 0 {
		t.Errorf("a click chooses %q", p.subject())
	}
	if click("eve "); p.room.agent != "eve" {
		t.Errorf("another click goes to %q", p.room.agent)
	}
	for i, name := range []string{"Board", "Stream", "Mail", "Timeline"} {
		if click(name); p.tab != i+1 {
			t.Errorf("a click at %s goes to %s", name, tabNames[p.tab])
		}
		all = strings.Split(p.draw(t, false), "\n")
	}
	p.press(t, "1", "g")
	p.send(tea.WindowSizeMsg{Width: 120, Height: 10})
	p.draw(t, false)
	if p.send(tea.MouseClickMsg{X: 2, Y: 9, Button: tea.MouseLeft}); p.subject() != "ann" { // more members would follow
		t.Errorf("a click below the list chooses %s", p.subject())
	}
	if p.send(tea.MouseWheelMsg{Button: tea.MouseWheelDown}); p.subject() != "bob" {
		t.Errorf("the wheel chooses %q", p.subject())
	}
}

// What is to be read as a whole is not cut on a narrow screen: a task, where a call is made and why, and
// what the keys do.
func TestPagesAreWhole(t *testing.T) {
	for _, width := range []int{40, 60, 80} {
		p := newPlay(width, 200)
		p.show()
		long := strings.Repeat("word ", 40) + "END."
		whole := task(1, "Title "+long, team.InProgress)
		whole.Check, whole.DeliverablePath, whole.Role = "check "+long, "deliverable "+long, "role "+long
		p.send(newEntries{session: 1, at: at(10), entries: []feed.Entry{entry(8, "ann", team.EventBody{Type: team.TaskUpdated}, whole)}})
		call := p.room.snapshot.plans[1].Call
		call.Dir, call.Why = "/dir/"+long, "why "+long
		for i, keys := range [][]string{{`":task 1"`, "enter"}, {"4", "g", "down", "down", "enter"}, {"?"}} {
			p.press(t, keys...)
			_, text, _ := strings.Cut(p.draw(t, false), "───\n")
			if n := strings.Count(text, "END."); strings.Contains(text, "…") && i != 0 || n != []int{4, 2, 0}[i] {
				t.Errorf("after %v, %d ends are seen at %d cells:\n%s", keys, n, width, text)
			}
		}
		if p.press(t, "/"); p.prompt != nil || !p.failed {
			t.Error("help is filtered")
		}
	}
}

// While the teams cannot be read the last list stays, below the fault.
func TestTeamsStay(t *testing.T) {
	p := newPlay(80, 24)
	for teams, want := range map[int]bool{0: false, 3: true} {
		p.send(listed{teams: someTeams()[:teams]})
		p.send(listed{err: team.Errorf(team.Unavailable, "no answer")})
		if text := p.draw(t, false); strings.Contains(text, "Port the parser to Go") != want || !strings.Contains(text, "no answer") {
			t.Errorf("of %d teams it shows\n%s", teams, text)
		}
	}
	if p.send(listed{teams: someTeams()}); strings.Contains(p.draw(t, false), "no answer") {
		t.Error("the fault stays")
	}
}

// Who looks at the board sees which task waits to be in the line.
func TestMergingTask(t *testing.T) {
	p := newPlay(120, 30)
	p.show()
	v := p.room.board()[0].tasks[0]
	for _, want := range []string{"ann for 8m", "ann for 8m, merging"} {
		if got := p.room.standing(v, at(10)); got != want {
			t.Errorf("%s is shown as %q, want %q", v.ID, got, want)
		}
		for i, a := range p.room.snapshot.agents {
			if a.AgentID == v.Assignee {
				p.room.snapshot.agents[i].Task, p.room.snapshot.agents[i].WaitsFor = v.ID, team.ForMerge
			}
		}
	}
}

// A person's seat with a task to do stands among those whom a person is to look at; once its work only
// waits for the line, it does so no more, and says why.
func TestMergingSeat(t *testing.T) {
	p := newPlay(120, 24)
	p.show()
	carl := client.Agent{Member: team.Member{AgentID: "carl", Backend: team.Person}}
	carl.Task = "T-001"
	if says, first := p.room.why(carl, at(10)), urgency(carl); says != "a person works on it" || first != 0 {
		t.Errorf("at work it is %q, of urgency %d", says, first)
	}
	carl.WaitsFor = team.ForMerge
	if says, rank := p.room.why(carl, at(10)), urgency(carl); says != "its work waits to be in the line" || rank == 0 {
		t.Errorf("once its work is done it is %q, of urgency %d", says, rank)
	}
}
