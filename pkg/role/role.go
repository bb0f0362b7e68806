// Package role reads roles from Markdown files with YAML front matter, and holds
// the built-in ones. Whoever makes a team or asks for a spawn reads them and
// stores them with the team; whoever runs an agent reads them only there.
package role

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"agentteam/pkg/folder"
	"agentteam/pkg/grant"
	"agentteam/pkg/permission"
	"agentteam/pkg/strictyaml"
	"agentteam/pkg/team"
)

//go:embed builtin/*.md
var builtin embed.FS

// frontMatter is the head of a role file. Keys it does not name are those of other
// programs that read the same files, and are left alone.
type frontMatter struct {
	Name        string        `yaml:"name"`
	Description string        `yaml:"description"`
	Tools       toolNames     `yaml:"tools"`
	Model       string        `yaml:"model"`
	MaxTurns    int           `yaml:"max_turns" minimum:"0"`
	PlanMode    bool          `yaml:"plan_mode"`
	Approver    team.Approver `yaml:"approver"`
	Dialect     string        `yaml:"dialect"`
	TheirTurns  int           `yaml:"maxTurns" minimum:"0"` // as other programs write it
	TheirMode   grant.Mode    `yaml:"permissionMode"`       // the same

	hands grant.Form
}

// toolNames is a YAML list or, as other programs write it, one string with commas.
type toolNames []string

func (t *toolNames) UnmarshalText(text []byte) error {
	*t = nil
	for name := range strings.SplitSeq(string(text), ",") {
		if name = strings.TrimSpace(name); name != "" {
			*t = append(*t, name)
		}
	}
	return nil
}

// parse reads a role file. The role's name is that of the file if it names none.
// Errors: InvalidArgument, with the file and what is wrong in it.
func parse(file string, src []byte) (team.Role, error) {
	head, body, err := divide(file, src)
	if err != nil {
		return team.Role{}, err
	}
	var f frontMatter
	format := strictyaml.Format{File: file, Kind: "role file", Skip: 1, Unknown: func(error) {}}
	root, err := format.Decode(head, &f)
	if err == nil {
		err = root.Decode(&f.hands)
	}
	if err != nil {
		return team.Role{}, err
	}
	return f.role(nameOf(file), file, body)
}

// divide returns the front matter of a role file and what follows it.
func divide(file string, src []byte) (head, body []byte, err error) {
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(src, []byte("---\n"))
	head, body, closed := bytes.Cut(rest, []byte("\n---\n"))
	if !closed {
		head, closed = bytes.CutSuffix(rest, []byte("\n---"))
	}
	if !ok || !closed {
		return nil, nil, team.Errorf(team.InvalidArgument, "%s has no front matter", file).
			WithHint("a role file begins with ---, name and description in YAML, and ---; the instructions follow")
	}
	return head, body, nil
}

func nameOf(file string) string { return strings.TrimSuffix(filepath.Base(file), ".md") }

