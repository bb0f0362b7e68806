package state_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/store/feed"
	"agentteam/pkg/store/feed/state"
	"agentteam/pkg/team"
)

// words are the pieces among changes in a few words: ( begins a text, ) ends it.
func words(changes []state.Change) string {
	var all []string
	for _, c := range changes {
		p, ok := c.(state.Chunk)
		switch {
		case !ok:
		case p.Kind == state.Begin:
			all = append(all, "("+p.MessageID)
		case p.Kind == state.More:
			all = append(all, fmt.Sprintf("%q", p.Text))
		default:
			all = append(all, p.MessageID+")")
		}
	}
	return strings.Join(all, " ")
}

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// piece is a piece of a text that a writes.
func piece(t *state.Team, run, id string, offset int, text string) []state.Change {
	return t.Write(team.Delta{AgentID: "a", RunID: run, MessageID: id, Offset: offset, Text: text}, noon)
}

// entry is an entry of a's.
func entry(t *state.Team, run string, b team.EventBody) []state.Change {
	return t.Apply(feed.Entry{Time: noon, Event: team.Event{AgentID: "a", RunID: run, Event: b}})
}

func begins(t *state.Team, run string) []state.Change {
	return entry(t, run, team.EventBody{Type: team.RunStarted})
}

func ends(t *state.Team, run string) []state.Change {
	return entry(t, run, team.EventBody{Type: team.RunFinished})
}

func stores(t *state.Team, run, id, text string) []state.Change {
	return entry(t, run, team.EventBody{Type: team.TextChunk, MessageID: id, Delta: text})
}

