package role

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentteam/pkg/execenv/trust"
	"agentteam/pkg/team"
)

func TestParse(t *testing.T) {
	for name, tt := range map[string]struct {
		src   string
		want  team.Role
		fails bool
	}{
		"a name in Chinese": {"---\nname: 审查\ndescription: d\n---\n", team.Role{}, true},
		"list of tools":     {"---\nname: a\ndescription: d 🚀\ntools: [bash, read_file]\nmodel: m\n---\nDo it.\n", team.Role{Name: "a", Description: "d 🚀", Tools: []string{"bash", "read_file"}, Model: "m", Instructions: "Do it."}, false},
		"tools in a line":   {"---\ndescription: d\ntools: Read, Grep\n---\nx", team.Role{Name: "file", Description: "d", Tools: []string{"Read", "Grep"}, Instructions: "x"}, false},
		"windows lines":     {"---\r\ndescription: d\r\nmodel: inherit\r\n---\r\nx\r\ny", team.Role{Name: "file", Description: "d", Instructions: "x\ny"}, false},
		"turns":             {"---\ndescription: d\nmax_turns: 80\n---", team.Role{Name: "file", Description: "d", MaxTurns: 80}, false},
		"turns, by another": {"---\ndescription: d\nmaxTurns: 7\n---", team.Role{Name: "file", Description: "d", MaxTurns: 7}, false},
		"turns, none":       {"---\ndescription: d\nmax_turns: many\n---", team.Role{}, true},
		"turns, too few":    {"---\ndescription: d\nmax_turns: -1\n---", team.Role{}, true},
		"no body":           {"---\ndescription: d\n---", team.Role{Name: "file", Description: "d"}, false},
		"no front matter":   {"just text", team.Role{}, true},
		"not closed":        {"---\nname: a\n", team.Role{}, true},
		"not YAML":          {"---\nname: [\n---\n", team.Role{}, true},
		"no description":    {"---\nname: a\n---\nx", team.Role{}, true},
		"a name too wild":   {"---\nname: a b\ndescription: d\n---\nx", team.Role{}, true},
		"reserved as name":  {"---\nname: user\ndescription: d\n---\nx", team.Role{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse("dir/file.md", []byte(tt.src), nil)
			if tt.fails {
				if !errors.Is(err, team.InvalidArgument) {
					t.Fatalf("parse = %+v, %v, want invalid_argument", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != tt.want.Name || got.Description != tt.want.Description || got.MaxTurns != tt.want.MaxTurns || got.Model != tt.want.Model ||
				got.Instructions != tt.want.Instructions || !slices.Equal(got.Tools, tt.want.Tools) {
				t.Errorf("parse = %+v, want %+v", got, tt.want)
			}
		})
	}
}

// What is wrong in a role file is reported with its place; keys of other programs are
// left alone.
func TestParseNamesThePlace(t *testing.T) {
	for src, want := range map[string]string{
		"---\ndescription: d\ncolor: red\nmax_turns: many\n---\n": `dir/a.md:4:12: max_turns: "many" is not a whole number, 0 or more`,
		"---\ndescription: [d]\n---\n":                            "dir/a.md:2:14: description must be a text",
		"---\ndescription: d\ntools: {a: b}\n---\n":               "dir/a.md:3:8: tools must be a list",
		"---\ndescription: a: b\n---\n":                           "dir/a.md:2:15: mapping values are not allowed in this context",
	} {
		if _, err := parse("dir/a.md", []byte(src), nil); !errors.Is(err, team.InvalidArgument) || err.Error() != want {
			t.Errorf("%q: %v, want %s", src, err, want)
		}
	}
}

// Of two spellings that differ, a notice names the one that does not count.
func TestTwoSpellings(t *testing.T) {
	for src, want := range map[string]string{
		"max_turns: 3\nmaxTurns: 4\n":                             "dir/a.md:4:1: maxTurns: 4 does not count beside max_turns: 3",
		"permission_mode: default\npermissionMode: acceptEdits\n": "dir/a.md:4:1: permissionMode: acceptEdits does not count beside permission_mode: default",
		"permission_mode: plan\npermissionMode: dontAsk\n":        "dir/a.md:4:1: permissionMode: dontAsk does not count beside permission_mode: plan",
		"max_turns: 3\nmaxTurns: 3\npermissionMode: dontAsk\n":    "",
	} {
		p, err := parse("dir/a.md", []byte("---\ndescription: d\n"+src+"---\n"), nil)
		if got := ""; err != nil || len(p.notices) > 1 {
			t.Errorf("%q: %v, %v", src, p.notices, err)
		} else {
			for _, n := range p.notices {
				got = n.String()
			}
			if got != want {
				t.Errorf("%q: %q, want %q", src, got, want)
			}
		}
	}
}

// What another program takes, it wrote.
func TestParseForeign(t *testing.T) {
	const wild = "---\nname: Code_Reviewer\ndescription: Use this agent when code was written. Examples: <example>Context: The user wrote a function. user: \"Please write: x\"\n" +
		"model: in an example</example>\ntools:\n  - Read\n  - \"Grep\"\nmodel: \"opus\"\ncolor: red\nmaxTurns: 12\n---\n\nYou review.\n"
	for name, tt := range map[string]struct {
		src  string
		want team.Role // the zero value: it is refused
	}{
		"wild": {wild, team.Role{Name: "code-reviewer", MaxTurns: 12, Model: "opus", Color: "red", Tools: []string{"Read", "Grep"}, Instructions: "You review.",
			Description: "Use this agent when code was written. Examples: <example>Context: The user wrote a function. user: \"Please write: x\""}},
		"tame":             {"---\nname: a\ndescription: >\n  two\n  lines\ntools: [Read]\nmodel: inherit\n---\nx", team.Role{Name: "a", Description: "two lines", Tools: []string{"Read"}, Instructions: "x"}},
		"a name of words":  {"---\nname: Über Code Reviewer!\ndescription: d\n---", team.Role{Name: "ber-code-reviewer", Description: "d"}},
		"no name":          {"---\ndescription: d\n---", team.Role{Name: "some-file", Description: "d"}},
		"windows, a mark":  {"---\r\ndescription: a: b\r\ntools: Read, Grep\r\n---\r\nx", team.Role{Name: "some-file", Description: "a: b", Tools: []string{"Read", "Grep"}, Instructions: "x"}},
		"strange turns":    {"---\ndescription: d\nmax_turns: many\nmaxTurns: -3\ntools:\n---", team.Role{Name: "some-file", Description: "d"}},
		"a list as name":   {"---\nname: [a]\ndescription: d\n---", team.Role{Name: "some-file", Description: "d"}},
		"a name of no use": {"---\nname: 审查\ndescription: d\n---", team.Role{Name: "some-file", Description: "d"}},
		"no description":   {"---\nname: a: b\n---", team.Role{}},
		"a strange model":  {"---\ndescription: d\nmodel: the best one\n---", team.Role{Name: "some-file", Description: "d"}},
		"strange tools":    {"---\ndescription: d\ntools: {Read: true}\n---", team.Role{}},
		"strange denial":   {"---\ndescription: d\ndisallowedTools: {Bash: true}\n---", team.Role{}},
		"a strange gate":   {"---\ndescription: d\nplan_mode: yes please\n---", team.Role{}},
		"strange links":    {"---\ndescription: d\nworktree_links: {a: b}\n---", team.Role{}},
		"reserved":         {"---\nname: User\ndescription: d\n---", team.Role{}},
		"not closed":       {"---\nname: a\n", team.Role{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseForeign("dir/Some_File.md", []byte(tt.src), nil)
			if tt.want.Name == "" {
				if !errors.Is(err, team.InvalidArgument) {
					t.Errorf("ParseForeign = %+v, %v, want invalid_argument", got, err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got.Role, tt.want) {
				t.Errorf("ParseForeign = %+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}

// What narrows a member is never lost where the front matter is no YAML: it is read, or the file is refused.
func TestForeignNarrowsByLine(t *testing.T) {
	for lines, want := range map[string]string{ // the names that are read; "": it is refused
		"disallowedTools: Bash, Write":                       "Bash Write",
		"disallowedTools: [Bash, Write]":                     "Bash Write",
		"disallowedTools: \"Bash, Write\"":                   "Bash Write",
		"disallowedTools:\n  - Bash\n\n  - 'Write'":          "Bash Write",
		"disallowedTools:\n- Bash\n# of the shell\ncolor: x": "",
		"disallowedTools: Bash\n# of the shell\ncolor: red":  "Bash",
		"disallowedTools: *":                                 "*",
		"disallowedTools:\n  [Bash, Write]":                  "",
		"disallowedTools: [Bash,\n  Write]":                  "",
		"disallowedTools: [\"Bash\", 'Write', Edit ]":        "Bash Write Edit",
		"disallowedTools: [\"Bash, Write\"]":                 "",
		"disallowedTools: [\"Bash\" Write]":                  "",
		"disallowedTools: [\"Ba\\x73h\"]":                    "",
		"disallowedTools: Bash,\n  Write":                    "",
		"disallowedTools: |\n  Bash":                         "",
		"disallowedTools:\n  # never\n  - Bash":              "",
		"disallowedTools:\n  -\n    Bash":                    "",
		"disallowedTools:\n  - [Bash]":                       "",
		"disallowedTools:\n  - Bash # never":                 "",
		"disallowedTools:\nBash":                             "",
		"disallowedTools:Bash":                               "",
		"disallowedTools : Bash":                             "",
		"\"disallowedTools\": Bash":                          "",
		"disallowedTools: Bash # never":                      "",
		"disallowedTools: \"Bash\", \"Write\"":               "",
		"disallowedTools: &x Bash":                           "",
		"disallowedTools: Bash\ndisallowedTools: Write":      "",
		"sandbox : bubblewrap":                               "",
		"permissionMode : plan":                              "",
		"permissions:\n  deny: [Bash]":                       "",
		"tools:\n  [Read, Grep]":                             "",
	} {
		got, err := parseForeign("dir/a.md", []byte("---\ndescription: use it: now\n"+lines+"\n---\nx"), nil)
		switch {
		case want == "" && (!errors.Is(err, team.InvalidArgument) || !strings.HasPrefix(err.Error(), "dir/a.md:")):
			t.Errorf("%q is read: %+v, %v", lines, got.Role, err)
		case want != "" && (err != nil || strings.Join(got.DisallowedTools, " ") != want):
			t.Errorf("%q: %q, %v, want %s", lines, got.DisallowedTools, err, want)
		}
	}
}

func TestLoad(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(".claude/agents/coder.md", "---\ndescription: from claude\n---\n")
	write(".claude/agents/painter.md", "---\ndescription: from claude\n---\n")
	write(".claude/agents/empty.md", "---\nname: empty\n---\n")
	write(".claude/agents/user.md", "---\ndescription: d\n---\n")
	write(".claude/agents/folder.md/x", "")
	write(".claude/agents/Wild_One.md", "---\ndescription: Use it when: <example>\n---\n")
	write(".agents/painter.md", "---\ndescription: ours\n---\n")
	write(".agents/README.md", "# Our agents\n")
	loaded, err := Load(dir)
	roles, skipped := loaded.All, loaded.Notices
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		filepath.Join(dir, ".claude", "agents", "empty.md") + ":2:1: role empty has no description (say in a sentence when the leader should choose it); the file is left out",
		filepath.Join(dir, ".claude", "agents", "folder.md") + ":1:1: ; the file is left out", // in the system's words
		filepath.Join(dir, ".claude", "agents", "user.md") + `:2:1: role name "user" is reserved (reserved are: teams, pool, all, board, user, watchdog); the file is left out`,
		filepath.Join(dir, ".agents", "README.md") + ":1:1: a role file begins with ---; the file is left out",
	}
	var got []string
	for _, n := range skipped {
		if strings.HasSuffix(n.File, "folder.md") {
			n.Text = ""
		}
		got = append(got, n.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("notices %q, want %q", got, want)
	}
	for name, want := range map[string]string{"coder": "from claude", "painter": "ours", "wild-one": "Use it when: <example>"} {
		if got := roles[name].Description; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"leader", "explorer", "planner", "reviewer", "tester"} {
		if roles[name].Instructions == "" {
			t.Errorf("built-in role %s is missing", name)
		}
	}
	write(".agents/broken.md", "---\nno end")
	if _, err := Load(dir); !errors.Is(err, team.InvalidArgument) {
		t.Errorf("a broken file: %v, want invalid_argument", err)
	}
}

// The file that New writes shows each key that a role file may have, but for those of other programs,
// and is a role file with all of them.
func TestTemplateHasAllKeys(t *testing.T) {
	all := regexp.MustCompile(`(?m)^# ([a-zA-Z_]+: )`).ReplaceAllString(strings.ReplaceAll(template, "NAME", "writer"), "$1")
	if _, err := parse("writer.md", []byte(all), nil); err != nil {
		t.Error(err)
	}
	theirs := []string{"skills", "mcpServers", "maxTurns", "permissionMode"}
	for _, head := range []any{frontMatter{}, trust.Form{}} {
		for f := range reflect.TypeOf(head).Fields() {
			key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if key != "" && !slices.Contains(theirs, key) && !strings.Contains(all, "\n"+key+": ") {
				t.Errorf("the template does not show %s", key)
			}
		}
	}
}
