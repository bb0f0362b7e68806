package team

import (
	"errors"
	"strings"
	"testing"
)

func TestDialect(t *testing.T) {
	for _, d := range []Dialect{"", Native, Claude} {
		if err := d.Validate(); err != nil {
			t.Error(err)
		}
	}
	err := Dialect("klingon").Validate()
	if !errors.Is(err, InvalidArgument) || !strings.Contains(err.Error(), "klingon") || !strings.Contains(HintOf(err), "native or claude") {
		t.Errorf("%v (%s)", err, HintOf(err))
	}
	blue := Team{Policies: Policies{Dialect: Claude}}
	for _, tt := range []struct{ got, want Dialect }{
		{Team{}.Dialect(Role{}), Native}, {blue.Dialect(Role{}), Claude}, {blue.Dialect(Role{Dialect: Native}), Native}, {Team{}.Dialect(Role{Dialect: Claude}), Claude},
	} {
		if tt.got != tt.want {
			t.Errorf("the dialect is %s, want %s", tt.got, tt.want)
		}
	}
	for _, tt := range []struct{ native, in, claude string }{
		{"read_file", "read_file", "Read"}, {"ask_user", "ask_user", "ask_user"}, {"claim_task", "", ""}, {"create_task", "", "TaskCreate"}, {"create_tasks", "create_tasks", "TeamFanout"}, {"TeamCollect", "", "TeamCollect"},
	} {
		if in, claude := Native.Tool(tt.native), Claude.Tool(tt.native); in != tt.in || claude != tt.claude {
			t.Errorf("%s is told as %q and %q, want %q and %q", tt.native, in, claude, tt.in, tt.claude)
		}
	}
	for name, want := range map[string]string{"TaskUpdate": "update_task", "update_task": "update_task", "WebSearch": "WebSearch"} {
		if got := NativeTool(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	for call, want := range map[[2]string]string{
		{"Task", `{"team_name":"red","subagent_type":"coder"}`}: "spawn_teammate", {"Task", `{"tasks":[]}`}: "spawn_teammate", {"Task", `{`}: "spawn_teammate",
		{"Task", `{"prompt":"look","team_name":""}`}: "subagent", {"Task", `{"prompt":"look"}`}: "subagent", {"Agent", `{}`}: "subagent",
		{"spawn_teammate", `{"role":"coder"}`}: "spawn_teammate", {"Bash", `{}`}: "bash",
	} {
		if got := ToolOf(call[0], call[1]); got != want {
			t.Errorf("%s %s is a call of %s, want %s", call[0], call[1], got, want)
		}
	}
	for metadata, want := range map[string]string{"": "", "[]": "", `{"activeForm":7}`: "", `{"activeForm":"Writing\nit"}`: "Writing it"} {
		if got := (Task{Metadata: []byte(metadata)}).Doing(); got != want {
			t.Errorf("%s: doing %q, want %q", metadata, got, want)
		}
	}
	text := "Use create_tasks, not my_create_tasks; grep and broadcast; then finish_team."
	if got := Native.Say(text); got != text {
		t.Errorf("native: %s", got)
	}
	if got, want := Claude.Say(text), "Use TeamFanout, not my_create_tasks; grep and broadcast; then TeamDelete."; got != want {
		t.Errorf("claude: %s, want %s", got, want)
	}
}
