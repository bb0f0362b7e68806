package board_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/subject"
	"agentteam/pkg/team"
)

// shown is a board as a Reader shows it.
type shown map[team.TaskID]team.Task

func (s shown) Task(id team.TaskID) team.Task { return s[id] }

func (s shown) Show(id team.TaskID, t team.Task) {
	if s[id] = t; t.Status == "" {
		delete(s, id)
	}
}

// What a feed makes of the board, step by step. "seq" is the intent of T-002 and T-003; of a
// task's entry "-" deletes it and "!" cannot be read.
func TestReader(t *testing.T) {
	for name, tt := range map[string]struct{ feed, want string }{
		"all of a call at once":           {"1 seq 2 3", "1; 1; 1; 1 2 3"},
		"the last key comes first":        {"seq 3 2", "; 3; 2 3"},
		"before its intent":               {"2 seq 3", "2; ; 2 3"},
		"the feed begins after the last":  {"3 2 seq", "3; 2 3; 2 3"},
		"the next intent ends the one":    {"seq 2 next", "; ; 2"},
		"the last cannot be read":         {"seq 2 !3", "; ; 2"},
		"the last was deleted":            {"seq 2 -3", "; ; 2"},
		"another of them was deleted":     {"seq 2 -2 3", "; ; ; 3"},
		"deleted and created later":       {"seq 2 3 -3", "; ; 2 3; 2"},
		"deleted before the feed began":   {"-3 2 seq", "; 2; 2"},
		"a sequence that cannot be read":  {"seq 2 !seq 3", "; ; ; 2 3"},
		"a sequence that was deleted too": {"seq 2 -seq 3", "; ; ; 2 3"},
	} {
		t.Run(name, func(t *testing.T) {
			var r board.Reader
			var got []string
			s := shown{}
			for i, word := range strings.Fields(tt.feed) {
				e := broker.Entry{Revision: uint64(i + 1), Deleted: strings.HasPrefix(word, "-")}
				var value any
				switch key := strings.TrimLeft(word, "-!"); key {
				case "seq":
					e.Key, value = subject.KeySequence, map[string]any{"v": team.Protocol, "next": 4, "intent": []team.Task{made(2, ""), made(3, "")}}
				case "next":
					e.Key, value = subject.KeySequence, map[string]any{"v": team.Protocol, "next": 5, "intent": []team.Task{made(4, "")}}
				default:
					var n int
					if _, err := fmt.Sscan(key, &n); err != nil {
						t.Fatal(err)
					}
					e.Key, value = subject.KeyTask(team.MakeTaskID(n)), made(n, "")
				}
				bad := strings.HasPrefix(word, "!")
				if e.Value, _ = json.Marshal(value); bad {
					e.Value = []byte("{")
				}
				if err := r.Take(e, s); (err != nil) != bad {
					t.Errorf("%s: %v", word, err)
				}
				var on []string
				for id := range s {
					on = append(on, fmt.Sprint(id.Number()))
				}
				slices.Sort(on)
				got = append(got, strings.Join(on, " "))
			}
			if got := strings.Join(got, "; "); got != tt.want {
				t.Errorf("the board is %q, want %q", got, tt.want)
			}
		})
	}
}
