package team_test

import (
	"strings"
	"testing"

	"agentteam/pkg/team"
)

func TestMessageValidate(t *testing.T) {
	yes := true
	for name, tt := range map[string]struct {
		m  team.Message
		ok bool
	}{
		"text":               {team.Message{Type: team.MsgMessage, Content: "你好 🚀\nsecond line"}, true},
		"at the limit":       {team.Message{Type: team.MsgMessage, Content: strings.Repeat("x", 1<<20)}, true},
		"past the limit":     {team.Message{Type: team.MsgMessage, Content: strings.Repeat("x", 1<<20+1)}, false},
		"empty":              {team.Message{Type: team.MsgMessage, Content: " \n"}, false},
		"empty broadcast":    {team.Message{Type: team.MsgBroadcast}, false},
		"empty goal":         {team.Message{Type: team.MsgUser}, false},
		"empty request":      {team.Message{Type: team.MsgShutdownRequest, RequestID: "r"}, true},
		"request of no id":   {team.Message{Type: team.MsgPlanRequest, Content: "x"}, false},
		"approving request":  {team.Message{Type: team.MsgShutdownRequest, RequestID: "r", Approve: &yes}, false},
		"response":           {team.Message{Type: team.MsgPlanResponse, RequestID: "r", Approve: &yes}, true},
		"response to none":   {team.Message{Type: team.MsgShutdownResponse, Approve: &yes}, false},
		"undecided response": {team.Message{Type: team.MsgShutdownResponse, RequestID: "r"}, false},
		"long id":            {team.Message{Type: team.MsgShutdownRequest, RequestID: strings.Repeat("r", team.MaxTitleBytes+1)}, false},
		"message with an id": {team.Message{Type: team.MsgMessage, Content: "x", RequestID: "r"}, false},
		"approving message":  {team.Message{Type: team.MsgMessage, Content: "x", Approve: &yes}, false},
		"control":            {team.Message{Type: team.MsgMessage, Content: "a\x1b[2Jb"}, false},
		"not UTF-8":          {team.Message{Type: team.MsgMessage, Content: "a\xc3"}, false},
		"summary too long":   {team.Message{Type: team.MsgMessage, Content: "x", Summary: strings.Repeat("x", team.MaxTitleBytes+1)}, false},
		"choices":            {question("red", "blue"), true},
		"ten choices":        {question(strings.Split("abcdefghij", "")...), true},
		"one choice":         {question("red"), false},
		"eleven choices":     {question(strings.Split("abcdefghijk", "")...), false},
		"same choices":       {question("red", "blue", " Red "), false},
		"empty choice":       {question("red", " "), false},
		"choice of lines":    {question("red", "dark\nblue"), false},
		"long choice":        {question("red", strings.Repeat("x", 201)), false},
	} {
		err := tt.m.Validate()
		if tt.ok && err != nil || !tt.ok && team.CodeOf(err) != team.InvalidArgument {
			t.Errorf("%s: %v, want ok = %v", name, err, tt.ok)
		}
	}
}

// What a response lacks is named, all of it.
func TestMissingOfResponse(t *testing.T) {
	err := team.Message{Type: team.MsgShutdownResponse}.Validate()
	if err == nil || !strings.Contains(err.Error(), "request_id and approve") {
		t.Errorf("a response of nothing: %v", err)
	}
}

func question(choices ...string) team.Message {
	return team.Message{Type: team.MsgMessage, Content: "Which colour?", Choices: choices}
}

func TestWakes(t *testing.T) {
	if (team.Message{Type: team.MsgIdle}).Wakes() || !(team.Message{Type: team.MsgMessage}).Wakes() {
		t.Error("all mail wakes its reader but an idle notification")
	}
}

func TestSummarize(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		" \n\t\n":                 "",
		"\n  first line \nsecond": "first line",
		strings.Repeat("字", 80):   strings.Repeat("字", 80),
		strings.Repeat("🚀", 81):   strings.Repeat("🚀", 79) + "…",
	} {
		if got := team.Summarize(text); got != want {
			t.Errorf("Summarize(%.20q) = %q, want %q", text, got, want)
		}
	}
}

func TestRoles(t *testing.T) {
	tm := team.Team{Roles: map[string]team.Role{"coder": {Name: "coder"}, "explorer": {Name: "explorer"}}}
	for name, want := range map[string]string{"coder": "coder", "Explore": "explorer", "general-purpose": "coder"} {
		if r, err := tm.Role(name); r.Name != want || err != nil {
			t.Errorf("Role(%s) = %s, %v", name, r.Name, err)
		}
	}
	if _, err := tm.Role("Plan"); team.CodeOf(err) != team.NotFound || !strings.Contains(team.HintOf(err), "coder, explorer") {
		t.Errorf("unknown role: %v, hint %q", err, team.HintOf(err))
	}
	for _, r := range []team.Role{{Name: "Bad Name", Description: "x"}, {Name: "x"}, {Name: "x", Description: "x", Instructions: "\x00"}} {
		if err := r.Validate(); team.CodeOf(err) != team.InvalidArgument {
			t.Errorf("%+v: %v, want invalid_argument", r, err)
		}
	}
}
