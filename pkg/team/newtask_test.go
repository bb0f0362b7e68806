package team_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/team"
)

func TestDeliverablePath(t *testing.T) {
	for title, want := range map[string]string{
		"Build the API":             "build-the-api",
		"  --Fix: it!! (v2)  ":      "fix-it-v2",
		"修复登录 🚀":                    "修复登录",
		"Über café":                 "über-café",
		"实现 (前端) 页面":                "实现-前端-页面",
		"दस्तावेज़ १":               "दस्तावेज़-१",
		"\u0301a\u202eb\x00c\u200f": "a-b-c",
		"🚀":                         "task",
		strings.Repeat("字", 61):     strings.Repeat("字", 60),
		strings.Repeat("𝒳", 50):     strings.Repeat("𝒳", 45),
		strings.Repeat("a", 61):     strings.Repeat("a", 60),
		strings.Repeat("ab ", 21):   strings.TrimSuffix(strings.Repeat("ab-", 20), "-"),
		"../../etc/passwd":          "etc-passwd",
	} {
		got := team.NewTask{Title: title}.Task("T-012", "leader", at).DeliverablePath
		if want := "deliverables/T-012-" + want + ".md"; got != want {
			t.Errorf("path of %q is %s, want %s", title, got, want)
		}
	}
}

func TestNewTask(t *testing.T) {
	deps := []team.TaskID{"T-1000", "T-002", "T-999", "T-002"}
	n := team.NewTask{Title: "标题 🚀", Dependencies: deps, Metadata: json.RawMessage(`{"a":1}`)}
	task := n.Task("T-1001", "coder-1", at)
	if want := []team.TaskID{"T-002", "T-999", "T-1000"}; !slices.Equal(task.Dependencies, want) {
		t.Errorf("dependencies are %v, want %v", task.Dependencies, want)
	}
	if deps[0] != "T-1000" {
		t.Error("the caller's slice was sorted")
	}
	if task.V != team.Protocol || task.Status != team.Pending || task.CreatedBy != "coder-1" || !task.CreatedAt.Equal(at) {
		t.Errorf("task = %+v", task)
	}
}

func TestNewTaskValidate(t *testing.T) {
	many := make([]team.TaskID, team.MaxDependencies+1)
	for name, tt := range map[string]struct {
		task team.NewTask
		ok   bool
	}{
		"plain":                      {team.NewTask{Title: "x"}, true},
		"Chinese and emoji":          {team.NewTask{Title: "写报告 🚀👩‍💻", Description: "第一行\n\t第二行 🎉"}, true},
		"description at the limit":   {team.NewTask{Title: "x", Description: strings.Repeat("x", 64<<10)}, true},
		"description past the limit": {team.NewTask{Title: "x", Description: strings.Repeat("x", 64<<10+1)}, false},
		"title at the limit":         {team.NewTask{Title: strings.Repeat("x", team.MaxTitleBytes)}, true},
		"title past the limit":       {team.NewTask{Title: strings.Repeat("x", team.MaxTitleBytes+1)}, false},
		"no title":                   {team.NewTask{Title: " \t"}, false},
		"two lines":                  {team.NewTask{Title: "a\nb"}, false},
		"a control character":        {team.NewTask{Title: "a\x1b[31mb"}, false},
		"NUL in the description":     {team.NewTask{Title: "x", Description: "a\x00b"}, false},
		"not UTF-8":                  {team.NewTask{Title: "x", Description: "\xff"}, false},
		"priority 2":                 {team.NewTask{Title: "x", Priority: 2}, true},
		"priority 3":                 {team.NewTask{Title: "x", Priority: 3}, false},
		"priority -1":                {team.NewTask{Title: "x", Priority: -1}, false},
		"too many dependencies":      {team.NewTask{Title: "x", Dependencies: many}, false},
		"a role":                     {team.NewTask{Title: "x", Role: "coder"}, true},
		"a bad role":                 {team.NewTask{Title: "x", Role: "Der Coder"}, false},
		"metadata":                   {team.NewTask{Title: "x", Metadata: json.RawMessage(`{"k":"v"}`)}, true},
		"metadata that is deep":      {team.NewTask{Title: "x", Metadata: json.RawMessage(strings.Repeat(`{"k":[`, 50) + strings.Repeat(`]}`, 50))}, true},
		"metadata that is too deep":  {team.NewTask{Title: "x", Metadata: json.RawMessage(strings.Repeat("[", 101) + strings.Repeat("]", 101))}, false},
		"metadata that is wide":      {team.NewTask{Title: "x", Metadata: json.RawMessage("[[]" + strings.Repeat(",[]", 1000) + "]")}, true},
		"metadata that is not JSON":  {team.NewTask{Title: "x", Metadata: json.RawMessage(`{`)}, false},
		"metadata past the limit":    {team.NewTask{Title: "x", Metadata: json.RawMessage(`"` + strings.Repeat("x", 64<<10) + `"`)}, false},
	} {
		err := tt.task.Validate()
		if tt.ok && err != nil || !tt.ok && team.CodeOf(err) != team.InvalidArgument {
			t.Errorf("%s: %v, want ok = %v", name, err, tt.ok)
		}
	}
}
