package board_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// Whatever stands under a task's key is a task or a clear error, never a panic. A
// task that is read and written again is the same, also in fields that this program
// does not know.
func FuzzDecode(f *testing.F) {
	whole, err := json.Marshal(team.NewTask{Title: "任务 🚀", Description: "so"}.Task("T-001", "leader", time.Unix(0, 0).UTC()))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(bytes.Replace(whole, []byte(`{"v":2`), []byte(`{"unknown":{"a":[1]},"v":2`), 1))
	for _, s := range []string{"", "null", "{}", "[]", `{"v":2}`, `{"v":3,"id":"T-001"}`, `{"v":2,"id":"T-001","status":"nonsense"}`, `{"v":2,"id":"../x"}`,
		`{"v":2,"dependencies":["T-001",7]}`, `{"v":2,"priority":1e99}`, `{"v":2,"claimed_at":"never"}`, `{"v":2,"V":7}`, `{"v":2,"title":"` + "\xff" + `"}`, `{"v":2`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := board.Decode(broker.Entry{Key: "task.T-001", Value: data, Revision: 7})
		if err != nil {
			if team.CodeOf(err) != team.InvalidState {
				t.Errorf("%q: %v has code %q", data, err, team.CodeOf(err))
			}
			return
		}
		if first.V != team.Protocol || first.Revision != 7 || first.ID != "T-001" || !first.Status.Valid() {
			t.Errorf("%q is read as %+v", data, first)
		}
		once, err := codec.Encode(first, first.Kept)
		if err != nil {
			t.Fatalf("%q is read and cannot be written: %v", data, err)
		}
		second, err := board.Decode(broker.Entry{Key: "task.T-001", Value: once, Revision: 7})
		if err != nil {
			t.Fatalf("%q is written as %q and then: %v", data, once, err)
		}
		if twice, err := codec.Encode(second, second.Kept); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%q is written as %q, then as %q, %v", data, once, twice, err)
		}
	})
}

func FuzzDecodeSequence(f *testing.F) {
	for _, s := range []string{"", "null", "{}", `{"v":2,"next":3,"intent":[{"v":2,"id":"T-001"},{"v":2,"id":"T-002"}]}`, `{"intent":[null]}`, `{"intent":7}`, `{"next":-1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := board.DecodeSequence(broker.Entry{Key: "seq.task", Value: data})
		if err != nil && team.CodeOf(err) != team.InvalidState {
			t.Errorf("%q: %v has code %q", data, err, team.CodeOf(err))
		}
		if err == nil && s.Next < 0 {
			t.Errorf("%q is read as %+v", data, s)
		}
	})
}
