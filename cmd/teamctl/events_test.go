package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func entryOf(t *testing.T, b team.EventBody, value any) client.Entry {
	t.Helper()
	if value != nil {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		b.Value = data
	}
	return client.Entry{Cursor: "c", Time: time.Now(), Event: team.Event{TeamID: "t", AgentID: "coder-1", Event: b}}
}

// What people see of each event: a line of teamctl events, and one of run or none.
func TestEventLines(t *testing.T) {
	mail := func(typ team.MessageType, to team.AgentID) team.Message {
		return team.Message{Type: typ, To: to, Content: "two\nlines"}
	}
	for name, tt := range map[string]struct {
		body        team.EventBody
		value       any
		events, run string
	}{
		"text":         {team.EventBody{Type: team.TextChunk, Delta: "a\nb"}, nil, "a b", "a\nb"},
		"call":         {team.EventBody{Type: team.ToolCallChunk, ToolCallName: "bash", Delta: "{}"}, nil, "→ bash {}", "→ bash {}"},
		"result":       {team.EventBody{Type: team.ToolCallResult, Content: "ok"}, nil, "← ok", "← ok"},
		"run begins":   {team.EventBody{Type: team.RunStarted}, nil, "began a run", ""},
		"run fails":    {team.EventBody{Type: team.RunError, Message: "why"}, nil, "! why", "! why"},
		"no turn":      {team.EventBody{Type: team.Retry, Message: "401: no key"}, nil, "! no turn: 401: no key", "! 401: no key"},
		"compaction":   {team.EventBody{Type: team.Compacted}, nil, "made its conversation shorter", "made its conversation shorter"},
		"mail":         {team.EventBody{Type: team.MailSent}, mail(team.MsgMessage, "user"), "→ user: two lines (message)", "→ user: two lines"},
		"broadcast":    {team.EventBody{Type: team.MailSent}, mail(team.MsgBroadcast, team.Everyone), "→ all: two lines (broadcast)", "→ all: two lines"},
		"notice":       {team.EventBody{Type: team.MailSent}, mail(team.MsgIdle, team.Leader), "→ leader: two lines (idle_notification)", ""},
		"task":         {team.EventBody{Type: team.TaskReleased}, team.Task{ID: "T-001", Title: "x", Reason: "r"}, "T-001 released: x (r)", ""},
		"member":       {team.EventBody{Type: team.MemberJoined}, team.Member{Role: "coder"}, "member joined coder", ""},
		"parked":       {team.EventBody{Type: team.MemberParked}, team.Member{Role: "coder", LastError: "401\nno key"}, "member parked coder 401 no key", "waits for its model: 401 no key"},
		"resumed":      {team.EventBody{Type: team.MemberResumed}, team.Member{Role: "coder"}, "member resumed coder", "has its model back"},
		"reset":        {team.EventBody{Type: team.Custom, Name: "reset"}, map[string]int{"n": 1}, `reset {"n":1}`, ""},
		"unknown kind": {team.EventBody{Type: "TASK_EATEN"}, nil, "TASK_EATEN", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := entryOf(t, tt.body, tt.value)
			text, aside := what(e)
			if got := strings.TrimSpace(text + aside); got != tt.events {
				t.Errorf("events prints %q, want %q", got, tt.events)
			}
			var out bytes.Buffer
			newStream(&out, func() map[team.AgentID]string { return nil }).show(e.Event)
			if got := strings.ReplaceAll(strings.TrimSpace(out.String()), "coder-1@t ", ""); got != tt.run {
				t.Errorf("run prints %q, want %q", got, tt.run)
			}
		})
	}
}

// A list of entries is a whole document in each format, with none, one and several.
func TestPastPrinter(t *testing.T) {
	for _, tt := range []struct {
		format format
		n      int
		want   string
	}{
		{asJSON, 0, "[]\n"}, {asYAML, 0, "[]\n"}, {asJSONL, 0, ""}, {asName, 0, ""}, {asTable, 0, ""},
		{asName, 2, "c\nc\n"},
	} {
		got := printed(t, tt.format, tt.n)
		if got != tt.want {
			t.Errorf("%s of %d prints %q, want %q", tt.format, tt.n, got, tt.want)
		}
	}
	for n := 1; n <= 3; n++ {
		var all []client.Entry
		if err := json.Unmarshal([]byte(printed(t, asJSON, n)), &all); err != nil || len(all) != n {
			t.Errorf("json of %d is read as %d, %v", n, len(all), err)
		}
		if got := printed(t, asYAML, n); strings.Count(got, "- cursor: c\n") != n || strings.Contains(got, "---") {
			t.Errorf("yaml of %d is %s", n, got)
		}
		if got := printed(t, asJSONL, n); strings.Count(got, "\n") != n || !strings.HasPrefix(got, `{"cursor":"c","time":`) {
			t.Errorf("jsonl of %d is %s", n, got)
		}
	}
}

func printed(t *testing.T, f format, n int) string {
	t.Helper()
	var out bytes.Buffer
	a := &app{out: &out, output: f}
	p := a.pastPrinter(func() map[team.AgentID]string { return nil })
	for range n {
		if err := p.entry(entryOf(t, team.EventBody{Type: team.RunStarted}, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