func TestTexts(t *testing.T) {
	type step = func(*state.Team) []state.Change
	steps := func(s ...step) []step { return s }
	delta := func(id string, offset int, text string) step {
		return func(x *state.Team) []state.Change { return piece(x, "", id, offset, text) }
	}
	stored := func(id, text string) step {
		return func(x *state.Team) []state.Change { return stores(x, "", id, text) }
	}
	cut := func(x *state.Team) []state.Change { return ends(x, "") }
	for name, tt := range map[string]struct {
		steps []step
		want  string
	}{
		"stored only":                  {steps(stored("1", "abc")), `(1 "abc" 1)`},
		"empty":                        {steps(stored("1", "")), `(1 1)`},
		"written, then stored":         {steps(delta("1", 0, "ab"), delta("1", 2, "c"), stored("1", "abcd")), `(1 "ab" "c" "d" 1)`},
		"all was written":              {steps(delta("1", 0, "abc"), stored("1", "abc")), `(1 "abc" 1)`},
		"a piece is lost":              {steps(delta("1", 0, "a"), delta("1", 2, "c"), stored("1", "abcd")), `(1 "a" "bcd" 1)`},
		"a piece comes twice":          {steps(delta("1", 0, "ab"), delta("1", 0, "ab"), delta("1", 2, "c"), stored("1", "abc")), `(1 "ab" "c" 1)`},
		"joined in the middle":         {steps(delta("1", 5, "x"), stored("1", "12345x")), `(1 "12345x" 1)`},
		"a try anew, the same words":   {steps(delta("1", 0, "abc"), delta("1", 0, "ab"), delta("1", 2, "cd"), stored("1", "abcd")), `(1 "abc" "d" 1)`},
		"a try anew, other words":      {steps(delta("1", 0, "abc"), delta("1", 0, "xy"), stored("1", "xyz")), `(1 "abc" 1) (1-again "xyz" 1-again)`},
		"a piece after the stored one": {steps(stored("2", "abc"), delta("2", 0, "a"), delta("1", 0, "old"), delta("3", 0, "n")), `(2 "abc" 2) (3 "n"`},
		"the run ends":                 {steps(delta("1", 0, "ab"), cut, cut), `(1 "ab" 1)`},
		"another text begins":          {steps(delta("1", 0, "ab"), delta("2", 0, "c"), stored("1", "abc")), `(1 "ab" "c" 1) (2 "c"`},
		"two are ahead of the feed":    {steps(delta("1", 0, "ab"), delta("2", 0, "c"), delta("2", 1, "d"), delta("3", 0, "e"), stored("1", "abc"), stored("2", "cde"), stored("3", "ef")), `(1 "ab" "c" 1) (2 "cd" "e" 2) (3 "e" "f" 3)`},
		"one that is never stored":     {steps(delta("1", 0, "ab"), delta("2", 0, "c"), stored("2", "cd"), delta("3", 0, "e")), `(1 "ab" 1) (2 "cd" 2) (3 "e"`},
		"the text before is late":      {steps(delta("2", 0, "c"), stored("1", "ab"), delta("2", 1, "d"), stored("2", "cd")), `(2 "c" 2) (1 "ab" 1) (2-again "cd" 2-again)`},
		"both are late":                {steps(delta("1", 0, "a"), delta("2", 0, "c"), stored("1", "ab"), stored("2", "cd")), `(1 "a" "b" 1) (2 "c" "d" 2)`},
		"cut, and then stored":         {steps(delta("1", 0, "a"), cut, stored("1", "ab")), `(1 "a" 1) (1-again "ab" 1-again)`},
		"another text is stored":       {steps(delta("1", 0, "ab"), stored("2", "c")), `(1 "ab" 1) (2 "c" 2)`},
	} {
		t.Run(name, func(t *testing.T) {
			x := state.New()
			var all []state.Change
			for _, step := range tt.steps {
				all = append(all, step(x)...)
			}
			if got := words(all); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestTextsOfSeveral: agents write at the same time, and none is mixed up with another.
func TestTextsOfSeveral(t *testing.T) {
	x := state.New()
	for _, a := range []team.AgentID{"b", "a"} {
		x.Apply(feed.Entry{Event: team.Event{AgentID: a, RunID: "r-" + string(a), Event: team.EventBody{Type: team.RunStarted}}})
		changes := x.Write(team.Delta{AgentID: a, MessageID: "1-" + string(a), RunID: "r-" + string(a), Text: "hello"}, noon)
		if slices.ContainsFunc(changes, func(c state.Change) bool {
			p, ok := c.(state.Chunk)
			return !ok || p.AgentID != a || p.RunID != "r-"+string(a)
		}) {
			t.Errorf("pieces of %s are %+v", a, changes)
		}
	}
	if got := words(x.Close()); got != "1-a) 1-b)" {
		t.Errorf("Close = %s", got)
	}
}

// TestTextsOfARunNeverTold: of a run of which a reader is never told, one text is held at most.
func TestTextsOfARunNeverTold(t *testing.T) {
	x := state.New()
	for try := range 100 { // such as those of a model that fails again and again
		for offset, letter := range "abc" {
			text := string(letter)
			if offset == 0 {
				text = fmt.Sprint(try % 10)
			}
			piece(x, "r", "1", offset, text)
		}
	}
	if got := words(begins(x, "r")); got != `(1 "9bc"` {
		t.Errorf("with its run: %s", got)
	}
}

// TestTextsBeforeTheirRun: what is written may come sooner than the entry that tells of its
// run, and waits for it.
func TestTextsBeforeTheirRun(t *testing.T) {
	x := state.New()
	if got := words(append(piece(x, "r1", "1", 0, "ab"), piece(x, "r1", "1", 2, "c")...)); got != "" {
		t.Errorf("before its run: %s", got)
	}
	if got := words(begins(x, "r1")); got != `(1 "abc"` {
		t.Errorf("with its run: %s", got)
	}
	if got := words(ends(x, "r1")); got != `1)` {
		t.Errorf("at its end: %s", got)
	}
	piece(x, "r2", "2", 0, "x")
	if got := words(stores(x, "r2", "2", "xy")); got != `(2 "xy" 2)` { // of a reader who came in the middle of the run
		t.Errorf("stored: %s", got)
	}
	if got := words(append(begins(x, "r2"), piece(x, "r2", "3", 0, "z")...)); got != `(3 "z"` {
		t.Errorf("the next: %s", got)
	}
}

// TestTextsOfTheNextRun: a run may be ahead of the entry that ends the one before, or begin
// after one that nothing has ended.
func TestTextsOfTheNextRun(t *testing.T) {
	x := state.New()
	begins(x, "r1")
	all := piece(x, "r1", "1", 0, "ab")
	all = append(all, piece(x, "r2", "2", 0, "c")...)
	all = append(all, ends(x, "r1")...)
	all = append(all, piece(x, "r1", "1", 2, "late")...)
	all = append(all, begins(x, "r2")...)
	all = append(all, piece(x, "r3", "3", 0, "d")...)
	all = append(all, begins(x, "r3")...) // the process of r2 has died
	if got := words(all); got != `(1 "ab" 1) (2 "c" 2) (3 "d"` {
		t.Errorf("got %s", got)
	}
}

// TestTextsAsInTheirComment: the table in the comment on texts is what happens.
func TestTextsAsInTheirComment(t *testing.T) {
	x := state.New()
	for i, tt := range []struct {
		changes func() []state.Change
		want    string
	}{
		{func() []state.Change { return begins(x, "r1") }, ""},
		{func() []state.Change { return piece(x, "r1", "m1", 0, "ab") }, `(m1 "ab"`},
		{func() []state.Change { return piece(x, "r1", "m1", 2, "c") }, `"c"`},
		{func() []state.Change { return piece(x, "r1", "m2", 0, "x") }, ""},
		{func() []state.Change { return stores(x, "r1", "m1", "abcd") }, `"d" m1) (m2 "x"`},
		{func() []state.Change { return piece(x, "r2", "m3", 0, "q") }, ""},
		{func() []state.Change { return ends(x, "r1") }, "m2)"},
		{func() []state.Change { return stores(x, "r1", "m2", "xyz") }, `(m2-again "xyz" m2-again)`},
		{func() []state.Change { return begins(x, "r2") }, `(m3 "q"`},
		{func() []state.Change { return stores(x, "r2", "m3", "q") }, `m3)`},
		{func() []state.Change { return piece(x, "r2", "m4", 0, "abc") }, `(m4 "abc"`},
		{func() []state.Change { return piece(x, "r2", "m4", 5, "f") }, ""},
		{func() []state.Change { return stores(x, "r2", "m4", "abcdef") }, `"def" m4)`},
		{func() []state.Change { return piece(x, "r2", "m5", 0, "abc") }, `(m5 "abc"`},
		{func() []state.Change { return piece(x, "r2", "m5", 0, "x") }, ""},
		{func() []state.Change { return stores(x, "r2", "m5", "xyz") }, `m5) (m5-again "xyz" m5-again)`},
		{func() []state.Change { return piece(x, "r2", "m5", 0, "abc") }, ""},
	} {
		if got := words(tt.changes()); got != tt.want {
			t.Errorf("step %d: %s, want %s", i+1, got, tt.want)
		}
	}
}
