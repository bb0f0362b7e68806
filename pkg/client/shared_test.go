package client_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/store/journal"
	"agentteam/pkg/team"
	"agentteam/pkg/team/blob"
)

// Where members share the workspace, what file tools have done is shown, and taken back whole or
// not at all.
func TestSharedFolder(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	if _, err := r.Goals().Start(t.Context(), "write", dir); err != nil {
		t.Fatal(err)
	}
	texts := blob.In(r.bt.Files)
	j, _, err := journal.Open(t.Context(), r.bt, "coder-1", 1, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		data, _ := os.ReadFile(filepath.Join(dir, name)) // "" is no file
		return string(data)
	}
	write := func(id team.TaskID, name, text string) {
		t.Helper()
		c := team.Change{Path: name, After: team.DigestOf(text)}
		if old := read(name); old != "" {
			c.Before, err = texts.Put(t.Context(), old)
		} else {
			c.New = true
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
		}
		if err == nil {
			_, err = j.Append(t.Context(), journal.Record{Kind: journal.Result, TaskID: id, Result: &journal.ToolResult{CallID: "c" + team.DigestOf(name + text)[7:20], Name: "write_file", Account: &team.Account{Change: &c}}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	one, two := completedTask(t, r, "One"), completedTask(t, r, "Two")
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("first\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	write(one, "a.txt", "second\n")
	write(one, "a.txt", "third\n")
	write(one, "new.txt", "new\n")
	write(two, "new.txt", "newer\n")

	d, err := r.Branch().Diff(t.Context(), client.DiffOptions{})
	if err != nil || !strings.Contains(d.Text, "-first\n+third\n") || !strings.Contains(d.Text, "+newer\n") || len(d.Files) != 2 {
		t.Errorf("%v, %v:\n%s", d.Files, err, d.Text)
	}
	if _, _, err := r.Branch().Undo(t.Context(), one, ""); !errors.Is(err, team.InvalidState) || !strings.Contains(err.Error(), "new.txt (T-002)") || read("a.txt") != "third\n" {
		t.Errorf("undo of what a later task has changed: %v, a.txt is %q", err, read("a.txt"))
	}
	for _, id := range []team.TaskID{two, one} {
		task, undone, err := r.Branch().Undo(t.Context(), id, "")
		if err != nil || !undone || task.Undone != team.InFolder || task.Status != team.Completed {
			t.Fatalf("undo %s: %+v, %v", id, task, err)
		}
	}
	if read("a.txt") != "first\n" || read("new.txt") != "" {
		t.Errorf("a.txt is %q, new.txt %q", read("a.txt"), read("new.txt"))
	}
	if d, err := r.Branch().Diff(t.Context(), client.DiffOptions{}); err != nil || d.Text != "" {
		t.Errorf("after all was undone: %v\n%s", err, d.Text)
	}

	odd := completedTask(t, r, "Odd")
	write(odd, "a b\n\"ü\x01\".txt", "++ x\n")
	const before, after = `"a/a b\n\"ü\001\".txt"`, `"b/a b\n\"ü\001\".txt"`
	d, err = r.Branch().Diff(t.Context(), client.DiffOptions{})
	if want := "diff --git " + before + " " + after + "\n--- /dev/null\n+++ " + after + "\n@@ -0,0 +1 @@\n+++ x\n"; err != nil || d.Text != want || d.Files[0].Added != 1 {
		t.Errorf("the patch of a file with an odd name: %v, %+v\n%s\nwant\n%s", err, d.Files, d.Text, want)
	}

	three := completedTask(t, r, "Three")
	write(three, "a.txt", "mine\n")
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("by hand\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Branch().Undo(t.Context(), three, ""); !errors.Is(err, team.InvalidState) || read("a.txt") != "by hand\n" {
		t.Errorf("undo of what was changed by hand: %v, a.txt is %q", err, read("a.txt"))
	}
	hook := filepath.Join(dir, ".git", "hooks")
	if err := errors.Join(os.MkdirAll(hook, 0o755), os.WriteFile(filepath.Join(hook, "post-merge"), []byte("mine"), 0o644)); err != nil {
		t.Fatal(err)
	}
	four := completedTask(t, r, "Four")
	write(four, ".git/hooks/post-merge", "theirs")
	if _, _, err := r.Branch().Undo(t.Context(), four, ""); err == nil {
		t.Error("an undo has written into .git")
	}
}

// completedTask makes a completed task.
func completedTask(t *testing.T, r *rig, title string) team.TaskID {
	t.Helper()
	all, err := r.board.Create(t.Context(), team.UserAgent, team.NewTask{Title: title})
	if err != nil {
		t.Fatal(err)
	}
	h := team.Holder{Agent: "coder-1", Incarnation: 1}
	if _, err = r.board.Claim(t.Context(), all[0].ID, h); err == nil {
		_, err = r.board.Complete(t.Context(), all[0].ID, h, 0, team.Done{Summary: "done"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return all[0].ID
}
