package role

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"agentteam/pkg/strictyaml"
	"agentteam/pkg/team"
)

// parseForeign reads a role file that was written for another program, which takes
// more than YAML allows: a front matter that is no YAML is read line by line, the name
// is folded to what a role may be called, and a number of turns that is none is left
// out. What it says of hands is read as strictly as in a role file, but for the mode by the
// other program's key: a rule that is left out would not be missed. Errors: as of parse, for
// what is no role even so.
func parseForeign(file string, src []byte) (team.Role, error) {
	head, body, err := divide(file, src)
	if err != nil {
		return team.Role{}, err
	}
	format := strictyaml.Format{File: file, Kind: "role file", Unknown: func(error) {}}
	var fields map[string]strictyaml.Node
	root, err := format.Decode(head, &fields)
	if err != nil {
		if root, err = format.Decode(byLine(string(head)), &fields); err != nil {
			return team.Role{}, err
		}
	}
	var f frontMatter
	if err := root.Decode(&f.hands); err != nil {
		return team.Role{}, err
	}
	var plan string
	for key, into := range map[string]any{
		"name": &f.Name, "description": &f.Description, "tools": &f.Tools, "model": &f.Model, "dialect": &f.Dialect, "approver": &f.Approver,
		"plan_mode": &plan, "permissionMode": &f.TheirMode, "max_turns": &f.MaxTurns, "maxTurns": &f.TheirTurns,
	} {
		if n, ok := fields[key]; ok {
			_ = n.Decode(into) // what cannot be read is left out
		}
	}
	f.Description, f.PlanMode = strings.TrimSpace(f.Description), plan == "true"
	if !slices.Contains(f.TheirMode.Values(), string(f.TheirMode)) {
		f.TheirMode = ""
	}
	f.MaxTurns, f.TheirTurns = max(f.MaxTurns, 0), max(f.TheirTurns, 0)
	f.Name = fold(f.Name)
	if f.Model = strings.TrimSpace(f.Model); !team.IsAlias(f.Model) { // no process could know it
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

// byLine reads "key: rest of the line" where that is no YAML, since the rest has a
// colon of its own, such as "description: Use it when ... Examples: <example>". The
// examples of a description hold lines of that form too, so of a key that comes twice
// the first counts if it is one that stands before them, else the last. A key with
// nothing behind it may be followed by a list. The result is YAML.
func byLine(head string) []byte {
	fields := map[string]string{}
	open := "" // the key whose list may follow
	for line := range strings.Lines(head) {
		line = strings.TrimRight(line, " \t\n")
		if item, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "- "); ok && open != "" {
			fields[open] += "," + unquote(item)
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
		fields[m[1]] = unquote(m[2])
		if m[2] == "" {
			open = m[1]
		}
	}
	yaml, _ := json.Marshal(fields) // texts can always be written
	return yaml
}

// unquote takes away the quotes around a text.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 1 && s[0] == s[len(s)-1] && (s[0] == '"' || s[0] == '\'') {
		return s[1 : len(s)-1]
	}
	return s
}
