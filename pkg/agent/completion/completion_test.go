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

// Artifacts are stored by their paths, all or none of them counts; a file that is not there or leads out is named.
func TestKeep(t *testing.T) {
	for name, tt := range map[string]struct {
		names []string
		code  team.Code
		says  string
	}{
		"two":                {names: []string{"dist/a.txt", "./dist/b/c.txt"}},
		"none":               {},
		"one is not there":   {[]string{"dist/a.txt", "dist/z"}, team.NotFound, "the artifact dist/z"},
		"a folder":           {[]string{"dist"}, team.InvalidArgument, "the artifact dist"},
		"out of the folder":  {[]string{"../secret"}, team.PermissionDenied, "the artifact ../secret"},
		"too many":           {strings.Split(strings.Repeat("dist/a.txt ", completion.MaxArtifacts), " "), team.InvalidArgument, "the limit is 10"},
		"too large together": {[]string{"half1", "half2"}, team.InvalidArgument, "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "dist/a.txt"), "a")
			write(t, filepath.Join(dir, "dist/b/c.txt"), "数")
			for _, half := range []string{"half1", "half2"} {
				write(t, filepath.Join(dir, half), "")
				if err := os.Truncate(filepath.Join(dir, half), completion.MaxBytes/2+1); err != nil {
					t.Fatal(err)
				}
			}
			ws, err := workspace.Open(dir, command.Plain{}, workspace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer ws.Close()
			files := shelf{}
			all, err := completion.Keep(t.Context(), team.Task{ID: "T-007", Epoch: 3}, ws, files, tt.names)
			if team.CodeOf(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Keep = %v, want %q and %q in it", err, tt.code, tt.says)
			}
			if err == nil && (len(all) != len(tt.names) || len(files) != len(tt.names)) {
				t.Errorf("kept %+v, stored %v", all, files)
			}
			for _, a := range all {
				if got := files["T-007/3/artifacts/"+a.Path]; int64(len(got)) != a.Bytes || a.Digest != "digest of T-007/3/artifacts/"+a.Path {
					t.Errorf("stored %v as %+v", files, a)
				}
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
