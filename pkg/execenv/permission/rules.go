package permission

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"agentteam/pkg/team"
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
	"multi_edit": "edit_file", "MultiEdit": "edit_file", "WebFetch": "web_fetch", "WebSearch": "web_search", "message": "send_message",
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

// outside are folders at the root in which no workspace is.
var outside = []string{"bin", "boot", "dev", "etc", "lib", "lib64", "proc", "run", "sbin", "sys", "usr"}

// useless is why a rule that comes after those of r has no effect; "" if it has one.
func (r *Rules) useless(list string, n rule) string {
	if list != "deny" && n.tool != "bash" && kinds[n.tool] == edits && n.files.absolute {
		first, _, _ := strings.Cut(strings.TrimPrefix(n.files.globs[0], "/"), "/")
		if slices.Contains(outside, first) {
			return "it leads out of the workspace, where no tool changes a file"
		}
	}
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
