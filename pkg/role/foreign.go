package role

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"agentteam/pkg/team"
)

// parseForeign reads a role file that was written for another program, which takes
// more than YAML allows: a front matter that is no YAML is read line by line, the name
// is folded to what a role may be called, and a number of turns that is none is left
// out. Errors: as of [Parse], for what is no role even so.
func parseForeign(file string, src []byte) (team.Role, error) {
	head, body, err := divide(file, src)
	if err != nil {
		return team.Role{}, err
	}
	var fields map[string]yaml.Node
	if err := yaml.Unmarshal(head, &fields); err != nil {
		fields = readLines(string(head))
	}
	text := func(key string) string {
		n := fields[key]
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return ""
		}
		return strings.TrimSpace(n.Value)
	}
	f := frontMatter{Name: text("name"), Description: text("description"), Model: text("model"), Dialect: text("dialect"), Approver: team.Approver(text("approver")),
		PlanMode: text("plan_mode") == "true" || text("permissionMode") == "plan"}
	f.MaxTurns, _ = strconv.Atoi(text("max_turns"))
	f.TheirTurns, _ = strconv.Atoi(text("maxTurns"))
	f.MaxTurns, f.TheirTurns = max(f.MaxTurns, 0), max(f.TheirTurns, 0)
	if n := fields["tools"]; f.Tools.UnmarshalYAML(&n) != nil || n.Tag == "!!null" {
		f.Tools = nil
	}
	f.Name = fold(f.Name)
	if !team.IsAlias(f.Model) { // no process could know it
		f.Model = ""
	}
	return f.role(fold(nameOf(file)), file, body)
}

var unfit = regexp.MustCompile(`[^a-z0-9]+`)

// fold makes of a name one that a role may have: "Code_Reviewer" is code-reviewer.
func fold(name string) string {
	return strings.Trim(unfit.ReplaceAllString(strings.ToLower(name), "-"), "-")
}

var keyLine = regexp.MustCompile(`^([A-Za-z][A-Za-z_-]*):(?:[ \t]+(.*))?$`)

// readLines reads "key: rest of the line" where that is no YAML, since the rest has a
// colon of its own, such as "description: Use it when ... Examples: <example>". The
// examples of a description hold lines of that form too, so of a key that comes twice
// the first counts if it is one that stands before them, else the last. A key with
// nothing behind it may be followed by a list.
func readLines(head string) map[string]yaml.Node {
	fields := map[string]yaml.Node{}
	open := "" // the key whose list may follow
	for line := range strings.Lines(head) {
		line = strings.TrimRight(line, " \t\n")
		if item, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "- "); ok && open != "" {
			n := fields[open]
			n.Value += "," + unquote(item)
			fields[open] = n
			continue
		}
		open = ""
		m := keyLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if _, twice := fields[m[1]]; twice && (m[1] == "name" || m[1] == "description") {
			continue
		}
		fields[m[1]] = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: unquote(m[2])}
		if m[2] == "" {
			open = m[1]
		}
	}
	return fields
}

// unquote takes away the quotes around a text.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 1 && s[0] == s[len(s)-1] && (s[0] == '"' || s[0] == '\'') {
		return s[1 : len(s)-1]
	}
	return s
}
