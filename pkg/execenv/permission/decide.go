// Package permission judges calls of tools by rules such as "Bash(git push *)": [Parse] checks the rules, [Rules.Decide] applies them
// to one call, and [Judge] adds the mode and the sandbox where no rule matches.
//
// A command line is read in the order in which bash runs it. A part without a known plain form is a doubt: a deny or ask rule that
// may apply to it asks, and no rule allows it. The package reads the disk only for symbolic links and for files in folders. Package
// sandbox confines the effects of programs, and protects the files of [Rules.Held]; package approval asks.
package permission

import (
	"cmp"
	"encoding/json"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/patch"
)

// Decision is the decision on a call.
type Decision int

// The decisions, the strictest last.
const (
	None  Decision = iota // no rule matches
	Allow                 // it may run
	Ask                   // a person has to allow it
	Deny                  // it may not run
)

func (d Decision) String() string { return [...]string{"none", "allow", "ask", "deny"}[d] }

// Verdict is the decision on a call, with its reason.
type Verdict struct {
	Decision Decision
	Rule     string // that decides, as written; "" = none
	Why      string // for people: which part of the call it is about, or what is not known of it
	Doubt    bool   // it is not known whether a rule of deny matches
}

// Decide judges a call by the rules alone; dir is the absolute path of the workspace. Deny precedes ask, and ask precedes allow. A
// command that a rule of deny or ask may match has to be asked for. None with a Why is a call that an allow rule might match.
func (r *Rules) Decide(req tool.Request, dir string) Verdict {
	if r == nil {
		r = &Rules{}
	}
	dir = filepath.Clean(dir)
	switch kind := kindOf(req); kind {
	case runs:
		return r.line(read(argument(req, "command"), dir, r.home), dir)
	case reads, edits:
		return r.files(req, kind == edits, dir)
	}
	return r.first(func(rule rule, _ bool) bool { return rule.names(req) && rule.isHost(argument(req, "url")) }, "")
}

// first returns the verdict of the first rule that applies; strict is for lists that restrict.
func (r *Rules) first(applies func(rule rule, strict bool) bool, why string) Verdict {
	for i, list := range [][]rule{r.deny, r.ask, r.allow} {
		for _, rule := range list {
			if applies(rule, i < 2) {
				return Verdict{Decision: Deny - Decision(i), Rule: rule.said, Why: why}
			}
		}
	}
	return Verdict{}
}

// kindOf returns the kind of the called tool. A tool of ours without a kind that takes a path counts as a file tool.
func kindOf(req tool.Request) int {
	kind, listed := kinds[req.Tool]
	switch {
	case listed, strings.HasPrefix(req.Tool, "mcp__"), argument(req, "path") == "":
		return kind
	case req.Traits.ReadOnly:
		return reads
	}
	return edits
}

// argument returns a string argument of a call; "" if there is none.
func argument(req tool.Request, name string) string {
	var given map[string]any
	if json.Unmarshal(req.Arguments, &given) != nil {
		return ""
	}
	s, _ := given[name].(string)
	return s
}

// names reports whether the rule is for the called tool. A rule for edit_file is for every tool that edits.
func (r rule) names(req tool.Request) bool {
	switch {
	case r.tool == req.Tool:
		return true
	case strings.HasPrefix(r.tool, "mcp__"):
		server := strings.TrimSuffix(r.tool, "*")
		return strings.HasPrefix(req.Tool, server) && (r.tool != server || strings.HasPrefix(req.Tool, server+"__") && strings.Count(server, "__") == 1)
	}
	return r.tool == "edit_file" && kindOf(req) == edits ||
		r.said == "Task" && req.Tool == "subagent" // Claude Code has called it so
}

