package permission

import (
	"slices"
	"strings"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// Judge judges a call by rules and, where none matches, by mode and by the level of the sandbox
// in which commands run. Its decision is never None. Rules may be nil; dir is the absolute path
// of the workspace.
func Judge(rules *Rules, mode team.PermissionMode, level team.Sandbox, req tool.Request, dir string) Verdict {
	v := rules.Decide(req, dir)
	if v.Decision == Deny {
		return v
	}
	outside := changesOutside(req)
	switch {
	case mode == team.BypassPermissions:
		v.Decision = Allow
		return v
	case mode == team.ReadOnlyMode && outside && !(req.Tool == "bash" && onlyReads(argument(req, "command"), dir)):
		return Verdict{Deny, "", "in the mode read-only nothing is changed"}
	case v.Decision != None:
		return v
	case !outside, mode == team.ReadOnlyMode, level == team.Bubblewrap, level == team.Confined,
		mode == team.AcceptEdits && kindOf(req) == edits:
		v.Decision = Allow
		return v
	}
	v.Decision = Ask
	if v.Why == "" {
		v.Why = "no rule matches, and no sandbox confines it"
	}
	return v
}

// OfTeam reports whether a tool acts on the team alone, its board, mail and members, and so reads no file and
// runs no command.
func OfTeam(req tool.Request) bool { return kindOf(req) == other && req.Tool != "web_search" }

// changesOutside reports whether a call may change something that is not the team's own: its
// board and mail are not asked for.
func changesOutside(req tool.Request) bool {
	if !req.Changes() {
		return false
	}
	return req.Traits.Writes || kindOf(req) != other || req.Tool == "web_search"
}

// looking are commands that only read, whatever their arguments but for those in executing.
var looking = []string{"ls", "cat", "head", "tail", "wc", "grep", "egrep", "fgrep", "rg", "stat", "file", "pwd", "echo", "printf", "true", "false", ":", "test", "[",
	"which", "type", "basename", "dirname", "realpath", "readlink", "du", "df", "date", "uname", "whoami", "id", "cut", "tr", "sort", "nl", "tac", "rev", "fold",
	"column", "paste", "join", "comm", "cmp", "diff", "md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "tree", "jq", "find", "cd", "exit", "sleep", "seq"}

// gitLooking are commands of git that only read.
var gitLooking = []string{"status", "log", "diff", "show", "blame", "ls-files", "ls-tree", "rev-parse", "describe", "shortlog", "grep", "cat-file", "rev-list", "merge-base", "diff-tree", "name-rev"}

// onlyReads reports whether a command line is known to change nothing.
func onlyReads(src, dir string) bool { return reading(read(src, dir, "/")) }

func reading(l *line) bool {
	if len(l.doubts) > 0 || slices.ContainsFunc(l.files, func(f file) bool { return f.write }) {
		return false
	}
	return !slices.ContainsFunc(l.calls, func(c call) bool { return !c.looks() })
}

// looks reports whether a command only reads.
func (c call) looks() bool {
	if c.expand || len(c.doubts) > 0 {
		return false
	}
	if c.inside != nil {
		return c.passes && reading(c.inside)
	}
	t := c.text
	if c.plain != nil {
		t = c.plain
	}
	words := t.words()
	switch {
	case words[0] == "sed":
		return !slices.ContainsFunc(words, func(w string) bool {
			return w == "--in-place" || strings.HasPrefix(w, "-") && strings.HasSuffix(w, "i")
		})
	case words[0] == "git":
		return len(words) > 1 && slices.Contains(gitLooking, words[1])
	}
	return slices.Contains(looking, words[0])
}
