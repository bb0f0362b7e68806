// Package skills reads Agent Skills: folders NAME/SKILL.md with a front matter (name and
// description), a text, and optional files. Members see a line of each; the tool skill returns the
// text and the files.
//
// A skill is text. It grants nothing and restricts nothing: its allowed-tools are ignored, and
// members run its commands with their own tools in their own sandbox. A skill in a repository
// counts only after a person has trusted the current content of its folder (package trust). Package
// permission decides which files a member may read.
package skills

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"agentteam/pkg/execenv/trust"
	"agentteam/pkg/model/tokens"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/safefs"
)

// FileName is the file that makes a folder a skill.
const FileName = "SKILL.md"

// Limits of a skill and of a folder of skills: a member reads all of them when it begins.
const (
	maxText   = 64 << 10 // bytes of SKILL.md, and of a file that is shown
	maxFolder = 8 << 20  // bytes of all files of a skill
	maxAll    = 64 << 20 // of all skills of a folder
	maxFiles  = 200      // of a skill
	maxDepth  = 5        // of its folders
	maxSkills = 500      // of a folder of skills
)

// Source is where a skill comes from.
type Source string

// The sources. Of several skills with one name the later one counts.
const (
	BuiltIn Source = "built-in"
	User    Source = "user"
	Project Source = "project"
)

// Skill is a skill as it was read.
type Skill struct {
	Name        string   `json:"name"`
	Description string   `json:"description"` // on one line
	Source      Source   `json:"source"`
	Folder      string   `json:"folder,omitempty"` // as commands of members reach it; "" = built in
	Files       []string `json:"files,omitempty"`  // besides SKILL.md, relative to Folder
	Waits       bool     `json:"waits,omitempty"`  // until a person trusts it
	Hidden      bool     `json:"hidden,omitempty"` // its author keeps models from calling it
	Body        string   `json:"-"`

	contents map[string][]byte // of the files that can be shown, as they were when the skill was read
}

// Set holds the skills of a place.
type Set struct {
	All     []Skill // that count, in order of their names
	Waiting []trust.Waiting
	Untaken []Skill  // that wait
	Faults  []string // of folders that give no skill, a line each
}

//go:embed builtin
var builtin embed.FS

// at is a folder of skills.
type at struct {
	source Source
	dir    string   // of the file system; "" = built in
	shown  string   // as commands of members reach it
	real   string   // under which it is trusted
	root   *os.Root // nil = built in
	files  fs.FS
	left   *int // bytes that may still be read
}

// projectDirs are the folders of a repository that hold skills.
var projectDirs = []string{filepath.Join(".claude", "skills"), filepath.Join(".agents", "skills")}

// userDirs returns the folders of skills of the user that runs the process.
func userDirs() (dirs []string) {
	if home, err := os.UserHomeDir(); err == nil {
		for _, d := range projectDirs {
			dirs = append(dirs, filepath.Join(home, d))
		}
	}
	if config, err := os.UserConfigDir(); err == nil {
		dirs = append(dirs, filepath.Join(config, "agentteam", "skills"))
	}
	return dirs
}

