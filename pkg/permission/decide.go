package permission

import (
	"cmp"
	"encoding/json"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/tool"
)

// Decision is what a call gets.
type Decision int

// The decisions, the strictest last.
const (
	None  Decision = iota // no rule matches
	Allow                 // it may run
	Ask                   // a person has to allow it
	Deny                  // it may not run
)

func (d Decision) String() string { return [...]string{"none", "allow", "ask", "deny"}[d] }

// Verdict is what a call gets, and why.
type Verdict struct {
	Decision Decision
	Rule     string // that decides, as written; "" = none
	Why      string // for people: which part of the call it is about, or what is not known of it
}

// Decide judges a call by the rules alone; dir is the absolute path of the workspace. Deny goes
// before ask, and ask before allow. A command of which it cannot be known whether a rule of deny
// or ask matches has to be asked for. None with a Why is a call that a rule of allow might match.
func (r *Rules) Decide(req tool.Request, dir string) Verdict {
	if r == nil {
		r = &Rules{}
	}
	dir = filepath.Clean(dir)
	switch kind := kindOf(req); kind {
	case runs:
		return r.line(read(argument(req, "command"), dir, r.home), dir)
	case reads, edits:
		return r.file(req, kind == edits, dir)
	}
	host := ""
	if u, err := url.Parse(argument(req, "url")); err == nil {
		host = strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	}
	for _, list := range r.lists() {
		for _, rule := range list.rules {
			if (rule.all || rule.host != "") && rule.names(req) && (rule.all || rule.isHost(host)) {
				return Verdict{list.decision, rule.said, ""}
			}
		}
	}
	return Verdict{}
}

// kindOf is the kind of the tool that is called. A tool of ours that has no kind and takes a path is
// one for files, so that what may not be read is not shown by a new tool either.
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

// argument is a text among the arguments of a call; "" if there is none.
func argument(req tool.Request, name string) string {
	var given map[string]any
	if json.Unmarshal(req.Arguments, &given) != nil {
		return ""
	}
	s, _ := given[name].(string)
	return s
}

type ruled struct {
	decision Decision
	rules    []rule
}

func (r *Rules) lists() []ruled { return []ruled{{Deny, r.deny}, {Ask, r.ask}, {Allow, r.allow}} }

// names reports whether the rule is for the tool that is called. A rule for edit_file is for every tool that
// edits.
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

func (r rule) isHost(host string) bool {
	if all, ok := strings.CutPrefix(r.host, "*"); ok {
		return strings.HasSuffix(host, all)
	}
	return host != "" && host == r.host
}

// file judges a call of a tool for files. What a member may not read it may not edit, for an edit
// shows what is there.
func (r *Rules) file(req tool.Request, edit bool, dir string) Verdict {
	said := cmp.Or(argument(req, "path"), ".")
	abs := said
	if !path.IsAbs(abs) {
		abs = dir + "/" + said
	}
	at := place{clean(literal(abs), dir), said}
	for _, list := range r.lists() {
		strict := list.decision != Allow
		for _, rule := range list.rules {
			applies := rule.names(req) || rule.tool == "read_file" && (!edit || strict && !rule.all)
			if applies && (rule.all || rule.files.matches(at, dir, strict)) {
				return Verdict{list.decision, rule.said, said}
			}
		}
	}
	return Verdict{}
}

// Hides returns what reports of paths, absolute ones, that a rule of deny or ask is about reading them by a tool which
// searches from start in the workspace dir; nil if none is. Rules about start, or about each call of the tool, have no say: by them
// [Rules.Decide] has judged the call.
func (r *Rules) Hides(tool, dir, start string) func(path string) bool {
	if r == nil {
		return nil
	}
	dir = filepath.Clean(dir)
	from := place{clean(literal(start), dir), start}
	var about []rule
	for _, list := range r.lists()[:2] {
		for _, rule := range list.rules {
			if !rule.all && (rule.tool == tool || rule.tool == "read_file") && !rule.files.matches(from, dir, true) {
				about = append(about, rule)
			}
		}
	}
	if len(about) == 0 {
		return nil
	}
	return func(path string) bool {
		at := place{clean(literal(path), dir), path}
		return slices.ContainsFunc(about, func(r rule) bool { return r.files.matches(at, dir, true) })
	}
}

// line judges a command line.
func (r *Rules) line(l *line, dir string) Verdict {
	j := judged{r, dir}
	maybe := Verdict{}
	for _, list := range r.lists()[:2] {
		if v, found := j.certain(l, list); found {
			return v
		}
		if v, found := j.possible(l, list); found && maybe.Decision == None {
			maybe = v
		}
	}
	if maybe.Decision != None {
		return maybe
	}
	rule, why := j.allowed(l)
	switch {
	case why == "" && rule != "":
		return Verdict{Allow, rule, ""}
	case len(l.calls) == 0 && len(l.files) == 0 && why == "":
		return Verdict{}
	}
	return Verdict{Why: why}
}

// judged is a command line that is judged by rules.
type judged struct {
	*Rules
	dir string
}

// certain finds a rule that matches part of the line for certain.
func (j judged) certain(l *line, list ruled) (Verdict, bool) {
	for _, rule := range list.rules {
		if said, found := j.holds(l, rule); found {
			return Verdict{list.decision, rule.said, said}, true
		}
	}
	return Verdict{}, false
}

