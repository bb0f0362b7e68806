package client_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/workspace"
)

// shown returns a file of a team as people see it.
func shown(t *testing.T, name string, ws *workspace.Workspace, release func(), err error) (string, error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	f, _, err := ws.Regular(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	return string(data), err
}

// Of a team on the line people see what was merged, not the user's folder, and nothing leads out.
func TestFilesOnLine(t *testing.T) {
	r := newLineRig(t)
	of := func(name string) (string, error) {
		t.Helper()
		ws, release, err := r.Team.Files(t.Context())
		return shown(t, name, ws, release, err)
	}
	write(t, filepath.Join(r.user, "new.txt"), "the user's")
	_, err := of("new.txt")
	wantCode(t, "what only the user has", err, team.NotFound)
	r.done(t, "coder-1", "Add a file", "echo merged > new.txt")
	if got, err := of("new.txt"); got != "merged\n" || err != nil {
		t.Errorf("after the merge it is %q, %v", got, err)
	}
	_, err = of("../" + filepath.Base(r.user) + "/new.txt")
	wantCode(t, "a path that leads out", err, team.PermissionDenied)
	ws, release, err := r.client.FilesIn(t.Context(), r.user)
	if got, err := shown(t, "new.txt", ws, release, err); got != "merged\n" || err != nil {
		t.Errorf("in the folder of the team it is %q, %v", got, err)
	}
	other := t.TempDir()
	write(t, filepath.Join(other, "new.txt"), "of no team")
	ws, release, err = r.client.FilesIn(t.Context(), other)
	if got, err := shown(t, "new.txt", ws, release, err); got != "of no team" || err != nil {
		t.Errorf("in a folder of no team it is %q, %v", got, err)
	}

	// A deliverable that is not stored is the line's, too.
	id := r.add(t, 1)[0].ID
	_, _, err = r.Board().OpenDeliverable(t.Context(), id)
	wantCode(t, "a deliverable that was not merged", err, team.NotFound)

	t.Setenv("PATH", t.TempDir())
	_, _, err = r.Team.Files(t.Context())
	says(t, "without git", err, team.Unavailable, "git")
}

// A person's check runs on what the line has, in a separate folder.
func TestSeatCheckOnLine(t *testing.T) {
	r := newLineRig(t)
	ctx := t.Context()
	created, _, err := r.Board().Add(ctx, "", team.NewTask{Title: "look", Check: "grep -q merged new.txt && echo touched > numbers.txt"})
	if err != nil {
		t.Fatal(err)
	}
	id := created[0].ID
	r.claim(t, id, "alice")
	write(t, filepath.Join(r.user, "new.txt"), "merged")
	_, err = r.Board().Complete(ctx, id, "alice", "looked at it")
	wantCode(t, "what only the user has", err, team.InvalidState)
	if err == nil || !strings.Contains(err.Error(), "the check of "+string(id)) {
		t.Errorf("it fails with %v", err)
	}
	r.done(t, "coder-1", "Add a file", "echo merged > new.txt")
	task, err := r.Board().Complete(ctx, id, "alice", "looked at it")
	if err != nil || task.Status != team.Completed || task.Commit != "" {
		t.Errorf("it is %s with commit %q, %v", task.Status, task.Commit, err)
	}
	if data, err := os.ReadFile(filepath.Join(r.user, "numbers.txt")); err != nil || strings.Contains(string(data), "touched") {
		t.Errorf("the user's file is %q, %v", data, err)
	}
	ws, release, err := r.Team.Files(ctx)
	if got, err := shown(t, "numbers.txt", ws, release, err); strings.Contains(got, "touched") || err != nil {
		t.Errorf("the line's file is shown as %q, %v", got, err)
	}
}