// Load reads the skills for a workspace: the built-in ones, the user's, and those of the workspace.
// A person has trusted the latter by their paths in checkout, of which the workspace may be a work
// tree. may reports which files, absolute paths, may be read; nil: all.
func Load(workspace, checkout string, may func(path string) bool) Set {
	own, _ := fs.Sub(builtin, "builtin") // it is there
	var s Set
	by := map[string]Skill{}
	s.read(by, at{source: BuiltIn, files: own, left: new(maxAll)}, nil)
	for _, dir := range userDirs() {
		if root, err := safefs.Root(dir); err == nil {
			s.read(by, at{User, dir, dir, dir, root, root.FS(), new(maxAll)}, may)
			root.Close() // nothing was written
		}
	}
	if top, err := safefs.Root(workspace); err == nil {
		for _, dir := range projectDirs {
			if root, err := top.OpenRoot(dir); err == nil { // a link leads nowhere out of the workspace
				s.read(by, at{Project, filepath.Join(workspace, dir), dir, filepath.Join(checkout, dir), root, root.FS(), new(maxAll)}, may)
				root.Close() // nothing was written
			}
		}
		top.Close() // nothing was written
	}
	for _, skill := range by {
		s.All = append(s.All, skill)
	}
	slices.SortFunc(s.All, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// read adds the skills of a folder.
func (s *Set) read(by map[string]Skill, in at, may func(path string) bool) {
	entries, err := fs.ReadDir(in.files, ".")
	if err != nil {
		return
	}
	for i, e := range entries {
		file := path.Join(e.Name(), FileName)
		link := e.Type()&fs.ModeSymlink != 0 // it may lead to a skill, and is reported
		if _, err := fs.Lstat(in.files, file); !link && (!e.IsDir() || err != nil) {
			continue
		}
		if may != nil && !may(filepath.Join(in.dir, file)) {
			continue
		}
		before := *in.left
		skill, manifest, err := in.skill(e.Name())
		giveBack := func() { // most of it, so that later skills have room and the reading is still bounded
			*in.left += (before - *in.left) / 4 * 3
		}
		if err == nil && i >= maxSkills {
			err = fmt.Errorf("it is one of more than %d", maxSkills)
		}
		if err != nil {
			giveBack()
			s.Faults = append(s.Faults, fmt.Sprintf("%s is left out: %s", filepath.Join(cmp.Or(in.dir, string(BuiltIn)), file), team.OneLine(err.Error())))
			continue
		}
		skill.Files = slices.DeleteFunc(skill.Files, func(f string) bool { // the manifest stays whole: trust is in all files
			denied := may != nil && !may(filepath.Join(in.dir, e.Name(), filepath.FromSlash(f)))
			if denied {
				delete(skill.contents, f)
			}
			return denied
		})
		if in.source == Project {
			if w := waiting(filepath.Join(in.real, file), filepath.Join(in.dir, file), skill, manifest); w != nil {
				giveBack()
				skill.Waits = true
				s.Waiting, s.Untaken = append(s.Waiting, *w), append(s.Untaken, skill)
				continue
			}
		}
		by[skill.Name] = skill
	}
}

// waiting returns the parts of a skill that wait for trust; nil if its current content was trusted
// under the path real.
func waiting(real, shown string, s Skill, manifest []string) *trust.Waiting {
	w := trust.OfUser().Judge(real, shown, []byte(strings.Join(manifest, "\n")))
	if w != nil {
		w.Wait("skill", s.Name+": "+s.Description)
		for _, line := range manifest {
			sum, name, _ := strings.Cut(line, " ")
			w.Wait(name, sum)
		}
	}
	return w
}

// WaitingIn returns the parts of a skill that wait until a person trusts it; nil if it counts.
// Errors: InvalidArgument for a folder without a valid skill.
func WaitingIn(file string) (*trust.Waiting, error) {
	s, manifest, err := one(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	return waiting(file, file, s, manifest), nil
}

// Manifest returns what a person trusts of the skill with this file: its files with their digests.
func Manifest(file string) ([]byte, error) {
	_, manifest, err := one(filepath.Dir(file))
	return []byte(strings.Join(manifest, "\n")), err
}

// one reads the skill of a folder.
func one(dir string) (Skill, []string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Skill{}, nil, err
	}
	root, err := safefs.Root(filepath.Dir(dir))
	if err != nil {
		return Skill{}, nil, team.Errorf(team.NotFound, "%w", err)
	}
	defer root.Close() // nothing is written
	s, manifest, err := at{Project, filepath.Dir(dir), filepath.Dir(dir), filepath.Dir(dir), root, root.FS(), new(maxAll)}.skill(filepath.Base(dir))
	if err != nil {
		err = team.Errorf(team.InvalidArgument, "%s: %w", filepath.Join(dir, FileName), err)
	}
	return s, manifest, err
}

// skill reads the skill of a folder, with the lines of its manifest. Errors: of a folder without a
// valid skill.
func (in at) skill(name string) (s Skill, manifest []string, err error) {
	if !nameForm.MatchString(name) || len(name) > maxName {
		return s, nil, fmt.Errorf("the folder %q is no name of a skill: 1 to %d lower-case letters, digits and single hyphens", team.Clip(name, 80), maxName)
	}
	if info, err := fs.Lstat(in.files, name); err == nil && info.Mode()&fs.ModeSymlink != 0 { // WalkDir would follow it
		return s, nil, errors.New("its folder is a symbolic link: a skill has no links")
	}
	total, contents := 0, map[string][]byte{}
	err = fs.WalkDir(in.files, name, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.Count(file, "/") > maxDepth:
			return fmt.Errorf("its folders are more than %d deep", maxDepth)
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%q is no regular file: a skill has no links", strings.TrimPrefix(file, name+"/"))
		case len(manifest) >= maxFiles:
			return fmt.Errorf("it has more than %d files", maxFiles)
		}
		data, err := in.content(file, d, maxFolder-total)
		total += len(data)
		if *in.left -= len(data); err != nil {
			return err
		}
		rel := strings.TrimPrefix(file, name+"/")
		if !utf8.ValidString(rel) || team.OneLine(team.Clean(rel, 1000)) != rel {
			return fmt.Errorf("the name of its file %q is no plain text", rel)
		}
		sum := sha256.Sum256(data)
		manifest = append(manifest, hex.EncodeToString(sum[:])+" "+rel)
		if len(data) <= maxText {
			contents[rel] = data
		}
		if rel != FileName {
			s.Files = append(s.Files, rel)
			return nil
		}
		s, err = parse(s, name, data)
		return err
	})
	if err == nil && s.Name == "" {
		err = errors.New("it has no " + FileName)
	}
	if s.Source, s.contents = in.source, contents; in.source != BuiltIn {
		s.Folder = filepath.Join(in.shown, name)
	}
	return s, manifest, err
}

