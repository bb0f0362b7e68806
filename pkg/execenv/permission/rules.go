package permission

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// Rules are the rules for one member. A nil *Rules has none. Safe for concurrent use.
type Rules struct {
	deny, ask, allow []rule
	home             string
}

// rule is one rule, of one tool.
type rule struct {
	said    string // as written
	tool    string // our name of the tool; mcp__server and mcp__server__ stand for all of a server
	all     bool   // every call of the tool
	command command
	files   pattern
	host    string // in lower case; "*.name" is all below name
}

// lists are the names of the lists, in the order in which they are checked.
var lists = []string{"deny", "ask", "allow"}

// Parse checks the lists. Warnings are one line each: rules that can never match, with the reason. The home of "~/" is the process's.
// Errors: InvalidArgument with the list, the rule and a suggestion.
func Parse(p team.Permissions) (rules *Rules, warnings []string, err error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	r := &Rules{home: home}
	kinds := map[string]*[]rule{"deny": &r.deny, "ask": &r.ask, "allow": &r.allow}
	for i, given := range [][]string{p.Deny, p.Ask, p.Allow} {
		list := lists[i]
		for n, said := range given {
			parsed, never, err := parse(said, home)
			if err != nil {
				return nil, nil, team.Errorf(team.InvalidArgument, "permissions: %s: rule %d, %q: %w", list, n+1, said, err)
			}
			if never == "" {
				never = r.useless(list, parsed)
			}
			if never != "" {
				warnings = append(warnings, fmt.Sprintf("permissions: %s: %q never matches: %s", list, said, never))
			}
			*kinds[list] = append(*kinds[list], parsed)
		}
	}
	return r, warnings, nil
}

// shape matches a rule: a name, and optionally something in parentheses.
var shape = regexp.MustCompile(`(?s)^([A-Za-z_][A-Za-z0-9_-]*\*?)(\((.*)\))?$`)

// parse parses one rule. never states why it can match nothing.
func parse(said, home string) (r rule, never string, err error) {
	m := shape.FindStringSubmatch(said)
	if m == nil {
		return r, "", errors.New("a rule is Tool or Tool(what), such as Bash(git push *)")
	}
	name, spec := m[1], m[3]
	r = rule{said: said, tool: team.NativeTool(name)}
	if own := foreign[name]; own != "" {
		r.tool = own
	}
	if m[2] == "" || spec == "*" {
		r.all = true
	} else if strings.TrimSpace(spec) == "" {
		return r, "", fmt.Errorf("there is nothing between the parentheses: write %s for every call", name)
	}
	if strings.HasSuffix(name, "*") && !strings.HasPrefix(name, "mcp__") {
		return r, "", errors.New("only names of MCP tools may end in *")
	}
	switch kind := kinds[r.tool]; {
	case r.all && kind == 0 && !strings.HasPrefix(name, "mcp__"):
		never = noTool(name)
	case r.all:
	case kind == runs:
		r.command, never, err = commandOf(spec)
	case kind == reads || kind == edits:
		r.files, never, err = patternOf(spec, home)
	case kind == fetches:
		r.host, err = hostOf(spec)
	case strings.HasPrefix(name, "mcp__") || kind == other:
		never = name + " takes nothing in parentheses"
	default:
		never = noTool(name)
	}
	return r, never, err
}

// The kinds of tools, by the content of a rule's parentheses.
const (
	runs    = iota + 1 // a command
	reads              // files
	edits              // files
	fetches            // a host
	other              // nothing
)

// kinds maps the tools to their kinds.
var kinds = map[string]int{
	"bash": runs, "read_file": reads, "glob": reads, "grep": reads,
	"write_file": edits, "edit_file": edits, "web_fetch": fetches,
	"web_search": other, "send_message": other, "broadcast": other, "ask_user": other, "read_mail": other,
	"list_teammates": other, "list_tasks": other, "get_task": other, "create_task": other, "create_tasks": other,
	"claim_task": other, "update_task": other, "release_task": other, "spawn_teammate": other,
	"remove_teammate": other, "finish_team": other, "approve_plan": other, "submit_plan": other,
	"TeamCreate": other, "TeamDelete": other, "TeamCollect": other,
	"subagent": other, "task_output": other, "task_stop": other, "skill": other,
}

// foreign maps other names of our tools, in addition to those of [team.NativeTool].
var foreign = map[string]string{
	"multi_edit": "edit_file", "MultiEdit": "edit_file", "apply_patch": "edit_file", "WebFetch": "web_fetch", "WebSearch": "web_search", "message": "send_message",
	"update_task_status": "update_task", "BashOutput": "task_output", "KillShell": "task_stop",
}

func noTool(name string) string {
	for known := range kinds {
		if strings.EqualFold(known, name) || strings.EqualFold(known, strings.ReplaceAll(name, "-", "_")) {
			return fmt.Sprintf("there is no tool %s, but there is %s", name, known)
		}
	}
	return "there is no tool " + name
}

var hostShape = regexp.MustCompile(`^(\*\.)?[a-z0-9.-]+$`)

// hostOf parses "domain:example.com".
func hostOf(spec string) (string, error) {
	host, ok := strings.CutPrefix(spec, "domain:")
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !ok || !hostShape.MatchString(host) {
		return "", errors.New("write the host as domain:example.com, or domain:*.example.com for all names below it; no scheme, port or path")
	}
	return host, nil
}

