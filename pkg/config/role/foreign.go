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

// policyKeys are those by which a role file speaks of its policy, and narrowKeys by which it narrows
// otherwise what its members may do. What is left out there would not be missed, so that they are
// read strictly.
var (
	policyKeys = []string{"sandbox", "isolation", "network", "permissions", "permission_mode", "permission_ask", "credentials", "paths", "worktree_links"}
	narrowKeys = []string{"tools", "disallowedTools", "plan_mode"}
)

// parseForeign reads a role file that was written for another program, which takes
// more than YAML allows: a front matter that is no YAML is read line by line, the name
// is folded to what a role may be called, and a value that cannot be read is left
// out, with a notice. What narrows its members is read as strictly as in a role file, but for the
// mode by the other program's key. Errors: as of parse, for what is no role even so.
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

// strictFault is the fault of a value that is read strictly: to read it in another way would be to guess.
type strictFault struct{ error }

func (f strictFault) Unwrap() error { return f.error }

// lenient decodes what can be read of a front matter.
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

// withoutKeys is the fault of a key without the list of those that there are: its author knows
// those of another program.
func withoutKeys(err error) error {
	fault := strictyaml.PlaceOf(err)
	if unknown, ok := errors.AsType[*strictyaml.UnknownKeyError](err); ok {
		fault.Err = fmt.Errorf("unknown key %.80q is left out", unknown.Key)
	}
	return &fault
}

var unfit = regexp.MustCompile(`[^a-z0-9]+`)

// fold makes of a name one that a role may have: "Code_Reviewer" is code-reviewer.
func fold(name string) string {
	return strings.Trim(unfit.ReplaceAllString(strings.ToLower(name), "-"), "-")
}

var (
	// narrowLine is a line that might be meant to narrow what members may do.
	narrowLine = regexp.MustCompile(`^["']?(` + strings.Join(slices.Concat(policyKeys, narrowKeys, []string{"permissionMode"}), "|") + `)["']?[ \t]*:`)

	plainEntry = `[ \t]*(?:"[^"\\,]*"|'[^',]*'|[^\[\]{}"'#&!,]*)[ \t]*`

	// plainText is a value, or the entry of a list, that byLine reads as YAML would: with nothing that
	// begins another form, quotes around all of it or none, and no comment.
	plainText = regexp.MustCompile(`^(\[` + plainEntry + `(,` + plainEntry + `)*\]|"[^"\\]*"|'[^']*'|[^\s\[\]{}"'#&!|>%@,-]((\S#|[^"'#])*[^\s"'#])?)$`)
)

// narrowsPlainly refuses a front matter that byLine would read, if a key that narrows what members may
// do is there in a form that byLine could lose or misread. Errors: InvalidArgument, with its place.
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

// byLine reads "key: rest of the line" where that is no YAML, since the rest has a
// colon of its own, such as "description: Use it when ... Examples: <example>". The
// examples of a description hold lines of that form too, so of a key that comes twice
// the first counts if it is one that stands before them, else the last. A key with
// nothing behind it may be followed by a list, or by lines that are further in and are its
// text. The result is YAML, each key on its line.
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

// unquote takes away the quotes around a text.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 1 && s[0] == s[len(s)-1] && (s[0] == '"' || s[0] == '\'') {
		return s[1 : len(s)-1]
	}
	return s
}
