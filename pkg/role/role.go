// Package role reads roles from Markdown files with YAML front matter, and holds
// the built-in ones. Whoever makes a team or asks for a spawn reads them and
// stores them with the team; whoever runs an agent reads them only there.
package role

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"agentteam/pkg/team"
)

//go:embed builtin/*.md
var builtin embed.FS

// frontMatter is the head of a role file. Keys it does not name are those of other
// programs that read the same files, and are left alone.
type frontMatter struct {
	Name        string    `yaml:"name"`
	Description string    `yaml:"description"`
	Tools       toolNames `yaml:"tools"`
	Model       string    `yaml:"model"`
}

// toolNames is a YAML list or, as other programs write it, one string with commas.
type toolNames []string

func (t *toolNames) UnmarshalYAML(n *yaml.Node) error {
	var list []string
	if n.Kind == yaml.ScalarNode {
		for name := range strings.SplitSeq(n.Value, ",") {
			if name = strings.TrimSpace(name); name != "" {
				list = append(list, name)
			}
		}
	} else if err := n.Decode(&list); err != nil {
		return err
	}
	*t = list
	return nil
}

// Parse reads a role file. name is that of the file, and the role's if it names
// none. Errors: InvalidArgument, with the file and what is wrong in it.
func Parse(file string, src []byte) (team.Role, error) {
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(src, []byte("---\n"))
	head, body, closed := bytes.Cut(rest, []byte("\n---\n"))
	if !closed {
		head, closed = bytes.CutSuffix(rest, []byte("\n---"))
	}
	if !ok || !closed {
		return team.Role{}, team.Errorf(team.InvalidArgument, "%s has no front matter", file).
			WithHint("a role file begins with ---, name and description in YAML, and ---; the instructions follow")
	}
	var f frontMatter
	if err := yaml.Unmarshal(head, &f); err != nil {
		return team.Role{}, team.Errorf(team.InvalidArgument, "%s: %w", file, err)
	}
	if f.Name == "" {
		f.Name = strings.TrimSuffix(filepath.Base(file), ".md")
	}
	if f.Model == "inherit" {
		f.Model = ""
	}
	r := team.Role{Name: f.Name, Description: f.Description, Tools: f.Tools, Model: f.Model, Instructions: strings.TrimSpace(string(body))}
	if err := r.Validate(); err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// Load returns the roles that hold in dir: the built-in ones, replaced and added to
// by those of the user's directory, of dir/.claude/agents and of dir/.agents, in
// this order. A role file that cannot be read is an error: a role that silently is
// another than the one written is worse than none. A file that does not begin with
// front matter, such as a README.md, is no role file; skipped lists those, for whoever
// wrote one and expects a role.
func Load(dir string) (roles map[string]team.Role, skipped []string, err error) {
	roles = map[string]team.Role{}
	own, err := fs.Sub(builtin, "builtin")
	if err != nil {
		return nil, nil, err
	}
	if _, err := read(roles, "built-in", own); err != nil {
		return nil, nil, err
	}
	dirs := []string{filepath.Join(dir, ".claude", "agents"), filepath.Join(dir, ".agents")}
	if user, err := os.UserConfigDir(); err == nil {
		dirs = append([]string{filepath.Join(user, "agentteam", "agents")}, dirs...)
	}
	for _, d := range dirs {
		others, err := read(roles, d, os.DirFS(d))
		if err != nil {
			return nil, nil, err
		}
		skipped = append(skipped, others...)
	}
	return roles, skipped, nil
}

func read(into map[string]team.Role, where string, dir fs.FS) (skipped []string, err error) {
	files, err := fs.Glob(dir, "*.md")
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, f := range files {
		path := filepath.Join(where, f)
		src, err := fs.ReadFile(dir, f)
		if err != nil {
			errs = append(errs, team.Errorf(team.InvalidArgument, "role file %s: %w", path, err))
			continue
		}
		if !bytes.HasPrefix(src, []byte("---")) {
			skipped = append(skipped, path)
			continue
		}
		r, err := Parse(path, src)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		into[r.Name] = r
	}
	return skipped, errors.Join(errs...)
}
