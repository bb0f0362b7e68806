// Package projectcontext describes an agent's workplace for its model: folder, platform, date, the state of git, and the project's
// instructions (AGENTS.md, CLAUDE.md and its imports). Package journal stores it; package agent decides when it is replaced.
package projectcontext

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"time"
)

// Place is the workplace of an agent.
type Place struct {
	Workspace string `json:"workspace"`               // an absolute path
	Platform  string `json:"platform"`                // such as linux/amd64
	Date      string `json:"date"`                    // 2006-01-02, of the host
	Git       string `json:"git,omitempty"`           // branch and state in a few words; "" outside of a repository
	Project   []File `json:"project_files,omitempty"` // the project's instructions, at most MaxProject bytes

	Submodules []string `json:"submodules,omitempty"`   // those without files here, relative to the workspace
	Skills     []string `json:"skills,omitempty"`       // a line each
	MoreSkills int      `json:"more_skills,omitempty"`  // which are not among them
	Given      []File   `json:"given_skills,omitempty"` // those that the role names, whole
}

// gitWithin bounds git, which may take long in a large tree.
const gitWithin = 2 * time.Second

// Run runs a shell command in the workspace, confined as the member's own commands are, and returns its output and whether it
// succeeded.
type Run func(ctx context.Context, line string) (output string, passed bool, err error)

// Inspect describes a workspace. It leaves out unknown facts. It reads files of the project only where may allows it.
func Inspect(ctx context.Context, workspace string, run Run, may May) Place {
	p := Place{Workspace: workspace, Platform: runtime.GOOS + "/" + runtime.GOARCH, Date: time.Now().Format(time.DateOnly)}
	p.Git = git(ctx, run)
	p.Project, p.Submodules = Standing(workspace, may), emptyModules(workspace)
	return p
}

// SameButGit reports whether q states the same as p but for git.
func (p Place) SameButGit(q Place) bool {
	p.Git = q.Git
	return reflect.DeepEqual(p, q)
}

// git returns the branch and how many files differ from it.
func git(ctx context.Context, run Run) string {
	ctx, cancel := context.WithTimeout(ctx, gitWithin)
	defer cancel()
	// Without locks: an agent may be committing. Longer output would be cut in the middle.
	out, passed, err := run(ctx, "set -o pipefail; git --no-optional-locks -c core.fsmonitor=false status --porcelain=v1 --branch -z 2>/dev/null | { head -c 20000; cat >/dev/null; }")
	if err != nil || !passed {
		return ""
	}
	head, files, _ := strings.Cut(out, "\x00")
	return branch(head) + ", " + changes(files)
}

// Changes returns the files that differ from the last commit, with their changed lines, then new ones, the first of very many; ""
// if git fails, as outside of a repository.
func Changes(ctx context.Context, run Run) string {
	ctx, cancel := context.WithTimeout(ctx, gitWithin)
	defer cancel()
	const git = "git --no-optional-locks -c core.fsmonitor=false "
	out, passed, err := run(ctx, "set -o pipefail; { "+git+"diff --no-ext-diff --stat=100 --stat-count=40 HEAD -- && "+git+
		"ls-files --others --exclude-standard | sed -n '1,40s/$/ (new)/p'; } 2>/dev/null | { head -c 6000; cat >/dev/null; }")
	if err != nil || !passed {
		return ""
	}
	return strings.TrimRight(out, "\n ")
}

// Footprint returns a text that changes when the work changes files: the result of [Changes], or outside of a repository a
// checksum of the names, sizes and times of files; "" on failure.
func Footprint(ctx context.Context, run Run) string {
	if changes := Changes(ctx, run); changes != "" {
		return changes
	}
	ctx, cancel := context.WithTimeout(ctx, gitWithin)
	defer cancel()
	out, _, err := run(ctx, `git --no-optional-locks rev-parse -q --verify HEAD 2>/dev/null ||
		find . -name .git -prune -o -name .agentteam -prune -o -type f -printf '%p %s %T@\n' 2>/dev/null | head -n 50000 | cksum`)
	if err != nil {
		return ""
	}
	return out
}

// branch parses the first line of git status.
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

// changes counts the entries of git status -z. A renamed file is two of them, the second without a status.
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