func (r rule) isHost(of string) bool {
	u, err := url.Parse(of)
	if r.all || err != nil {
		return r.all
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	below, all := strings.CutPrefix(r.host, "*")
	return r.host != "" && (host == r.host || all && strings.HasSuffix(host, below))
}

// files judges a call of a file tool, by the strictest verdict on one of its files.
func (r *Rules) files(req tool.Request, edit bool, dir string) (strictest Verdict) {
	strictness := func(v Verdict) int { return []int{1, 0, 2, 3}[v.Decision] } // no rule is stricter than one that allows
	for i, f := range filesOf(req) {
		one := req
		if f.New { // to make a file is what write_file does
			one.Tool = "write_file"
		}
		if v := r.file(one, f.Path, edit, dir); i == 0 || strictness(v) > strictness(strictest) {
			strictest = v
		}
	}
	return strictest
}

// filesOf returns the files of a call of a file tool, at least one. A patch names several.
func filesOf(req tool.Request) (files []patch.File) {
	named, _ := patch.Parse(argument(req, "patch")) // the tool refuses one that cannot be read
	for _, f := range named {
		if files = append(files, f); f.To != "" {
			files = append(files, patch.File{Path: f.To, New: true})
		}
	}
	if said := argument(req, "path"); said != "" || len(files) == 0 {
		files = append(files, patch.File{Path: cmp.Or(said, ".")})
	}
	return files
}

// file judges a call for one file. A file that may not be read may not be edited: an edit shows its content.
func (r *Rules) file(req tool.Request, said string, edit bool, dir string) Verdict {
	at := said
	if !path.IsAbs(at) {
		at = dir + "/" + said
	}
	places := []string{clean(at), resolve(at)}
	return r.first(func(rule rule, strict bool) bool {
		about := func(p string) bool { return rule.files.matches(p, dir, strict) || strict && !known(p) }
		return (rule.names(req) || rule.tool == "read_file" && (!edit || strict && !rule.all)) &&
			(rule.all || about(places[0]) || strict && about(places[1]))
	}, said)
}

// Hides returns a function that reports whether a deny or ask rule covers reading an absolute path, for a tool that searches from
// start in the workspace dir; nil if none does. [Rules.Decide] has judged rules about start or about each call.
func (r *Rules) Hides(tool, dir, start string) func(path string) bool {
	if r == nil {
		return nil
	}
	dir = filepath.Clean(dir)
	about := slices.DeleteFunc(slices.Concat(r.deny, r.ask), func(rule rule) bool {
		return rule.all || rule.tool != tool && rule.tool != "read_file" || rule.files.matches(clean(start), dir, true)
	})
	if len(about) == 0 {
		return nil
	}
	return func(path string) bool {
		return slices.ContainsFunc(about, func(r rule) bool { return r.files.matches(clean(path), dir, true) })
	}
}

// line judges a command line.
func (r *Rules) line(l *line, dir string) Verdict {
	j := judged{r, dir, new(int)}
	maybe := Verdict{}
	for i, rule := range slices.Concat(r.deny, r.ask) {
		denies := i < len(r.deny)
		sure, perhaps := j.match(l, rule)
		switch {
		case sure != "" && denies:
			return Verdict{Decision: Deny, Rule: rule.said, Why: sure}
		case sure != "" && !maybe.Doubt:
			return Verdict{Decision: Ask, Rule: rule.said, Why: sure}
		case perhaps != "" && maybe.Decision == None:
			maybe = Verdict{Decision: Ask, Rule: rule.said, Why: perhaps + " (a plain command, all words written out, can be judged)", Doubt: denies}
		}
	}
	if maybe.Decision != None {
		return maybe
	}
	rule, why := j.allowed(l)
	switch {
	case why == "" && rule != "":
		return Verdict{Decision: Allow, Rule: rule}
	case len(l.calls) == 0 && len(l.touches) == 0 && why == "":
		return Verdict{}
	}
	return Verdict{Why: why}
}

// judged is the state of judging a command line.
type judged struct {
	*Rules
	dir  string
	seen *int // names below folders
}

// match returns the part of the line that a rule certainly matches, or why it may match one.
func (j judged) match(l *line, r rule) (sure, perhaps string) {
	if r.tool == "bash" && r.all {
		return "every command", ""
	}
	if r.tool == "bash" || r.opens(true, true) {
		perhaps = l.opens
	}
	for i, t := range l.touches {
		if !r.opens(t.read, t.write) {
			continue
		}
		made := slices.ContainsFunc(l.touches[:i], func(t touch) bool { return t.write })
		switch exact := !r.all && r.files.matches(t.path, j.dir, true); {
		case t.sure && (r.all || exact):
			return t.shown(), ""
		case r.all || perhaps != "":
		case exact || r.files.mayMatch(t.path, j.dir) && (made || !r.files.absent(t.path, j.dir)):
			perhaps = "it may open a file of this rule: " + t.shown()
		case t.deep && r.files.holds(t, j.dir, j.seen):
			perhaps = "a file of this rule may be in it: " + t.shown()
		}
	}
	for _, c := range l.calls {
		switch {
		case r.tool != "bash":
		case slices.ContainsFunc(c.texts, r.command.covers.MatchString):
			return c.String(), ""
		case perhaps == "" && slices.ContainsFunc(slices.Concat(c.texts, c.maybe), r.command.meets):
			perhaps = "it may run a command of this rule: " + c.String()
		}
		if c.inside != nil {
			certain, doubt := j.match(c.inside, r)
			if certain != "" {
				return certain, ""
			}
			perhaps = cmp.Or(perhaps, doubt)
		}
	}
	return "", perhaps
}

// shown returns a file and the command for people.
func (t touch) shown() string { return t.said + " (" + t.by + ")" }

// opens reports whether the rule is about files that are read, or written.
func (r rule) opens(read, write bool) bool {
	switch r.tool {
	case "read_file":
		return read
	case "edit_file", "write_file":
		return write
	}
	return false
}

// nothing are commands without effect, which need no rule.
var nothing = []string{"true", "false", ":", "exit", "return", "break", "continue"}

// allowed returns a rule that allows a command of the line, and why some part is not allowed; "" if all parts are.
func (j judged) allowed(l *line) (by, why string) {
	if why := cmp.Or(l.doubt, l.opens); why != "" {
		return "", why
	}
	for _, c := range l.calls {
		rule, why := j.allows(c)
		if by = cmp.Or(by, rule); why != "" {
			return "", why
		}
	}
	for _, t := range l.touches {
		if _, inside := inside(t.path, j.dir); !t.redirect || inside && !t.write {
			continue
		}
		rule := j.first(func(r rule, strict bool) bool {
			return !strict && r.opens(!t.write, t.write) && (r.all && known(t.path) || !r.all && r.files.matches(t.path, j.dir, false))
		}, "").Rule
		if by = cmp.Or(by, rule); rule == "" {
			return "", "no rule allows to open " + t.said
		}
	}
	return by, ""
}

// allows returns the rule that allows a command in its plain form; a rule without a star allows any form.
func (j judged) allows(c call) (by, why string) {
	covering := func(exact bool) string {
		return j.first(func(r rule, strict bool) bool {
			return !strict && r.tool == "bash" && (!exact && r.all || !r.all && (!exact || r.command.exact()) && r.command.covers.MatchString(c.texts[0]))
		}, "").Rule
	}
	exact, any := covering(true), covering(false)
	switch head, _, _ := strings.Cut(c.texts[0], sep); {
	case strings.ContainsAny(c.texts[0], star+below):
		return "", "the words of a command are not all in the line: " + c.String()
	case exact != "":
		return exact, ""
	case c.doubt != "":
		return "", c.doubt
	case c.inside != nil:
		return j.allowed(c.inside)
	case any != "", slices.Contains(nothing, head):
		return any, ""
	}
	return "", "no rule allows " + c.String()
}

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