func (j judged) holds(l *line, r rule) (said string, found bool) {
	if r.tool == "bash" && r.all {
		return "", true
	}
	for _, f := range l.files {
		if r.opens(!f.write, f.write) && (r.all || r.files.matches(f.place, j.dir, true)) {
			return f.said, true
		}
	}
	for _, c := range l.calls {
		if r.tool == "bash" && slices.ContainsFunc(append(c.also, c.text), r.command.covers) {
			return c.text.String(), true
		}
		for _, n := range c.names {
			writer := slices.Contains(writers, path.Base(c.text.head()))
			known := writer || slices.Contains(readers, path.Base(c.text.head()))
			if n.sure && r.opens(n.reads, n.writes && writer) && (r.all && known || !r.all && r.files.matches(n.place, j.dir, true)) {
				return n.said, true
			}
		}
		if c.inside != nil {
			if said, found := j.holds(c.inside, r); found {
				return said, true
			}
		}
	}
	return "", false
}

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

// possible finds a rule that may match part of the line.
func (j judged) possible(l *line, list ruled) (Verdict, bool) {
	for _, rule := range list.rules {
		if why := j.mayHold(l, rule); why != "" {
			return Verdict{Ask, rule.said, why}, true
		}
	}
	return Verdict{}, false
}

func (j judged) mayHold(l *line, r rule) (why string) {
	for _, f := range l.files {
		if r.opens(!f.write, f.write) && r.files.mayMatch(f.place, j.dir) {
			return "it is not known which file " + f.said + " is"
		}
	}
	for _, c := range l.calls {
		if r.tool == "bash" && (c.open || slices.ContainsFunc(append(c.also, c.text), r.command.meets)) {
			return "it is not known what this runs: " + cmp.Or(strings.Join(slices.Concat(c.doubts, l.doubts), "; "), c.text.String())
		}
		if !r.all && r.opens(true, true) && c.open && slices.Equal(c.text, text{star}) { // a line that was not read to its end
			return "it is not known what this opens: " + strings.Join(l.doubts, "; ")
		}
		for _, n := range c.names {
			if !r.all && r.opens(n.reads, n.writes) && (r.files.mayMatch(n.place, j.dir) || r.files.matches(n.place, j.dir, true)) {
				return "it is not known what this does to a file: " + c.text.String()
			}
		}
		if c.inside != nil {
			if why := j.mayHold(c.inside, r); why != "" {
				return why
			}
		}
	}
	return ""
}

// nothing are commands that do nothing, so they need no rule.
var nothing = []string{"true", "false", ":", "exit", "return", "break", "continue"}

// allowed returns the first rule that allows a command of the line, and why some part is not
// allowed; "" if all are.
func (j judged) allowed(l *line) (by, why string) {
	if len(l.doubts) > 0 {
		return "", l.doubts[0]
	}
	for _, c := range l.calls {
		rule, why := j.allows(c)
		if why != "" {
			return "", why
		}
		by = cmp.Or(by, rule)
	}
	for _, f := range l.files {
		if _, inside := f.inside(j.dir); inside && !f.write {
			continue
		}
		i := slices.IndexFunc(j.allow, func(r rule) bool {
			return r.opens(!f.write, f.write) && (r.all && f.path.certain() || !r.all && r.files.matches(f.place, j.dir, false))
		})
		if i < 0 {
			return "", "no rule allows to open " + f.said
		}
		by = cmp.Or(by, j.allow[i].said)
	}
	return by, ""
}

// allows returns the rule that allows a command.
func (j judged) allows(c call) (by, why string) {
	if c.expand {
		return "", "what the shell makes of this is not known: " + c.text.String()
	}
	if i := j.covering(c, true); i >= 0 {
		return j.allow[i].said, ""
	}
	if len(c.doubts) > 0 {
		return "", c.doubts[0]
	}
	if c.inside != nil {
		by, why = j.allowed(c.inside)
		if named := j.naming(c); why != "" && named != "" {
			return named, ""
		}
		if why != "" || c.passes {
			return by, why
		}
	}
	if i := j.covering(c, false); i >= 0 {
		return j.allow[i].said, ""
	}
	if slices.Contains(nothing, c.text.head()) {
		return "", ""
	}
	return "", "no rule allows " + c.text.String()
}

// naming is the first rule that allows a launcher and names the command that it runs, which is no
// launcher or wrapper itself and does nothing unknown; "" if there is none.
func (j judged) naming(c call) string {
	if c.unnamed == nil || len(c.inside.doubts) > 0 || slices.ContainsFunc(c.inside.calls, func(c call) bool { return c.inside != nil || c.expand || len(c.doubts) > 0 }) {
		return ""
	}
	other := append(slices.Clone(c.unnamed), 0) // no command: a rule that covers it names none
	i := slices.IndexFunc(j.allow, func(r rule) bool {
		return r.tool == "bash" && !r.all && r.command.covers(c.text) && !r.command.covers(other)
	})
	if i < 0 {
		return ""
	}
	return j.allow[i].said
}

// covering is the first rule of allow that matches a command: of those that match no other
// command if exact is set.
func (j judged) covering(c call, exact bool) int {
	return slices.IndexFunc(j.allow, func(r rule) bool {
		switch {
		case r.tool != "bash":
			return false
		case exact:
			return !r.all && !c.glob && r.command.exact() && r.command.covers(c.text)
		}
		return r.all || r.command.covers(c.text) || c.plain != nil && r.command.covers(c.plain)
	})
}
