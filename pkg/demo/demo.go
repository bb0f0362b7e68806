// Package demo is the job that shows what a team does: a survey of a source tree,
// by a real leader and three real teammates with real commands on real files. Only
// the words come from a script (script.yaml), which a rehearsal endpoint plays in
// the place of a model; nothing in the product knows of it.
package demo

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentteam/pkg/team"
)

// Script is the rehearsal script that plays every agent of the demo.
//
//go:embed script.yaml
var Script []byte

// Folder is the workspace of the demo, in the folder where it is started.
const Folder = "agentteam-demo"

// Result is the file in the workspace that the team writes.
const Result = "SURVEY.md"

// marker tells a folder that an earlier demo made from one of the user's.
const marker = ".made-by-agentteam-demo"

// Goal is the goal for the leader: dir, which is absolute, stands in it.
func Goal(dir string) string {
	return "Survey the source tree at " + dir + "\nWrite SURVEY.md: files and lines per language and in all, the largest files and functions, every open TODO, and packages without tests."
}

// Tree checks the folder to be surveyed and returns its absolute path.
func Tree(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", team.Errorf(team.InvalidArgument, "%w", err)
	}
	if strings.ContainsAny(abs, "\n\r") {
		return "", team.Errorf(team.InvalidArgument, "the path %q holds a line break", abs).WithHint("survey it under another name, by a symbolic link")
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", team.Errorf(team.NotFound, "there is no folder %s", abs)
	case err != nil:
		return "", team.Errorf(team.InvalidArgument, "%w", err)
	case !info.IsDir():
		return "", team.Errorf(team.InvalidArgument, "%s is not a folder", abs)
	}
	return abs, nil
}

// Workspace makes the demo's workspace below in, in place of the one of the run
// before, and returns its absolute path. A folder of that name that no demo made is
// left alone (InvalidState).
func Workspace(in string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(in, Folder))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); err == nil {
		if _, err := os.Stat(filepath.Join(dir, marker)); err != nil {
			return "", team.Errorf(team.InvalidState, "%s is in the way: no demo made it", dir).WithHint("move it, or start the demo in another folder")
		}
		if err := os.RemoveAll(dir); err != nil {
			return "", team.Errorf(team.InvalidState, "%w", err)
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", team.Errorf(team.InvalidState, "%w", err).WithHint("start the demo in a folder that can be written")
	}
	return dir, os.WriteFile(filepath.Join(dir, marker), nil, 0o644)
}
