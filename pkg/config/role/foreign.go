package role

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
)

// policyKeys are the keys of a role file's policy, and narrowKeys those that narrow its members' rights in other ways.
// Both are read strictly: a lost restriction would not be noticed.
var (
	policyKeys = []string{"sandbox", "isolation", "network", "permissions", "permission_mode", "permission_ask", "credentials", "paths", "worktree_links", "on_edit"}
	narrowKeys = []string{"tools", "disallowedTools", "plan_mode"}
)

// parseForeign parses a role file for another program, which accepts more than YAML: it reads a malformed front matter
// line by line, folds the name to a valid one, and leaves unreadable values out, with a notice. Restrictions of members
// are read as strictly as in our files, except for the mode under the other program's key. Errors: as of parse, if it
// is still not a role.
func parseForeign(file string, src []byte, w waits) (parsed, error) {
	head, body, err := divide(file, src)
	if err != nil {
		return parsed{}, err
	}
	p, f, root, err := lenient(file, head, w)
	if err != nil && !errors.As(err, new(strictFault)) {
		if fault := narrowsPlainly(file, string(head)); fault != nil {
			return parsed{}, fault
		}
		p, f, root, err = lenient(file, byLine(string(head)), w)
	}
	if err != nil {
		return parsed{}, err
	}
	f.Description = strings.TrimSpace(f.Description)
	f.Name = fold(f.Name)
	return p, p.fill(f, root, fold(nameOf(file)), file, body)
}

// strictFault is the error of a value that is read strictly: another reading would be a guess.
type strictFault struct{ error }

func (f strictFault) Unwrap() error { return f.error }

// lenient decodes the readable part of a front matter.
func lenient(file string, head []byte, w waits) (p parsed, f frontMatter, root strictyaml.Node, err error) {
	note := func(err error) { p.notices = append(p.notices, noticeOf(file, err)) }
	format := strictyaml.Format{File: file, Kind: "role file", Skip: 1, Waits: w,
		Unknown: func(err error) { note(withoutKeys(err)) },
		Faulty: func(key string, err error) error {
			if slices.Contains(policyKeys, key) || slices.Contains(narrowKeys, key) {
				return strictFault{err}
			}
			note(err)
			return nil
		}}
	root, err = format.Decode(head, &f)
	return p, f, root, err
}

// withoutKeys returns the error of an unknown key without the list of known ones: its author knows those of another
// program.
func withoutKeys(err error) error {
	fault := strictyaml.PlaceOf(err)
	if unknown, ok := errors.AsType[*strictyaml.UnknownKeyError](err); ok {
		fault.Err = fmt.Errorf("unknown key %.80q is left out", unknown.Key)
	}
	return &fault
}

var unfit = regexp.MustCompile(`[^a-z0-9]+`)

// fold turns a name into a valid role name: "Code_Reviewer" becomes code-reviewer.
func fold(name string) string {
	return strings.Trim(unfit.ReplaceAllString(strings.ToLower(name), "-"), "-")
}

var (
	// narrowLine matches a line that might narrow members' rights.
	narrowLine = regexp.MustCompile(`^["']?(` + strings.Join(slices.Concat(policyKeys, narrowKeys, []string{"permissionMode"}), "|") + `)["']?[ \t]*:`)

	plainEntry = `[ \t]*(?:"[^"\\,]*"|'[^',]*'|[^\[\]{}"'#&!,]*)[ \t]*`

	// plainText matches a value, or the entry of a list, that byLine reads as YAML would: nothing that begins another
	// form, quotes around all of it or none, and no comment.
	plainText = regexp.MustCompile(`^(\[` + plainEntry + `(,` + plainEntry + `)*\]|"[^"\\]*"|'[^']*'|[^\s\[\]{}"'#&!|>%@,-]((\S#|[^"'#])*[^\s"'#])?)$`)
)

// narrowsPlainly refuses a front matter for byLine if a key that narrows members' rights has a form that byLine could
// lose or misread. Errors: InvalidArgument, with its place.
func narrowsPlainly(file, head string) error {
	key, list, n := "", false, 1 // the narrowing key whose lines these are; whether entries of it may follow
	seen := map[string]bool{}
	for line := range strings.Lines(head) {
		n++
		line = strings.TrimRight(line, " \t\n")
		item, entry := strings.CutPrefix(strings.TrimLeft(line, " \t"), "- ")
		m, other := narrowLine.FindStringSubmatch(line), keyLine.FindStringSubmatch(line)
		plain := true
		switch {
		case line == "":
		case m != nil:
			key, list = m[1], other != nil && other[2] == ""
			plain = other != nil && other[1] == key && !seen[key] && (list || plainText.MatchString(other[2]))
			seen[key] = true
		case key == "":
		case other != nil:
			key = ""
		case list:
			item = strings.TrimLeft(item, " \t")
			plain = entry && item[0] != '[' && plainText.MatchString(item)
		default:
			plain = line[0] == '#'
		}
		if !plain {
			return fmt.Errorf("%s:%d:1: %w", file, n, team.Errorf(team.InvalidArgument, "%s cannot be read, since the front matter is no YAML", key).
				WithHint("put quotes around a text with a colon, or write %s once, as one line of names", key))
		}
	}
	return nil
}

var keyLine = regexp.MustCompile(`^([A-Za-z][A-Za-z_-]*):(?:[ \t]+(.*))?$`)

// byLine reads "key: rest of the line" where that is not YAML, since the rest contains a colon, such as "description:
// Use it when ... Examples: <example>". The examples of a description contain such lines too, so of a repeated key the
// first counts if it precedes them, else the last. A key without a value may be followed by a list, or by indented
// lines that are its text. The result is YAML, each key on its line.
func byLine(head string) []byte {
	type field struct {
		at   int
		text string
	}
	fields := map[string]field{}
	open, n := "", 0 // the key whose list or text may follow
	for line := range strings.Lines(head) {
		n++
		line = strings.TrimRight(line, " \t\n")
		in := strings.TrimLeft(line, " \t")
		if open != "" && in != "" {
			if item, ok := strings.CutPrefix(in, "- "); ok {
				f := fields[open]
				fields[open] = field{f.at, f.text + "," + unquote(item)}
				continue
			}
			if in != line && fields[open].text != "" && !strings.HasPrefix(fields[open].text, ",") || in != line && open == "description" {
				f := fields[open]
				fields[open] = field{f.at, strings.TrimSpace(f.text + " " + in)}
				continue
			}
		}
		m := keyLine.FindStringSubmatch(line)
		if m == nil {
			if in != "" {
				open = ""
			}
			continue
		}
		open = ""
		if _, twice := fields[m[1]]; twice && (m[1] == "name" || m[1] == "description") {
			continue
		}
		text := unquote(m[2])
		switch {
		case slices.Contains([]string{"|", ">", "|-", ">-"}, text):
			text = ""
		case strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]"):
			text = text[1 : len(text)-1]
		}
		if fields[m[1]] = (field{n, text}); text == "" {
			open = m[1]
		}
	}
	lines := make([]string, n)
	for key, f := range fields {
		text, _ := json.Marshal(f.text)                                                                 // texts can always be written
		if f.text == "true" || f.text == "false" || f.text == "" && !slices.Contains(policyKeys, key) { // of those nothing is left out
			text = []byte(f.text)
		}
		lines[f.at-1] = key + ": " + string(text)
	}
	return []byte(strings.Join(lines, "\n"))
}

// unquote removes the quotes around a text.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 1 && s[0] == s[len(s)-1] && (s[0] == '"' || s[0] == '\'') {
		return s[1 : len(s)-1]
	}
	return s
}
