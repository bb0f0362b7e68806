// Package role reads roles from Markdown files with YAML front matter, and contains the built-in ones. A process that
// makes a team or asks for a spawn reads them and stores them with the team; a process that runs an agent reads only
// those.
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
	"reflect"
	"slices"
	"strings"

	"agentteam/pkg/execenv/trust"
	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
	"agentteam/pkg/tool/safefs"
)

//go:embed builtin/*.md
var builtin embed.FS

// Roles are the roles that apply in a folder.
type Roles struct {
	All     map[string]team.Role
	Files   map[string]string // where those come from that are not built in
	Notices []Notice          // what does not count of what was read, for its author

	// Waiting is what of the files of roles waits until a person trusts them, by the names of the roles. They
	// are in All without it.
	Waiting map[string]trust.Waiting

	tools   map[string][]Notice // where files name tools, by role
	trusted trust.Store
}

// Load returns the roles that apply in dir: the built-in ones, replaced and extended by those of the user's directory,
// of dir/.claude/agents and of dir/.agents, in this order. An unreadable role file is an error: a role that silently
// differs from the written one is worse than none; the errors of several files are joined. Two files of one folder with
// one name are an error too. A file without front matter, such as a README.md, is not a role file. The files of
// .claude/agents, and of its folders, are for another program and are read by [parseForeign]; one that is still not a
// role is left out, and so is the second of a name.
func Load(dir string) (Roles, error) {
	r := Roles{All: map[string]team.Role{}, Files: map[string]string{}, Waiting: map[string]trust.Waiting{}, tools: map[string][]Notice{}, trusted: trust.OfUser()}
	own, err := fs.Sub(builtin, "builtin")
	if err != nil {
		return r, err
	}
	if err := r.read(builtIn, own, false); err != nil {
		return r, err
	}
	clear(r.Files)
	var errs []error
	for _, f := range sources(dir) {
		errs = append(errs, r.read(f.path, safefs.FS(f.path), f.foreign))
	}
	return r, errors.Join(errs...)
}

// source is a folder of role files.
type source struct {
	path    string
	foreign bool
}

// sources returns the folders for dir, in the order in which they are read.
func sources(dir string) []source {
	folders := []source{{filepath.Join(dir, foreignDir), true}, {filepath.Join(dir, ownDir), false}}
	if user, err := os.UserConfigDir(); err == nil {
		folders = slices.Insert(folders, 0, source{filepath.Join(user, "agentteam", "agents"), false})
	}
	return folders
}

// isForeign reports whether a file is for another program: it is in that program's folder.
func isForeign(file string) bool {
	abs, err := filepath.Abs(file)
	return err == nil && strings.Contains(filepath.Dir(abs)+string(filepath.Separator), string(filepath.Separator)+foreignDir+string(filepath.Separator))
}

// WaitingIn returns the part of a role file with content src that waits until a person trusts it; nil if nothing waits.
// Errors: InvalidArgument for a file that is not a role file.
func WaitingIn(file string, src []byte) (*trust.Waiting, error) {
	_, w, err := (&Roles{trusted: trust.OfUser()}).parse(file, src, isForeign(file))
	return w, err
}

// HarmlessKeys returns the keys of a role file that count before a person has trusted a repository's file, each with
// its tag of the allowed values; see [strictyaml.Node.Withhold].
func HarmlessKeys() [][2]string { return strictyaml.Harmless(reflect.TypeFor[frontMatter]()) }

// parse parses a role file, and returns its waiting part; nil if nothing waits.
func (into *Roles) parse(file string, src []byte, foreign bool) (parsed, *trust.Waiting, error) {
	var w *trust.Waiting
	if filepath.Dir(file) != builtIn {
		w = into.trusted.Judge(file, file, src)
	}
	var wait waits
	if w != nil {
		wait = w.Wait
	}
	if foreign {
		p, err := parseForeign(file, src, wait)
		return p, w, err
	}
	p, err := parse(file, src, wait)
	return p, w, err
}

// foreignDir is the folder of another program's role files.
var foreignDir = filepath.Join(".claude", "agents")

// ownDir is the folder of a project's role files.
const ownDir = ".agents"

// Same reports whether two roles are equal; a list may be nil or empty.
func Same(a, b team.Role) bool {
	one, _ := json.Marshal(a) // neither fails
	other, _ := json.Marshal(b)
	return bytes.Equal(one, other)
}

// take adds a role of a file. An untrusted file gives an existing role other texts, and only narrows its members'
// rights.
func (into *Roles) take(p parsed, file string, w *trust.Waiting) {
	r := p.Role
	into.tools[r.Name] = p.tools
	delete(into.Waiting, r.Name)
	if before, there := into.All[r.Name]; there && w != nil {
		r = before.Narrowed(r)
	}
	if w != nil && len(w.Keys) > 0 {
		w.Role = r.Name
		into.Waiting[r.Name] = *w
	}
	into.All[r.Name], into.Files[r.Name] = r, file
}

// builtIn stands for the folder of the built-in roles.
const builtIn = "built-in"

// maxFiles bounds the files of a folder that are read, and maxDepth the depth of another program's files.
const (
	maxFiles = 500
	maxDepth = 4
)

// markdown returns the files that may be role files; for another program also those in folders.
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

// read adds the roles of a folder with the path where.
func (into *Roles) read(where string, dir fs.FS, foreign bool) error {
	files, err := markdown(dir, foreign)
	if err != nil {
		return err
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
		var w *trust.Waiting
		if err != nil {
			err = team.Errorf(team.InvalidArgument, "role file %s: %w", path, err)
		} else if p, w, err = into.parse(path, src, foreign); err == nil && first[p.Name] != "" {
			err = p.at(team.Errorf(team.InvalidArgument, "role %s is in %s already", p.Name, first[p.Name]).WithHint("give one of them another name"))
		}
		switch {
		case err == nil:
			into.take(p, path, w)
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

// content reads a file up to the limit of a role file.
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
