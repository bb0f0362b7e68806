package role

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

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
		"no body":           {"---\ndescription: d\n---", team.Role{Name: "file", Description: "d"}, false},
		"no front matter":   {"just text", team.Role{}, true},
		"not closed":        {"---\nname: a\n", team.Role{}, true},
		"not YAML":          {"---\nname: [\n---\n", team.Role{}, true},
		"no description":    {"---\nname: a\n---\nx", team.Role{}, true},
		"a name too wild":   {"---\nname: a b\ndescription: d\n---\nx", team.Role{}, true},
		"reserved as name":  {"---\nname: user\ndescription: d\n---\nx", team.Role{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse("dir/file.md", []byte(tt.src))
			if tt.fails {
				if !errors.Is(err, team.InvalidArgument) {
					t.Fatalf("Parse = %+v, %v, want invalid_argument", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != tt.want.Name || got.Description != tt.want.Description || got.Model != tt.want.Model ||
				got.Instructions != tt.want.Instructions || !slices.Equal(got.Tools, tt.want.Tools) {
				t.Errorf("Parse = %+v, want %+v", got, tt.want)
			}
		})
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
	write(".agents/painter.md", "---\ndescription: ours\n---\n")
	write(".agents/README.md", "# Our agents\n")
	roles, skipped, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{filepath.Join(dir, ".agents", "README.md")}; !slices.Equal(skipped, want) {
		t.Errorf("skipped %q, want %q", skipped, want)
	}
	for name, want := range map[string]string{"coder": "from claude", "painter": "ours"} {
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
	if _, _, err := Load(dir); !errors.Is(err, team.InvalidArgument) {
		t.Errorf("a broken file: %v, want invalid_argument", err)
	}
}
