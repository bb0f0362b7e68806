// Package place describes for an agent where it works: the folder, the platform,
// the day, what git says, and the project's own instructions (AGENTS.md).
//
// It only looks. Package journal keeps what was seen, and package agent decides whether a
// later look replaces it and how the model is told.
package place

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"agentteam/pkg/folder"
	"agentteam/pkg/team"
)

// Place is where an agent works.
type Place struct {
	Workspace string `json:"workspace"`          // an absolute path
	Platform  string `json:"platform"`           // such as linux/amd64
	Date      string `json:"date"`               // 2006-01-02, of the host
	Git       string `json:"git,omitempty"`      // branch and state in a few words; "" outside of a repository
	File      string `json:"file,omitempty"`     // the nearest AGENTS.md up the tree, an absolute path; "" if there is none
	Project   string `json:"project,omitempty"`  // what it says, at most MaxProject bytes
	LeftOut   int    `json:"left_out,omitempty"` // bytes of the file that are not in Project
}

// MaxProject is how many bytes of AGENTS.md an agent is told.
const MaxProject = 32 << 10

// projectFile holds a project's instructions for agents (https://agents.md).
const projectFile = "AGENTS.md"

// gitWithin bounds git, which may take long in a large tree.
const gitWithin = 2 * time.Second

// Run runs a shell command in the workspace and returns its output and whether it succeeded. It
// is the runner of the member's own commands: a repository can have git run programs, and
// members write there.
type Run func(ctx context.Context, line string) (output string, passed bool, err error)

// Look looks at a workspace. What cannot be found out is left out: an agent can work
// without it.
func Look(ctx context.Context, workspace string, run Run) Place {
	p := Place{Workspace: workspace, Platform: runtime.GOOS + "/" + runtime.GOARCH, Date: time.Now().Format(time.DateOnly)}
	p.Git = git(ctx, run)
	p.File, p.Project, p.LeftOut = project(workspace)
	return p
}

// SameButGit reports whether q says the same as p but for git, whose state changes all the
// time.
func (p Place) SameButGit(q Place) bool {
	p.Git = q.Git
	return p == q
}

// git tells the branch and how many files differ from it.
func git(ctx context.Context, run Run) string {
	ctx, cancel := context.WithTimeout(ctx, gitWithin)
	defer cancel()
	// Without locks: an agent may commit at this moment. More would be cut in its middle.
	out, passed, err := run(ctx, "set -o pipefail; git --no-optional-locks -c core.fsmonitor=false status --porcelain=v1 --branch -z 2>/dev/null | { head -c 20000; cat >/dev/null; }")
	if err != nil || !passed {
		return ""
	}
	head, files, _ := strings.Cut(out, "\x00")
	return branch(head) + ", " + changes(files)
}

// branch reads the first line of git status.
func branch(head string) string {
	name := strings.TrimPrefix(head, "## ")
	if fresh, ok := strings.CutPrefix(name, "No commits yet on "); ok {
		return "branch " + fresh + " without commits"
	}
	if strings.HasPrefix(name, "HEAD (") {
		return "no branch"
	}
	name, _, _ = strings.Cut(name, "...") // what follows is the branch that it tracks
	return "branch " + name
}

// changes counts the entries of git status -z. A renamed file is two of them, the second
// without a status.
func changes(files string) string {
	n := 0
	for entry := range strings.SplitSeq(files, "\x00") {
		if len(entry) > 3 && entry[2] == ' ' {
			n++
		}
	}
	switch n {
	case 0:
		return "clean"
	case 1:
		return "1 file changed or new"
	}
	return fmt.Sprintf("%d files changed or new", n)
}

// project returns the nearest AGENTS.md from dir up the tree, and what it says. The search
// ends at the top of a repository, and below a folder that anybody may write to, such as
// /tmp: whoever put a file there has no say here.
func project(dir string) (file, text string, leftOut int) {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o002 != 0 {
			return "", "", 0
		}
		if text, leftOut, err = head(dir); err == nil {
			return filepath.Join(dir, projectFile), text, leftOut
		}
		_, err = os.Lstat(filepath.Join(dir, ".git"))
		up := filepath.Dir(dir)
		if err == nil || up == dir {
			return "", "", 0
		}
		dir = up
	}
}

// head reads a folder's AGENTS.md, at most MaxProject bytes of it. It may be a link, but to
// nothing outside of the folder: that is not the project's to tell.
func head(dir string) (text string, leftOut int, err error) {
	root, err := folder.Root(dir)
	if err != nil {
		return "", 0, err
	}
	defer root.Close() // nothing is written
	f, info, err := folder.File(root, projectFile)
	if err != nil {
		return "", 0, err
	}
	defer f.Close() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, MaxProject))
	if err != nil {
		return "", 0, err
	}
	if len(bytes.TrimSpace(data)) == 0 || bytes.IndexByte(data, 0) >= 0 {
		return "", 0, fs.ErrNotExist // nothing to tell
	}
	if int(info.Size()) > len(data) { // whole lines, if there are several, and whole characters
		data = bytes.ToValidUTF8(data[:cmp.Or(bytes.LastIndexByte(data, '\n')+1, len(data))], nil)
	}
	return team.Clean(string(data), MaxProject), max(0, int(info.Size())-len(data)), nil
}
