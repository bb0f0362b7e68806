package team_test

import (
	"strings"
	"testing"

	"agentteam/pkg/team"
)

func TestMessageValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		m  team.Message
		ok bool
	}{
		"text":             {team.Message{Type: team.MsgMessage, Content: "你好 🚀\nsecond line"}, true},
		"at the limit":     {team.Message{Type: team.MsgMessage, Content: strings.Repeat("x", 64<<10)}, true},
		"past the limit":   {team.Message{Type: team.MsgMessage, Content: strings.Repeat("x", 64<<10+1)}, false},
		"empty":            {team.Message{Type: team.MsgMessage, Content: " \n"}, false},
		"empty broadcast":  {team.Message{Type: team.MsgBroadcast}, false},
		"empty goal":       {team.Message{Type: team.MsgUser}, false},
		"empty request":    {team.Message{Type: team.MsgShutdownRequest}, true},
		"control":          {team.Message{Type: team.MsgMessage, Content: "a\x1b[2Jb"}, false},
		"not UTF-8":        {team.Message{Type: team.MsgMessage, Content: "a\xc3"}, false},
		"summary too long": {team.Message{Type: team.MsgMessage, Content: "x", Summary: strings.Repeat("x", team.MaxTitleBytes+1)}, false},
	} {
		err := tt.m.Validate()
		if tt.ok && err != nil || !tt.ok && team.CodeOf(err) != team.InvalidArgument {
			t.Errorf("%s: %v, want ok = %v", name, err, tt.ok)
		}
	}
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