// useless is why a rule that comes after those of r has no effect; "" if it has one.
func (r *Rules) useless(list string, n rule) string {
	if p := programs()[n.command.first]; list == "allow" && n.tool == "bash" && !n.all && !n.command.exact() && (p.kind == opaque || n.command.first == "source" || n.command.first == ".") {
		return "no rule but one without * allows " + n.command.first + ": what it runs is not known"
	}
	var earlier []rule
	switch list {
	case "ask":
		earlier = r.deny
	case "allow":
		earlier = slices.Concat(r.deny, r.ask)
	}
	for _, e := range earlier {
		if e.hides(n) {
			return fmt.Sprintf("%q comes first", e.said)
		}
	}
	return ""
}

// hides reports whether every call that other matches is matched by r.
func (r rule) hides(other rule) bool {
	switch {
	case r.tool != other.tool || r.host != other.host:
		return r.all && r.tool == other.tool
	case r.all:
		return true
	case other.all:
		return false
	case kinds[r.tool] == runs:
		return !slices.ContainsFunc(other.command.patterns, func(p string) bool { return !r.command.covers.MatchString(p) })
	}
	return slices.Equal(r.files.globs, other.files.globs)
}

var (
	control    = regexp.MustCompile(`[\x00-\x08\x0a-\x1f]`)
	errControl = errors.New("a rule is one line without control characters")
)

// command is a rule for commands: it matches the commands that one of its patterns covers. A trailing " *" also matches nothing.
type command struct {
	patterns []string
	covers   *regexp.Regexp
	first    string // the first word; "" if it is not known
}

// exact reports whether c matches one command only.
func (c command) exact() bool { return len(c.patterns) == 1 && known(c.patterns[0]) }

func (c command) meets(line string) bool {
	return slices.ContainsFunc(c.patterns, func(p string) bool { return meets(p, inLine.Replace(line)) })
}

// commandOf parses the parentheses of a command rule. never states why it can match no command, "" if it can.
func commandOf(spec string) (c command, never string, err error) {
	spec, prefix := strings.CutSuffix(spec, ":*")
	words, never, err := tokens(spec)
	if err == nil && len(words) == 0 && never == "" {
		err = errors.New("there is no command before :*")
	}
	if err != nil {
		return c, "", err
	}
	if prefix {
		words = append(words, star)
	}
	c.patterns = []string{strings.Join(words, sep)}
	if bare, ok := strings.CutSuffix(c.patterns[0], sep+star); ok {
		c.patterns = append(c.patterns, bare)
	}
	c.covers = covering(c.patterns...)
	if len(words) > 0 && known(words[0]) {
		c.first = words[0]
	}
	if name, _, assigns := strings.Cut(c.first, "="); assigns && syntax.ValidName(name) {
		never = "an assignment before a command is no part of what a rule matches"
	}
	return c, never, nil
}

// tokens returns the words of a pattern. Quotes are as in bash: a * in quotes is a character.
func tokens(spec string) (words []string, never string, err error) {
	if control.MatchString(spec) {
		return nil, "", errControl
	}
	home, end := (&reader{}).shell(), 0
	for w, err := range syntax.NewParser(syntax.KeepComments(true)).WordsSeq(strings.NewReader(spec)) {
		switch {
		case err != nil && strings.Contains(err.Error(), "quote"):
			return nil, "", errors.New(`a quote is not closed: write \ before the character itself`)
		case err != nil:
			return words, "it is taken apart as a command line: write a rule for each of its commands", nil
		}
		syntax.Walk(w, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Lit:
				n.Value = stars.ReplaceAllString(n.Value, `${1}`+star)
			case *syntax.DblQuoted:
				return false
			case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp:
				never = "what $ becomes is not known before the command runs"
			}
			return never == ""
		})
		if end = int(w.End().Offset()); never == "" {
			word, err := expand.Literal(home, w)
			if words = append(words, word); err != nil {
				never = err.Error()
			}
		}
	}
	if never == "" && end < len(strings.TrimSpace(spec)) {
		never = "# begins a comment"
	}
	return words, never, nil
}

// stars matches the stars outside quotes.
var stars = regexp.MustCompile(`((?:^|[^\\])(?:\\\\)*)\*`)

// Always returns the rule that the answer "always" adds for a call: the exact command, the file of an edit, the host of a fetch, an
// MCP tool. It is "" if every rule would allow more than the call, as for a line of several commands.
func Always(req tool.Request) string {
	rule := ""
	switch kind := kindOf(req); {
	case kind == runs:
		if command := strings.TrimSpace(argument(req, "command")); command != "" {
			rule = "Bash(" + command + ")"
		}
	case kind == edits:
		rule = alwaysOf("Edit", argument(req, "path"))
	case kind == reads && req.Tool == "read_file": // others may look at a folder, and the rule would open all that is in it
		rule = alwaysOf("Read", argument(req, "path"))
	case kind == fetches:
		if u, err := url.Parse(argument(req, "url")); err == nil {
			rule = "WebFetch(domain:" + strings.ToLower(u.Hostname()) + ")"
		}
	case strings.HasPrefix(req.Tool, "mcp__"):
		rule = req.Tool
	}
	// In any case it has to be a valid rule that allows this call.
	r, warnings, err := Parse(team.Permissions{Allow: []string{rule}})
	if err != nil || len(warnings) > 0 || r.allow[0].tool == "bash" && !r.allow[0].command.exact() || r.Decide(req, "/workspace").Decision != Allow {
		return ""
	}
	return rule
}

// alwaysOf returns the rule for one file; "" for one that may be outside the workspace.
func alwaysOf(name, file string) string {
	if file == "" {
		return ""
	}
	clean := path.Clean(file)
	if clean == "." || clean == ".." || strings.HasPrefix(clean, "../") {
		return ""
	}
	return name + "(/" + strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(clean) + ")"
}