// role is what f and the instructions behind it say, under the other name if it has
// none.
func (f frontMatter) role(name, file string, body []byte) (team.Role, error) {
	if f.Model == team.Inherit {
		f.Model = ""
	}
	f.hands.Mode = cmp.Or(f.hands.Mode, f.TheirMode)
	hands, planMode := f.hands.Hands()
	r := team.Role{Name: cmp.Or(f.Name, name), Description: f.Description, Tools: f.Tools, Model: f.Model,
		MaxTurns: cmp.Or(f.MaxTurns, f.TheirTurns), Dialect: team.Dialect(f.Dialect), PlanMode: f.PlanMode || planMode, Approver: f.Approver, Hands: hands, Instructions: strings.TrimSpace(string(body))}
	err := r.Validate()
	if err == nil {
		_, _, err = permission.Parse(hands.Permissions)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// Skipped is a file in a folder of roles that gave none.
type Skipped struct {
	File string
	Why  string
}

func (s Skipped) String() string { return s.File + " is left out: " + s.Why }

// Roles are the roles that hold in a folder.
type Roles struct {
	All     map[string]team.Role
	Files   map[string]string // where those come from that are not built in
	Skipped []Skipped         // what was left out, for whoever wrote it and expects a role

	// Withheld is what roles would grant by files that no person has trusted, by their names. They
	// are in All without it.
	Withheld map[string]grant.Withheld

	trusted grant.Store
}

// Load returns the roles that hold in dir: the built-in ones, replaced and added to
// by those of the user's directory, of dir/.claude/agents and of dir/.agents, in
// this order. A role file that cannot be read is an error: a role that silently is
// another than the one written is worse than none; of several bad files all are told,
// joined. A file that does not begin with front matter, such as a README.md, is no role
// file. Those of .claude/agents were written for another program and are read by
// [parseForeign]; one that is no role even so is left out.
func Load(dir string) (Roles, error) {
	r := Roles{All: map[string]team.Role{}, Files: map[string]string{}, Withheld: map[string]grant.Withheld{}, trusted: grant.OfUser()}
	own, err := fs.Sub(builtin, "builtin")
	if err != nil {
		return r, err
	}
	if err := r.read("built-in", own, false); err != nil {
		return r, err
	}
	clear(r.Files)
	type source struct {
		path    string
		foreign bool
	}
	folders := []source{{filepath.Join(dir, foreignDir), true}, {filepath.Join(dir, ".agents"), false}}
	if user, err := os.UserConfigDir(); err == nil {
		folders = slices.Insert(folders, 0, source{filepath.Join(user, "agentteam", "agents"), false})
	}
	var errs []error
	for _, f := range folders {
		errs = append(errs, r.read(f.path, folder.FS(f.path), f.foreign))
	}
	return r, errors.Join(errs...)
}

// Grants returns what a role file, which holds src, would grant if a person trusted it, in a few
// words each. Errors: InvalidArgument for what is no role file.
func Grants(file string, src []byte) ([]string, error) {
	parse := parse
	if abs, err := filepath.Abs(file); err == nil && strings.HasSuffix(filepath.Dir(abs), foreignDir) {
		parse = parseForeign
	}
	r, err := parse(file, src)
	return r.Hands.Beyond(team.Hands{}), err
}

// foreignDir is where another program has its role files.
var foreignDir = filepath.Join(".claude", "agents")

// Same reports whether two roles say the same.
func Same(a, b team.Role) bool {
	tools := slices.Equal(a.Tools, b.Tools)
	a.Tools, b.Tools = nil, nil
	return tools && reflect.DeepEqual(a, b)
}

// take adds a role that the file holds as src. Of what it grants only that counts which a person
// has trusted.
func (into *Roles) take(r team.Role, file string, src []byte) {
	hands, withheld := into.trusted.Judge(file, src, r.Hands)
	r.Hands = hands
	delete(into.Withheld, r.Name)
	if withheld != nil {
		into.Withheld[r.Name] = grant.Withheld{File: file, Role: r.Name, Grants: withheld}
	}
	into.All[r.Name], into.Files[r.Name] = r, file
}

// read adds the roles of a folder, whose path is where.
func (into *Roles) read(where string, dir fs.FS, foreign bool) error {
	files, err := fs.Glob(dir, "*.md")
	if err != nil {
		return err
	}
	parse := parse
	if foreign {
		parse = parseForeign
	}
	var errs []error
	for _, f := range files {
		path := filepath.Join(where, f)
		src, err := fs.ReadFile(dir, f)
		if err == nil && !bytes.HasPrefix(src, []byte("---")) {
			into.Skipped = append(into.Skipped, Skipped{path, "a role file begins with ---"})
			continue
		}
		var r team.Role
		if err != nil {
			err = team.Errorf(team.InvalidArgument, "role file %s: %w", path, err)
		} else {
			r, err = parse(path, src)
		}
		switch {
		case err == nil:
			into.take(r, path, src)
		case foreign:
			into.Skipped = append(into.Skipped, Skipped{path, strings.TrimPrefix(err.Error(), path+": ")})
		default:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