// content reads a file of a skill; left is how many bytes the skill's limit still allows.
func (in at) content(file string, d fs.DirEntry, left int) ([]byte, error) {
	info, err := d.Info()
	switch {
	case err != nil:
		return nil, err
	case info.Size() > int64(left):
		return nil, fmt.Errorf("%s makes it larger than %d bytes", d.Name(), maxFolder)
	case info.Size() > int64(*in.left):
		return nil, fmt.Errorf("there is no room for it: the skills of a folder have at most %d bytes together", maxAll)
	}
	var f io.ReadCloser
	if in.root == nil {
		f, err = in.files.Open(file)
	} else { // it may have become a pipe or a link meanwhile
		var dir *os.Root
		if dir, err = in.root.OpenRoot(path.Dir(file)); err == nil {
			f, _, err = safefs.Entry(dir, path.Base(file))
			dir.Close() // nothing was written
		}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() // it is only read
	data, err := io.ReadAll(io.LimitReader(f, info.Size()+1))
	if err == nil && int64(len(data)) > info.Size() {
		err = fmt.Errorf("%s has grown while it was read", d.Name())
	}
	return data, err
}

// Get returns the skill of that name.
func (s Set) Get(name string) (Skill, bool) {
	i := slices.IndexFunc(s.All, func(k Skill) bool { return k.Name == name })
	if i < 0 {
		return Skill{}, false
	}
	return s.All[i], true
}

// Lines returns the skills that a model may call, a line each, as many as fit into most tokens.
// left counts the others.
func (s Set) Lines(most int) (lines []string, left int) {
	for _, k := range s.All {
		if k.Hidden {
			continue
		}
		line := k.line()
		if most -= tokens.Count(line) + 1; most < 0 {
			left++
			continue
		}
		lines = append(lines, line)
	}
	return lines, left
}

// maxLine bounds the description of a skill in a list, in characters.
const maxLine = 300

func (k Skill) line() string { return k.Name + ": " + team.OneLine(team.Clean(k.Description, maxLine)) }
