package permission

import (
	"slices"
	"strings"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// Judge judges a call by rules and, where none matches, by mode and sandbox level. Its decision is never None. Rules may be nil; dir
// is the absolute path of the workspace.
func Judge(rules *Rules, mode team.PermissionMode, level team.Sandbox, req tool.Request, dir string) Verdict {
	v := rules.Decide(req, dir)
	if v.Decision == Deny {
		return v
	}
	outside := changesOutside(req)
	switch {
	case mode == team.BypassPermissions && v.Doubt: // no person is asked
		v.Decision = Deny
		return v
	case mode == team.BypassPermissions:
		v.Decision = Allow
		return v
	case mode == team.ReadOnlyMode && outside && !(req.Tool == "bash" && onlyReads(argument(req, "command"), dir)):
		return Verdict{Decision: Deny, Why: "in the mode read-only nothing is changed"}
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

// OfTeam reports whether a tool acts on the team alone: it reads no file and runs no command.
func OfTeam(req tool.Request) bool { return kindOf(req) == other && req.Tool != "web_search" }

// changesOutside reports whether a call may change something that is not the team's own.
func changesOutside(req tool.Request) bool {
	return req.Changes() && (req.Traits.Writes || !OfTeam(req))
}

// onlyReads reports whether a command line is known to change nothing.
func onlyReads(src, dir string) bool { return looks(read(src, dir, "/")) }

func looks(l *line) bool {
	return l.doubt == "" && l.opens == "" && !slices.ContainsFunc(l.touches, func(t touch) bool { return t.write }) &&
		!slices.ContainsFunc(l.calls, func(c call) bool { return !c.looks() })
}

// looks reports whether a command only reads.
func (c call) looks() bool {
	if name, _, _ := strings.Cut(c.texts[0], sep); c.doubt != "" || strings.ContainsAny(c.texts[0], star+below) || strings.Contains(name, "/") {
		return false
	}
	if c.inside != nil {
		return looks(c.inside)
	}
	return c.kind == texts || c.kind == setting || c.kind == reading
}
