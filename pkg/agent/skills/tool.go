package skills

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/dialect"
)

type args struct {
	Name  string `json:"name,omitempty"`
	File  string `json:"file,omitempty" jsonschema:"one of its files, in place of its text"`
	Args  string `json:"args,omitempty" jsonschema:"what its text calls $ARGUMENTS"`
	Query string `json:"query,omitempty" jsonschema:"without name: words to search all skills for"`
}

// maxFound is how many skills a search shows.
const maxFound = 20

// Tool returns the tool skill. load returns the skills where the member works; see [Load].
func Tool(load func(ctx context.Context) (Set, error)) tool.Tool {
	t := tool.New("skill", "Read the instructions of a skill before work of its kind.", func(ctx context.Context, in args) (tool.Output, error) {
		s, err := load(ctx)
		if err != nil {
			return tool.Output{}, err
		}
		if in.Name == "" {
			return tool.Output{Brief: s.found(in.Query)}, nil
		}
		k, ok := s.Get(strings.TrimPrefix(in.Name, "/"))
		if !ok || k.Hidden {
			return tool.Output{}, team.Errorf(team.NotFound, "there is no skill %q", team.Clip(in.Name, 80)).WithHint("search with query")
		}
		text := k.text(in.Args)
		if in.File != "" {
			text, err = k.file(in.File)
		}
		return tool.Output{Brief: text}, err
	}, tool.Traits{ReadOnly: true, Parallel: true})
	return dialect.Translate([]tool.Tool{t}, map[string][]dialect.Form{"skill": {{Name: "Skill", Dialect: team.Claude, Names: map[string][]string{"name": {"skill"}}}}})[0]
}

// found lists the skills whose name or description has each word of a query.
func (s Set) found(query string) string {
	words := strings.Fields(strings.ToLower(query))
	var lines []string
	for _, k := range s.All {
		line := k.line()
		if k.Hidden || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(strings.ToLower(k.Name+" "+k.Description), w) }) {
			continue
		}
		if len(lines) == maxFound {
			return strings.Join(lines, "\n") + "\n[more: give further words]"
		}
		lines = append(lines, line)
	}
	if lines == nil {
		return "(no skill has these words)"
	}
	return strings.Join(lines, "\n")
}

// text returns the skill as a model reads it. Commands in its text that other programs would run
// first are left as they are.
func (k Skill) text(args string) string {
	body := strings.NewReplacer("${CLAUDE_SKILL_DIR}", k.Folder, "$ARGUMENTS", args).Replace(k.Body)
	if args != "" && !strings.Contains(k.Body, "$ARGUMENTS") {
		body += "\n\nARGUMENTS: " + args
	}
	if k.Folder != "" {
		body = "Base directory for this skill: " + k.Folder + "\n\n" + body
	}
	if len(k.Files) > 0 {
		body += "\n\n[files of this skill, to be read with file: " + strings.Join(k.Files, ", ") + "]"
	}
	return body
}

// file returns a file of the skill. Errors: NotFound; InvalidArgument for one that cannot be shown.
func (k Skill) file(name string) (string, error) {
	if !slices.Contains(k.Files, name) {
		return "", team.Errorf(team.NotFound, "the skill %s has no file %q", k.Name, team.Clip(name, 80)).WithHint("its files: %s", strings.Join(k.Files, ", "))
	}
	data, ok := k.contents[name]
	if !ok || !utf8.Valid(data) {
		return "", team.Errorf(team.InvalidArgument, "%s of the skill %s is no text of at most %d bytes", name, k.Name, maxText).WithHint("it lies in %s", k.Folder)
	}
	return team.Clean(string(data), maxText), nil
}

// Given returns the text of a skill that a role names. ok is false if the skill is not in the set.
func (s Set) Given(name string) (text string, ok bool) {
	k, ok := s.Get(name)
	return k.text(""), ok
}
