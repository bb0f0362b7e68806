package screen

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// What is asked about one team is not done in another, into which the screen has gone meanwhile.
// With another goal of the same team it stays.
func TestPromptsBelongToATeam(t *testing.T) {
	p := newPlay(80, 24)
	p.show()
	p.toTeam("red")
	p.press(t, "s")
	p.send(entered{session: p.visit, id: "red", record: p.room.record, members: p.room.members})
	if p.prompt == nil {
		t.Error("what was asked is gone with another goal")
	}
	p.toTeam("blue")
	p.send(entered{session: p.visit, id: "blue", record: team.Team{ID: "blue", Status: team.Active}})
	if p.asked = nil; p.prompt != nil {
		t.Errorf("of another team it asks %q", p.prompt.ask)
	}
	if p.press(t, "y"); len(p.asked) > 0 {
		t.Errorf("in another team it does %q", p.asked)
	}
}

// What was typed for a deed that fails can be mended, and what was sent comes again by ↑. Meanwhile
// it is said that it is under way.
func TestWhatWasTypedStays(t *testing.T) {
	p := newPlay(80, 24)
	p.show()
	p.fault = team.Errorf(team.Unavailable, "no answer")
	p.press(t, "m", `"keep the names"`, "enter")
	if p.prompt == nil || p.input.Value() != "keep the names" || !strings.Contains(p.draw(t, false), "no answer\nto ann:\n> keep the names") {
		t.Errorf("after a fault it shows\n%s", p.draw(t, false))
	}
	p.fault = nil
	p.press(t, `" 今天"`, "enter")
	if is := p.asked[len(p.asked)-1]; is != `do: write ann "keep the names 今天"` || p.prompt != nil {
		t.Errorf("mended it is %s", is)
	}
	p.press(t, "m", `"draft"`, "up", "up")
	if is := p.input.Value(); is != "keep the names" {
		t.Errorf("↑ brings %q", is)
	}
	if p.press(t, "down", "down"); p.input.Value() != "draft" {
		t.Errorf("↓ brings %q", p.input.Value())
	}
	p.press(t, "esc")
	p.model.do(action{kind: writes, agent: "ann", text: "x"}) // of which nothing has come yet
	if text := p.draw(t, false); !strings.Contains(text, "writing to ann …") {
		t.Errorf("while it is done the screen shows\n%s", text)
	}
	p.fault = team.Errorf(team.Unavailable, "no answer")
	p.press(t, ":", `"msg ann stop"`, "enter")
	if p.prompt == nil || p.input.Value() != "msg ann stop" {
		t.Error("a command that failed is gone")
	}
}

// A text may have lines: those that are pasted, and those that Alt+Enter begins. A command has one.
func TestTextsHaveLines(t *testing.T) {
	p := newPlay(40, 24)
	p.show()
	p.press(t, "m")
	p.send(tea.PasteMsg{Content: "first\r\nsecond \x1b[2Jline\r\n"})
	p.send(tea.KeyPressMsg{Code: tea.KeyEnter, Mod: tea.ModAlt})
	p.press(t, `"`+strings.Repeat("long ", 20)+`"`)
	p.send(tea.WindowSizeMsg{Width: 60, Height: 20})
	if v := p.View(); v.Cursor == nil || v.Cursor.Y != 19 || v.Cursor.X != 2+100-55 {
		t.Errorf("the cursor is at %+v:\n%s", v.Cursor, p.draw(t, false))
	}
	p.draw(t, false)
	p.press(t, "enter")
	if is, want := p.asked[len(p.asked)-1], `do: write ann "first\nsecond [2Jline\n\n`; !strings.HasPrefix(is, want) {
		t.Errorf("it does %s", is)
	}
	p.press(t, ":")
	p.send(tea.PasteMsg{Content: "add\none"})
	p.send(tea.KeyPressMsg{Code: 'j', Mod: tea.ModCtrl})
	if is := p.input.Value(); is != "add one" {
		t.Errorf("the command is %q", is)
	}
}

// A rule that is longer than the screen is read on the page above the question, which keeps its end.
func TestLongRule(t *testing.T) {
	for _, width := range []int{40, 80} {
		p := newPlay(width, 24)
		p.show()
		call := p.room.snapshot.plans[1].Call
		call.Rule = "Bash(" + strings.Repeat("echo word && ", 200) + "rm -rf / --\u202eoops)"
		p.press(t, "4", "g", "down", "down", "w")
		text := p.draw(t, false)
		if !strings.Contains(text, "more lines") && !strings.Contains(text, "lines more") || !strings.HasSuffix(strings.TrimSpace(text), "y/n") {
			t.Errorf("it asks\n%s", text)
		}
		seen := text
		for range 20 {
			p.press(t, "pgdown")
			seen += p.draw(t, false)
		}
		if !strings.Contains(strings.Join(strings.Fields(seen), " "), "rm -rf / --⟨U+202E⟩oops)") {
			t.Errorf("the end of the rule is not to be seen:\n%s", seen)
		}
	}
}

// A question, a plan or a call that is longer than its line in a list is seen before the answer.
func TestDecidedIsSeen(t *testing.T) {
	for _, key := range []string{"y", "n"} {
		p := newPlay(80, 24)
		p.show()
		p.room.snapshot.plans[0].Plan = "Begin.\n" + strings.Repeat("And so on.\n", 5) + "Then drop the tables."
		p.press(t, "1", "g", "down", key)
		if text := p.draw(t, false); !strings.Contains(text, "Then drop the tables.") {
			t.Errorf("%s asks below\n%s", key, text)
		}
	}
}

