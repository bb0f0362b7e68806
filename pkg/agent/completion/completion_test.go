package completion_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentteam/pkg/agent/completion"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
	"agentteam/pkg/tool/workspace"
)

// shelf stands in for the object store.
type shelf map[string]string

func (s shelf) Put(_ context.Context, name string, r io.ReadSeeker) (string, error) {
	data, err := io.ReadAll(r)
	s[name] = string(data)
	return "digest of " + name, err
}

func TestVerify(t *testing.T) {
	const path = "deliverables/T-007-count.md"
	for name, tt := range map[string]struct {
		task    team.Task
		content string // of the deliverable; "-" = it is not there
		code    team.Code
		says    string
		stored  bool
	}{
		"nothing asked for, nothing there":   {content: "-"},
		"nothing asked for, empty":           {},
		"nothing asked for, but it is there": {content: "数 42 📦", stored: true},
		"required":                           {task: team.Task{DeliverableReq: true}, content: "42", stored: true},
		"required and missing":               {task: team.Task{DeliverableReq: true}, content: "-", code: team.InvalidState, says: "is not there"},
		"required and empty":                 {task: team.Task{DeliverableReq: true}, code: team.InvalidState, says: "is empty"},
		"a check passes":                     {task: team.Task{Check: "grep -q 42 " + path}, content: "42", stored: true},
		"a check fails":                      {task: team.Task{Check: "echo 少了 >&2; grep 43 " + path}, content: "42", code: team.InvalidState, says: "少了"},
		"a check fails before all else":      {task: team.Task{Check: "false", DeliverableReq: true}, content: "-", code: team.InvalidState, says: "exit status 1"},
		"too large":                          {content: strings.Repeat("x", completion.MaxBytes+1), code: team.InvalidArgument, says: "limit"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.content != "-" {
				write(t, filepath.Join(dir, path), tt.content)
			}
			ws, err := workspace.Open(dir, command.Plain{}, workspace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer ws.Close()
			tt.task.ID, tt.task.Epoch, tt.task.DeliverablePath = "T-007", 3, path
			files := shelf{}
			digest, err := completion.Verify(t.Context(), tt.task, ws, files)
			if team.CodeOf(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Verify = %v, want %q and %q in it", err, tt.code, tt.says)
			}
			var failed *completion.CheckError
			if want := tt.task.Check != "" && tt.code != ""; errors.As(err, &failed) != want {
				t.Errorf("%v is a CheckError: %v, want %v", err, !want, want)
			}
			const object = "T-007/3/T-007-count.md"
			if tt.stored && (files[object] != tt.content || digest != "digest of "+object) || !tt.stored && (len(files) > 0 || digest != "") {
				t.Errorf("stored %v (digest %q), want it stored: %v", files, digest, tt.stored)
			}
		})
	}
}

// A deliverable that leads out of the workspace is none.
func TestVerifyRefusesLinkOut(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	write(t, filepath.Join(out, "secret"), "secret")
	if err := os.Symlink(filepath.Join(out, "secret"), filepath.Join(dir, "d.md")); err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.Open(dir, command.Plain{}, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	files := shelf{}
	_, err = completion.Verify(t.Context(), team.Task{ID: "T-001", DeliverablePath: "d.md"}, ws, files)
	if team.CodeOf(err) != team.PermissionDenied || len(files) > 0 {
		t.Errorf("Verify = %v, stored %v", err, files)
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(content), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
