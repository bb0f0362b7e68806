package client_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"agentteam/pkg/client"
	"agentteam/pkg/team"
)

func TestDeliverable(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	if _, err := r.Goals().Start(t.Context(), "count", dir); err != nil {
		t.Fatal(err)
	}
	r.add(t, 3)
	read := func(id team.TaskID) (client.Deliverable, string, error) {
		t.Helper()
		d, f, err := r.Board().OpenDeliverable(t.Context(), id)
		if err != nil {
			return d, "", err
		}
		text, err := io.ReadAll(f)
		if cerr := f.Close(); cerr != nil {
			t.Error(cerr)
		}
		return d, string(text), err
	}
	_, _, err := read("T-001")
	wantCode(t, "of a task that has none yet", err, team.NotFound)
	_, _, err = read("T-009")
	wantCode(t, "of no task", err, team.NotFound)

	task := r.claim(t, "T-001", "alice")
	write(t, filepath.Join(dir, task.DeliverablePath), "42 草稿")
	if d, text, err := read("T-001"); err != nil || text != "42 草稿" || d.Digest != "" {
		t.Errorf("while it is written it is %+v, %q, %v", d, text, err)
	}
	if _, err := r.Board().Complete(t.Context(), "T-001", "alice", "counted"); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, task.DeliverablePath), "spoilt since")
	d, text, err := read("T-001")
	if err != nil || text != "42 草稿" || d.Digest == "" {
		t.Errorf("once completed it is %+v, %q, %v", d, text, err)
	}
	if all, err := r.Board().Deliverables(t.Context()); err != nil || len(all) != 1 || all[0] != d {
		t.Errorf("listed %+v, %v; want %+v", all, err, d)
	}

	// No link leads out of the workspace.
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "secret")
	two, err := r.Board().Task(t.Context(), "T-002")
	if err == nil {
		err = os.Symlink(secret, filepath.Join(dir, two.DeliverablePath))
	}
	if err != nil {
		t.Fatal(err)
	}
	_, text, err = read("T-002")
	wantCode(t, "a link that leads out, read as "+text, err, team.PermissionDenied)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	_, _, err = read("T-003")
	wantCode(t, "without the workspace", err, team.InvalidState)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