// A command whose cluster is in its process is not put to sleep: the team would be, too.
func TestSleep(t *testing.T) {
	ctrlZ := tea.KeyPressMsg{Code: 'z', Mod: tea.ModCtrl}
	p := newPlay(80, 24)
	p.show()
	if _, cmd := p.Update(ctrlZ); cmd == nil || cmd() != tea.Suspend() {
		t.Error("Ctrl-Z does not leave for a while")
	}
	p.leave = Leave{Ask: "leave?", Ends: true}
	if _, cmd := p.Update(ctrlZ); cmd != nil || !strings.Contains(p.draw(t, false), "teamctl up -d") {
		t.Errorf("with the cluster Ctrl-Z shows\n%s", p.draw(t, false))
	}
	if text := strings.Join(p.helpLines(), "\n"); strings.Contains(text, "Ctrl-Z") || strings.Contains(text, "the team goes on") {
		t.Error("help does not know where the cluster is")
	}
}

// A terminal sends Esc and a key behind it as that key with Alt. A key that does nothing says so.
func TestKeysBehindEsc(t *testing.T) {
	p := newPlay(80, 24)
	p.show()
	p.press(t, "enter")
	if p.send(tea.KeyPressMsg{Code: tea.KeyEscape, Mod: tea.ModAlt}); len(p.over) > 0 {
		t.Error("Esc twice does not go back")
	}
	if p.press(t, "x"); !strings.Contains(p.draw(t, false), "x does nothing here; ? lists the keys") {
		t.Errorf("an unknown key shows\n%s", p.draw(t, false))
	}
	if p.send(tea.KeyPressMsg{Code: 'c', Mod: tea.ModAlt | tea.ModCtrl}); !p.quit {
		t.Error("Ctrl-C behind Esc does not leave")
	}
}

// While something is asked, the mouse chooses nothing behind it. Its left button does.
func TestMouseWhileAsked(t *testing.T) {
	p := newPlay(80, 24)
	p.show()
	click := tea.MouseClickMsg{X: 3, Y: 8, Button: tea.MouseLeft}
	p.press(t, "s")
	if p.send(click); p.subject() != "ann" {
		t.Errorf("while it is asked about ann a click chooses %s", p.subject())
	}
	p.press(t, "n")
	if p.send(tea.MouseClickMsg{X: 3, Y: 8, Button: tea.MouseRight}); p.subject() != "ann" {
		t.Errorf("the right button chooses %s", p.subject())
	}
	if p.send(click); p.subject() != "bob" {
		t.Errorf("the left button chooses %s", p.subject())
	}
}

// Leaving is asked while the goal is under way that the screen is shown for, whatever team is
// shown; not after it.
func TestLeavingAnotherTeam(t *testing.T) {
	p := newPlay(80, 24)
	p.leave = Leave{Ask: "leave?", Ends: true}
	p.show()
	l := p.room.snapshot
	l.record.Status = team.TeamStopped
	p.send(looked{1, l})
	for _, where := range []func(){func() {}, func() { p.toTeams() }} {
		where()
		if p.press(t, "q"); p.quit || p.prompt == nil {
			t.Fatal("q ends the cluster of a goal that is under way")
		}
		p.press(t, "n")
	}
	p.send(ended{})
	if p.press(t, "q"); !p.quit {
		t.Error("q asks after the end of the goal")
	}
}

// What is read repeatedly and was not to be had is old on the screen, and is read when the
// connection is back. The timeline keeps its last picture.
func TestOldIsSaid(t *testing.T) {
	p := newPlay(80, 24)
	p.show()
	p.press(t, "5")
	p.send(charted{session: 1, timeline: someTimeline(), took: 0})
	gone := team.Errorf(team.Unavailable, "NATS is away")
	p.send(looked{1, snapshot{err: gone}})
	p.send(tick(at(11)))
	if text := p.draw(t, false); !strings.Contains(text, "as of 1m ago") {
		t.Errorf("of what is old it shows\n%s", text)
	}
	p.send(charted{session: 1, err: gone, took: 20 * 1e9})
	if text := p.draw(t, false); !strings.Contains(text, "NATS is away") || !strings.Contains(text, "as of 1m ago") || !strings.Contains(text, "leader ██") {
		t.Errorf("of a timeline that is old it shows\n%s", text)
	}
	p.asked = nil
	p.send(tick(at(11).Add(chartEvery)))
	if !slices.Equal(p.asked, []string{"read the timeline"}) {
		t.Errorf("after a fault it asks for %q", p.asked)
	}
	p.send(charted{session: 1, err: gone})
	p.asked = nil
	p.send(linked(true))
	p.send(tick(p.now))
	if !slices.Equal(p.asked, []string{"read it again", "read the timeline"}) {
		t.Errorf("with a connection it asks for %q", p.asked)
	}
	p.send(looked{1, p.room.snapshot})
	p.send(charted{session: 1, timeline: someTimeline()})
	if text := p.draw(t, false); strings.Contains(text, "as of") {
		t.Errorf("of what is new it shows\n%s", text)
	}
}

// A call of which no rule is known is not allowed always by a command either.
func TestAlwaysNeedsARule(t *testing.T) {
	p := newPlay(80, 24)
	p.show()
	p.room.snapshot.plans[1].Call.Rule = ""
	p.asked = nil
	if p.press(t, `":approve C1 always"`, "enter"); len(p.asked) > 0 || p.prompt != nil {
		t.Errorf("without a rule it does %q", p.asked)
	}
	p.room.snapshot.plans = slices.DeleteFunc(p.room.snapshot.plans, func(c client.Plan) bool { return c.ID == "C1" })
	if p.press(t, `":approve C1 always"`, "enter"); len(p.asked) > 0 {
		t.Errorf("of a call that is gone it does %q", p.asked)
	}
}
