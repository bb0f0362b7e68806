package skills

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
)

// The limits of the specification, in characters.
const (
	maxName          = 64
	maxDescription   = 1024
	maxCompatibility = 500
)

var nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// head is the front matter of SKILL.md. Only name, description and disable-model-invocation are
// used.
type head struct {
	Name          string `yaml:"name"`
	Description   string `yaml:"description"`
	License       string `yaml:"license"`
	Compatibility string `yaml:"compatibility"`
	Metadata      any    `yaml:"metadata"`
	AllowedTools  any    `yaml:"allowed-tools"`
	NotByModels   bool   `yaml:"disable-model-invocation"`
}

// parse reads SKILL.md of a folder with that name leniently: it ignores keys of other programs, and
// a description with a colon needs no quotes.
func parse(s Skill, name string, src []byte) (Skill, error) {
	h, body, _, err := divide(src)
	if err != nil {
		return s, err
	}
	s.Name, s.Description, s.Hidden, s.Body = name, team.OneLine(strings.TrimSpace(h.Description)), h.NotByModels, team.Clean(strings.TrimSpace(string(body)), maxText)
	if s.Description == "" {
		return s, errors.New("it has no description")
	}
	return s, nil
}

// colonLine matches a line of the front matter whose value may contain a colon.
var colonLine = regexp.MustCompile(`(?m)^(name|description|compatibility|license):[ \t]+([^"'|>\s].*)$`)

// divide returns the front matter of SKILL.md, the text after it, and the deviations from the
// specification.
func divide(src []byte) (h head, body []byte, strict []string, err error) {
	src = bytes.ReplaceAll(bytes.TrimPrefix(src, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	if len(src) > maxText {
		return h, nil, nil, fmt.Errorf("%s is larger than %d bytes", FileName, maxText)
	}
	if !utf8.Valid(src) {
		return h, nil, nil, errors.New(FileName + " is no text in UTF-8")
	}
	front, ok := bytes.CutPrefix(src, []byte("---\n"))
	front, body, closed := bytes.Cut(append(front, '\n'), []byte("\n---\n"))
	if !ok || !closed {
		return h, nil, nil, errors.New("it begins with ---, name and description in YAML, and ---; the instructions follow")
	}
	format := strictyaml.Format{File: FileName, Kind: "skill", Skip: 1, Unknown: func(err error) {
		key, _, _ := strings.Cut(err.Error(), " in the skill;")
		strict = append(strict, key+", which is no key of the specification")
	}, Faulty: func(key string, err error) error { return nil }}
	if _, err = format.Decode(front, &h); err != nil {
		h, strict = head{}, []string{"the front matter is no YAML without quotes: " + team.OneLine(err.Error())}
		_, err = format.Decode(colonLine.ReplaceAllFunc(front, quoted), &h)
	}
	return h, body, strict, err
}

// quoted returns a line of the front matter with quotes around its value.
func quoted(line []byte) []byte {
	key, value, _ := bytes.Cut(line, []byte(":"))
	text, _ := json.Marshal(strings.TrimSpace(string(value))) // a text can always be written
	return slices.Concat(key, []byte(": "), text)
}

// Validate reads the skill of a folder strictly by the specification, and returns its faults, a
// line each, and notices.
func Validate(dir string) (faults, notices []string) {
	s, _, err := one(dir)
	if err != nil {
		return []string{err.Error()}, nil
	}
	h, _, strict, err := divide(s.contents[FileName])
	if err != nil {
		return []string{err.Error()}, nil
	}
	if h.Name != s.Name {
		faults = append(faults, fmt.Sprintf("name: %q is not the name of its folder, %s", team.Clip(h.Name, 80), s.Name))
	}
	for _, t := range []struct {
		key, text string
		most      int
	}{{"description", h.Description, maxDescription}, {"compatibility", h.Compatibility, maxCompatibility}} {
		if n := utf8.RuneCountInString(t.text); n > t.most {
			faults = append(faults, fmt.Sprintf("%s: %d characters, at most %d", t.key, n, t.most))
		}
	}
	faults = append(faults, strict...)
	if h.AllowedTools != nil {
		notices = append(notices, "allowed-tools grants nothing and restricts nothing here")
	}
	return faults, notices
}
