package archive_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/cluster/archive"
	"agentteam/pkg/model"
	"agentteam/pkg/store/board"
	"agentteam/pkg/store/broker"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/store/mailbox"
	"agentteam/pkg/store/roster"
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
	if _, err := roster.New(bt).Create(t.Context(), team.Member{AgentID: "coder-2", Role: "coder"}, roster.Limit{Team: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := roster.New(bt).Put(t.Context(), team.Member{AgentID: "ann", Role: "person", Backend: team.Person, State: team.Joined, Incarnation: 1}); err != nil {
		t.Fatal(err)
	}
	say(t, bt, "coder-2", hostile)
	say(t, bt, "coder-2.a1b2c3d", "I looked. "+hostile)
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
	if err := syscall.Mount("export", dir, "tmpfs", 0, "size=8m"); err == nil { // else it is on the disk of its parent
		t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	}
	if err := os.MkdirAll(filepath.Join(dir, ".export-1234", "tasks"), 0o700); err != nil { // what one that was killed has left
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := archive.Export(t.Context(), tm, "."); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("README.md"); err != nil {
		t.Errorf("who is in the folder does not see it: %v", err)
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
	if left, err := filepath.Glob(filepath.Join(dir, ".export-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	for _, want := range []string{"README.md", "report.html", "config.json", "tasks/T-021.json", "transcripts/coder-1.md", "inboxes/coder-1.jsonl", "inboxes/user.jsonl"} {
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
	transcript := read(t, dir, "transcripts/coder-2.md")
	before, inside, _ := strings.Cut(transcript, "\n```` text\n")
	inside, after, closed := strings.Cut(inside, "\n````\n")
	if !closed || after != "" || strings.Contains(before, "script") || !strings.Contains(inside, "<script>alert(1)</script>") || !strings.Contains(inside, "evil") || strings.Contains(inside, "````") {
		t.Errorf("what a model has said is not between fences:\n%s", transcript)
	}
	othersExported(t, dir)
	for _, text := range []string{page, summary, transcript} {
		if strings.ContainsAny(text, "\x1b\u202e") {
			t.Error("a text acts on a terminal")
		}
		if left := regexp.MustCompile(`\[[0-9;]*m`).FindString(text); left != "" {
			t.Errorf("of a colour %q is left:\n%s", left, text)
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

// say puts a text into the journal of an agent.
func say(t *testing.T, bt *broker.Storage, who team.AgentID, text string) {
	t.Helper()
	log, _, err := journal.Open(t.Context(), bt, who, 1, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	said, err := json.Marshal(model.Reply{Message: model.Message{Role: "assistant", Content: text}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), journal.Record{Kind: journal.Turn, Turn: said}); err != nil {
		t.Fatal(err)
	}
}

// othersExported checks that an export has the team with all its members, the subagent of coder-2 below it, and a person
// without a conversation.
func othersExported(t *testing.T, dir string) {
	t.Helper()
	var config struct {
		Team    team.Team     `json:"team"`
		Members []team.Member `json:"members"`
	}
	if err := json.Unmarshal([]byte(read(t, dir, "config.json")), &config); err != nil || config.Team.ID != "a" || config.Team.Reason != hostile || len(config.Members) != 3 {
		t.Errorf("config.json has %+v, %v", config, err)
	}
	page, summary, transcript := read(t, dir, "report.html"), read(t, dir, "README.md"), read(t, dir, "transcripts/coder-2.md")
	if strings.Contains(transcript, "I looked.") || strings.Index(page, ">coder-2 ") > strings.Index(page, ">coder-2.a1b2c3d ") || !strings.Contains(page, "I looked. &lt;script&gt;") {
		t.Errorf("the page lacks a subagent below its owner:\n%s", page)
	}
	if sub := read(t, dir, "transcripts/coder-2.a1b2c3d.md"); !strings.Contains(sub, "\nsubagent of coder-2. Times") || !strings.Contains(sub, "I looked. <script>") {
		t.Errorf("the transcript of a subagent is\n%s", sub)
	}
	if !strings.Contains(summary, "| [coder-2.a1b2c3d](transcripts/coder-2.a1b2c3d.md) | subagent of coder-2 |") || !strings.Contains(summary, "\n| ann | person |") {
		t.Errorf("the summary has members as\n%s", summary)
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
