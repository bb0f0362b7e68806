package codec_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// A record of a newer program goes through this one and comes out whole.
func TestFieldsOfNewerProgramsAreKept(t *testing.T) {
	stored := `{"v":2,"id":"T-001","title":"题 🚀","status":"pending","epoch":0,"shape":{"a":[1,2]},"x<y":"&"}`
	var task team.Task
	var err error
	if task.Kept, err = codec.Decode([]byte(stored), &task); err != nil {
		t.Fatal(err)
	}
	task.Title = "changed"
	data, err := codec.Encode(task, task.Kept)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	if got["title"] != "changed" || got["x<y"] != "&" || got["shape"].(map[string]any)["a"].([]any)[1] != 2.0 {
		t.Errorf("encoded as %s", data)
	}
	if task.Kept, err = codec.Decode([]byte(`{"v":2,"id":"T-001"}`), &task); err != nil || task.Kept != nil {
		t.Errorf("kept %v of a record without unknown fields, %v", task.Kept, err)
	}
}

// Programs in other languages, and those that print records, read what encoding/json
// would have written.
func TestIsTheUsualJSON(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	for _, record := range []any{
		team.Task{}, team.Heartbeat{}, team.Member{}, team.Team{},
		team.Task{ID: "T-001", Title: "<&>\u2028\xff", Dependencies: []team.TaskID{}, Metadata: json.RawMessage(`{"a": 1, "a": 2}`), ClaimedAt: &now},
		team.Heartbeat{AgentID: "coder-1", Epoch: 1, Begun: true, ProgressAt: now},
		team.Member{PID: 1, Claim: &team.SeatClaim{Task: "T-001"}, JoinedAt: now},
		team.Team{Roles: map[string]team.Role{"b": {Tools: []string{"x"}}, "a": {}}, FinishedAt: &now},
	} {
		got, err := codec.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		var gotValue, wantValue any
		if err := json.Unmarshal(got, &gotValue); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		if err := json.Unmarshal(want, &wantValue); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(gotValue, wantValue) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		read := reflect.New(reflect.TypeOf(record))
		if err := codec.Unmarshal(want, read.Interface()); err != nil {
			t.Errorf("%v: %s", err, want)
		}
		again, err := codec.Marshal(read.Interface())
		if err != nil {
			t.Fatal(err)
		}
		var againValue any
		if err := json.Unmarshal(again, &againValue); err != nil || !reflect.DeepEqual(againValue, wantValue) {
			t.Errorf("read and written again: %s, %v\nwant %s", again, err, want)
		}
	}
}

// Whatever bytes come: what is read of them is what encoding/json reads, what is
// written, and read again.
func FuzzDecode(f *testing.F) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	for _, task := range []team.Task{{}, {V: 1, ID: "T-001", Title: "<&>\u2028\xff", Dependencies: []team.TaskID{"T-002"}, Metadata: json.RawMessage(`{"a": 1}`), ClaimedAt: &now}} {
		data, err := json.Marshal(task)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"v":2,"title":"\ud83d\ude80","status":"pending","shape":{"a":[1,2]},"Title":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var read team.Task
		var err error
		if read.Kept, err = codec.Decode(data, &read); err != nil {
			return
		}
		if usual := (team.Task{}); !aliased(data) {
			if err := json.Unmarshal(data, &usual); err != nil {
				t.Fatalf("%q is read, but %v", data, err)
			}
			same := read
			same.Kept, same.Metadata, usual.Metadata = nil, compact(read.Metadata), compact(usual.Metadata)
			if !reflect.DeepEqual(same, usual) {
				t.Fatalf("%q is read as %+v, want %+v", data, same, usual)
			}
		}
		written, err := codec.Encode(&read, read.Kept)
		if err != nil || !json.Valid(data) || !json.Valid(written) {
			t.Fatalf("%q is written as %q, %v", data, written, err)
		}
		var again team.Task
		if again.Kept, err = codec.Decode(written, &again); err != nil {
			t.Fatalf("%q: %v", written, err)
		}
		read.Metadata, again.Metadata = compact(read.Metadata), compact(again.Metadata)
		for name := range read.Kept {
			read.Kept[name], again.Kept[name] = compact(read.Kept[name]), compact(again.Kept[name])
		}
		if !reflect.DeepEqual(again, read) {
			t.Fatalf("%q is read as %+v, and again as %+v", data, read, again)
		}
	})
}

// aliased reports whether a field's name differs from one of a task's by no more than
// its case, in which encoding/json takes it for that.
func aliased(data []byte) bool {
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		return false
	}
	for name := range all {
		for _, f := range reflect.VisibleFields(reflect.TypeFor[team.Task]()) {
			known, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != known && strings.EqualFold(name, known) {
				return true
			}
		}
	}
	return false
}

func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return nil
	}
	return b.Bytes()
}

// What only looks like a record is refused.
func TestRefuses(t *testing.T) {
	deep := `{"v":2,"shape":` + strings.Repeat("[", 5_000_000) + strings.Repeat("]", 5_000_000) + `}` // a stack would not hold it
	for _, data := range []string{``, `{`, `[]`, `{"v":2} x`, `{"v":"1"}`, `{"v":2,"title":7}`, deep,
		`{"v":2,"epoch":73000000000000000000}`, `{"v":2,"epoch":18446744073709551616}`, `{"v":9223372036854775808}`, `{"v":-9223372036854775809}`,
		`{"v":2,"title":"12345678901234567890","epoch":-1}`} {
		var task team.Task
		if kept, err := codec.Decode([]byte(data), &task); err == nil {
			t.Errorf("%.40s is read as %+v, %v", data, task, kept)
		}
	}
	for _, data := range []string{`{"v":2,"epoch":18446744073709551615}`, `{"v":2,"title":"73000000000000000000"}`} {
		var task team.Task
		if _, err := codec.Decode([]byte(data), &task); err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
	inner := json.RawMessage(strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)) // which would fit alone
	if data, err := codec.Marshal(team.Task{Metadata: inner}); err == nil {
		t.Errorf("%d bytes were written that nobody could read", len(data))
	}
	if data, err := codec.Encode(team.Task{}, team.Extra{"shape": inner}); err == nil {
		t.Errorf("%d bytes were written with fields that nobody could read", len(data))
	}
	wide := `{"v":2,"metadata":[{}` + strings.Repeat(",{}", 20_000) + `]}`
	var task team.Task
	if _, err := codec.Decode([]byte(wide), &task); err != nil || len(task.Metadata) < 60_000 {
		t.Errorf("a wide record: %v", err)
	}
}
