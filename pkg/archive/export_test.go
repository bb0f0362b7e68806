package archive_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/archive"
	"agentteam/pkg/board"
	"agentteam/pkg/client"
	"agentteam/pkg/mailbox"
	"agentteam/pkg/roster"
	"agentteam/pkg/team"
)

// hostile would act on a page, on a terminal, or on Markdown.
const hostile = "<script>alert(1)</script><img src=x onerror=alert(1)> \"' onload=x ``` ]( javascript:alert(1)) | \u202eevil\n# head"

// An export has a file for each task, inbox and conversation, and one page. What members have written
// acts on none of them.
func TestExport(t *testing.T) {
	s := newSite(t)
	bt := s.work(t)
	if _, err := board.New(bt.Bucket, board.Options{}).Create(t.Context(), team.UserAgent, team.NewTask{Title: "<b>bold</b> | `x`", Description: hostile}); err != nil {
		t.Fatal(err)
	}
	box := mailbox.New(bt, mailbox.Options{Members: roster.New(bt)})
	if _, _, err := box.Send(t.Context(), team.Message{Type: team.MsgUser, From: team.UserAgent, To: "coder-1", Content: hostile}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.reg.End(t.Context(), bt, team.Ending{Status: team.TeamFailed, Summary: hostile, Reason: hostile}); err != nil {
		t.Fatal(err)
	}
	c, err := client.Connect(t.Context(), client.Options{URL: s.url})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tm, err := c.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	if err := os.Mkdir(dir, 0o700); err != nil { // one that is empty
		t.Fatal(err)
	}
	if err := archive.Export(t.Context(), tm, dir); err != nil {
		t.Fatal(err)
	}
	var names []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"README.md", "report.html", "tasks/T-021.json", "transcripts/coder-1.md", "inboxes/coder-1.jsonl", "inboxes/user.jsonl"} {
		if !slices.Contains(names, want) {
			t.Errorf("there is no %s in %v", want, names)
		}
	}
	page := read(t, dir, "report.html")
	if tag := regexp.MustCompile(`(?i)<(script|img|b|iframe|link|a)\b[^>]*>`).FindString(page); tag != "" {
		t.Errorf("the page has %s", tag)
	}
	if !strings.Contains(page, "&lt;script&gt;") || !strings.Contains(page, "task 19") {
		t.Errorf("the page lacks texts:\n%s", page)
	}
	summary := read(t, dir, "README.md")
	if !strings.Contains(summary, "\n````") || !strings.Contains(summary, "&lt;b&gt;bold&lt;/b&gt; \\| \\`x\\`") {
		t.Errorf("the summary is\n%s", summary)
	}
	for _, text := range []string{page, summary} {
		if strings.ContainsAny(text, "\x1b\u202e") {
			t.Error("a text acts on a terminal")
		}
	}
	var task team.TaskView
	if err := json.Unmarshal([]byte(read(t, dir, "tasks/T-021.json")), &task); err != nil || task.Description != hostile {
		t.Errorf("the task: %q, %v", task.Description, err)
	}
	if lines := strings.Count(read(t, dir, "inboxes/coder-1.jsonl"), "\n"); lines != 11 {
		t.Errorf("the inbox has %d lines", lines)
	}
	if err := archive.Export(t.Context(), tm, dir); team.CodeOf(err) != team.Conflict {
		t.Errorf("into a folder with files: %v, want conflict", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".export-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
