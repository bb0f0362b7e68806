package stream_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/api/stream"
	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

// words are pieces in a few words: ( begins a text, ) ends it.
func words(pieces []stream.Piece) string {
	var all []string
	for _, p := range pieces {
		switch p.Kind {
		case stream.Begin:
			all = append(all, "("+p.MessageID)
		case stream.More:
			all = append(all, fmt.Sprintf("%q", p.Text))
		case stream.End:
			all = append(all, p.MessageID+")")
		}
	}
	return strings.Join(all, " ")
}

func TestTexts(t *testing.T) {
	delta := func(id string, offset int, text string) func(*stream.Texts) []stream.Piece {
		return func(x *stream.Texts) []stream.Piece {
			return x.Delta(team.Delta{AgentID: "a", MessageID: id, Offset: offset, Text: text})
		}
	}
	stored := func(id, text string) func(*stream.Texts) []stream.Piece {
		return func(x *stream.Texts) []stream.Piece {
			return x.Stored(client.Entry{Event: team.Event{AgentID: "a", Event: team.EventBody{Type: team.TextChunk, MessageID: id, Delta: text}}})
		}
	}
	cut := func(x *stream.Texts) []stream.Piece { return x.Cut("a") }
	for name, tt := range map[string]struct {
		steps []func(*stream.Texts) []stream.Piece
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
		"two are ahead of the feed":    {steps(delta("1", 0, "ab"), delta("2", 0, "c"), delta("2", 1, "d"), delta("3", 0, "e"), stored("1", "abc"), stored("2", "cde"), stored("3", "ef")), `(1 "ab" "c" 1) (2 "c" "d" "e" 2) (3 "e" "f" 3)`},
		"one that is never stored":     {steps(delta("1", 0, "ab"), delta("2", 0, "c"), stored("2", "cd"), delta("3", 0, "e")), `(1 "ab" 1) (2 "cd" 2) (3 "e"`},
		"the text before is late":      {steps(delta("2", 0, "c"), stored("1", "ab"), delta("2", 1, "d"), stored("2", "cd")), `(2 "c" 2) (1 "ab" 1) (2-again "cd" 2-again)`},
		"both are late":                {steps(delta("1", 0, "a"), delta("2", 0, "c"), stored("1", "ab"), stored("2", "cd")), `(1 "a" "b" 1) (2 "c" "d" 2)`},
		"cut, and then stored":         {steps(delta("1", 0, "a"), cut, stored("1", "ab")), `(1 "a" 1) (1-again "ab" 1-again)`},
		"another text is stored":       {steps(delta("1", 0, "ab"), stored("2", "c")), `(1 "ab" 1) (2 "c" 2)`},
	} {
		t.Run(name, func(t *testing.T) {
			var x stream.Texts
			var all []stream.Piece
			for _, step := range tt.steps {
				all = append(all, step(&x)...)
			}
			if got := words(all); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func steps(s ...func(*stream.Texts) []stream.Piece) []func(*stream.Texts) []stream.Piece { return s }

// TestTextsOfSeveral: agents write at the same time, and none is mixed up with another.
func TestTextsOfSeveral(t *testing.T) {
	var x stream.Texts
	for _, a := range []team.AgentID{"b", "a"} {
		x.Run(a, "r-"+string(a))
		pieces := x.Delta(team.Delta{AgentID: a, MessageID: "1-" + string(a), RunID: "r-" + string(a), Text: "hello"})
		if slices.ContainsFunc(pieces, func(p stream.Piece) bool { return p.AgentID != a || p.RunID != "r-"+string(a) }) {
			t.Errorf("pieces of %s are %+v", a, pieces)
		}
	}
	if got := words(x.CutAll()); got != "1-a) 1-b)" {
		t.Errorf("CutAll = %s", got)
	}
}

// TestTextsOfARunNeverTold: of a run of which a reader is never told, one text is held at most.
func TestTextsOfARunNeverTold(t *testing.T) {
	var x stream.Texts
	for try := range 100 { // such as those of a model that fails again and again
		for offset, letter := range "abc" {
			text := string(letter)
			if offset == 0 {
				text = fmt.Sprint(try % 10)
			}
			x.Delta(team.Delta{AgentID: "a", RunID: "r", MessageID: "1", Offset: offset, Text: text})
		}
	}
	if got := words(x.Run("a", "r")); got != `(1 "9" "b" "c"` {
		t.Errorf("with its run: %s", got)
	}
}

// TestTextsBeforeTheirRun: what is written may come sooner than the entry that tells of its
// run, and waits for it.
func TestTextsBeforeTheirRun(t *testing.T) {
	var x stream.Texts
	delta := func(run, id string, offset int, text string) []stream.Piece {
		return x.Delta(team.Delta{AgentID: "a", RunID: run, MessageID: id, Offset: offset, Text: text})
	}
	if got := words(append(delta("r1", "1", 0, "ab"), delta("r1", "1", 2, "c")...)); got != "" {
		t.Errorf("before its run: %s", got)
	}
	if got := words(x.Run("a", "r1")); got != `(1 "ab" "c"` {
		t.Errorf("with its run: %s", got)
	}
	if got := words(x.Cut("a")); got != `1)` {
		t.Errorf("at its end: %s", got)
	}
	delta("r2", "2", 0, "x")
	entry := client.Entry{Event: team.Event{AgentID: "a", RunID: "r2", Event: team.EventBody{MessageID: "2", Delta: "xy"}}}
	if got := words(x.Stored(entry)); got != `(2 "xy" 2)` { // of a reader who came in the middle of the run
		t.Errorf("stored: %s", got)
	}
	if got := words(append(x.Run("a", "r2"), delta("r2", "3", 0, "z")...)); got != `(3 "z"` {
		t.Errorf("the next: %s", got)
	}
}

// TestTextsOfTheNextRun: a run may be ahead of the entry that ends the one before, or begin
// after one that nothing has ended.
func TestTextsOfTheNextRun(t *testing.T) {
	var x stream.Texts
	delta := func(run, id string, offset int, text string) []stream.Piece {
		return x.Delta(team.Delta{AgentID: "a", RunID: run, MessageID: id, Offset: offset, Text: text})
	}
	x.Run("a", "r1")
	all := delta("r1", "1", 0, "ab")
	all = append(all, delta("r2", "2", 0, "c")...)
	all = append(all, x.Cut("a")...)
	all = append(all, delta("r1", "1", 2, "late")...)
	all = append(all, x.Run("a", "r2")...)
	all = append(all, delta("r3", "3", 0, "d")...)
	all = append(all, x.Run("a", "r3")...) // the process of r2 has died
	if got := words(all); got != `(1 "ab" 1) (2 "c" 2) (3 "d"` {
		t.Errorf("got %s", got)
	}
}
