// Package role reads roles from Markdown files with YAML front matter, and holds
// the built-in ones. Whoever makes a team or asks for a spawn reads them and
// stores them with the team; whoever runs an agent reads them only there.
package role

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentteam/pkg/folder"
	"agentteam/pkg/grant"
	"agentteam/pkg/team"
)

//go:embed builtin/*.md
var builtin embed.FS

// Roles are the roles that hold in a folder.
type Roles struct {
	All     map[string]team.Role
	Files   map[string]string // where those come from that are not built in
	Notices []Notice          // what does not count of what was read, for its author

	// Withheld is what roles would grant by files that no person has trusted, by their names. They
	// are in All without it.
	Withheld map[string]grant.Withheld

	tools   map[string][]Notice // where files name tools, by role
	trusted grant.Store
}

// Load returns the roles that hold in dir: the built-in ones, replaced and added to
// by those of the user's directory, of dir/.claude/agents and of dir/.agents, in
// this order. A role file that cannot be read is an error: a role that silently is
// another than the one written is worse than none; of several bad files all are told,
// joined. So are two files of one folder that give roles of one name. A file that does not
// begin with front matter, such as a README.md, is no role
// file. Those of .claude/agents, and of the folders in it, were written for another program and are read by
// [parseForeign]; one that is no role even so is left out, and so is the second of a name.
func Load(dir string) (Roles, error) {
	r := Roles{All: map[string]team.Role{}, Files: map[string]string{}, Withheld: map[string]grant.Withheld{}, tools: map[string][]Notice{}, trusted: grant.OfUser()}
	own, err := fs.Sub(builtin, "builtin")
	if err != nil {
		return r, err
	}
	if err := r.read("built-in", own, false); err != nil {
		return r, err
	}
	clear(r.Files)
	var errs []error
	for _, f := range sources(dir) {
		errs = append(errs, r.read(f.path, folder.FS(f.path), f.foreign))
	}
	return r, errors.Join(errs...)
}

// source is a folder of role files.
type source struct {
	path    string
	foreign bool
}

// sources are those of dir, in the order in which they are read.
func sources(dir string) []source {
	folders := []source{{filepath.Join(dir, foreignDir), true}, {filepath.Join(dir, ownDir), false}}
	if user, err := os.UserConfigDir(); err == nil {
		folders = slices.Insert(folders, 0, source{filepath.Join(user, "agentteam", "agents"), false})
	}
	return folders
}

// isForeign reports whether a file was written for another program: it lies in its folder.
func isForeign(file string) bool {
	abs, err := filepath.Abs(file)
	return err == nil && strings.Contains(filepath.Dir(abs)+string(filepath.Separator), string(filepath.Separator)+foreignDir+string(filepath.Separator))
}

// Grants returns what a role file, which holds src, would grant if a person trusted it, in a few
// words each. Errors: InvalidArgument for what is no role file.
func Grants(file string, src []byte) ([]string, error) {
	parse := parse
	if isForeign(file) {
		parse = parseForeign
	}
	p, err := parse(file, src)
	return p.Hands.Beyond(team.Hands{}), err
}

// foreignDir is where another program has its role files.
var foreignDir = filepath.Join(".claude", "agents")

// ownDir is where a project has its role files.
const ownDir = ".agents"

// Same reports whether two roles say the same; a list may be nil or empty.
func Same(a, b team.Role) bool {
	one, _ := json.Marshal(a) // neither fails
	other, _ := json.Marshal(b)
	return bytes.Equal(one, other)
}

// take adds a role that the file holds as src. Of what it grants only that counts which a person
// has trusted.
func (into *Roles) take(p parsed, file string, src []byte) {
	r := p.Role
	into.tools[r.Name] = p.tools
	hands, withheld := into.trusted.Judge(file, src, r.Hands)
	r.Hands = hands
	delete(into.Withheld, r.Name)
	if withheld != nil {
		into.Withheld[r.Name] = grant.Withheld{File: file, Role: r.Name, Grants: withheld}
	}
	into.All[r.Name], into.Files[r.Name] = r, file
}

// maxFiles bounds how many files of a folder are read, and maxDepth how deep those of another
// program may lie.
const (
	maxFiles = 500
	maxDepth = 4
)

// markdown lists the files that may be role files; of another program also those in folders.
func markdown(dir fs.FS, foreign bool) ([]string, error) {
	if !foreign {
		return fs.Glob(dir, "*.md")
	}
	var files []string
	err := fs.WalkDir(dir, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // what cannot be listed has none
			return nil
		case d.IsDir() && path != "." && strings.Count(path, "/") >= maxDepth:
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			files = append(files, path)
		}
		if len(files) >= maxFiles {
			return fs.SkipAll
		}
		return nil
	})
	return files, err
}

// read adds the roles of a folder, whose path is where.
func (into *Roles) read(where string, dir fs.FS, foreign bool) error {
	files, err := markdown(dir, foreign)
	if err != nil {
		return err
	}
	parse := parse
	if foreign {
		parse = parseForeign
	}
	var errs []error
	first := map[string]string{} // the file of each name, in this folder
	for _, f := range files {
		path := filepath.Join(where, f)
		src, err := content(dir, f)
		if err == nil && !hasFrontMatter(src) {
			into.Notices = append(into.Notices, Notice{File: path, Line: 1, Column: 1, Text: "a role file begins with ---", Out: true, mild: true})
			continue
		}
		var p parsed
		if err != nil {
			err = team.Errorf(team.InvalidArgument, "role file %s: %w", path, err)
		} else if p, err = parse(path, src); err == nil && first[p.Name] != "" {
			err = p.at(team.Errorf(team.InvalidArgument, "role %s is in %s already", p.Name, first[p.Name]).WithHint("give one of them another name"))
		}
		switch {
		case err == nil:
			into.take(p, path, src)
			into.Notices = append(into.Notices, p.notices...)
			first[p.Name] = path
		case foreign:
			n := noticeOf(path, err)
			n.Out = true
			into.Notices = append(into.Notices, n)
		default:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// content reads a file that is no larger than a role file may be.
func content(dir fs.FS, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it is only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(data) > maxFile {
		err = fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return data, err
}
