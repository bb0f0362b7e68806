package client_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/agent/completion"
	"agentteam/pkg/client"
	"agentteam/pkg/store/board"
	"agentteam/pkg/team"
)

func TestDeliverable(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	if _, err := r.Goals().Start(t.Context(), "count", dir); err != nil {
		t.Fatal(err)
	}
	r.add(t, 4)
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

	// An artifact is read by its path, from where it was stored.
	one := r.claim(t, "T-003", "alice")
	digest, err := r.bt.Files.Put(t.Context(), completion.ArtifactName(one, "dist/a.txt"), strings.NewReader("數"))
	ok(t, err)
	_, err = board.New(r.bt.Bucket, board.Options{}).Complete(t.Context(), one.ID, team.Holder{Agent: "alice", Incarnation: one.Incarnation}, one.Epoch, team.Done{Summary: "built", Artifacts: []team.Artifact{{Path: "dist/a.txt", Digest: digest, Bytes: 3}}})
	ok(t, err)
	artifact, f, err := r.Board().OpenArtifact(t.Context(), one.ID, "dist/a.txt")
	ok(t, err)
	if text, err := io.ReadAll(f); err != nil || string(text) != "數" || artifact.Digest != digest || artifact.Path != "dist/a.txt" {
		t.Errorf("the artifact is %+v, %q, %v", artifact, text, err)
	}
	if all, err := r.Board().Deliverables(t.Context()); err != nil || len(all) != 2 || all[1] != artifact {
		t.Errorf("listed %+v, %v; want %+v too", all, err, artifact)
	}
	_, _, err = r.Board().OpenArtifact(t.Context(), one.ID, "dist/b.txt")
	wantCode(t, "an artifact that is not there", err, team.NotFound)

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
	_, _, err = read("T-004")
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
