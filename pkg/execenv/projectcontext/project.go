package projectcontext

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"agentteam/pkg/team"
	"agentteam/pkg/tool/safefs"
)

// File is a file of the repository with instructions for agents, and the shown part of it.
type File struct {
	Name    string   `json:"name"`               // relative to the workspace, with slashes
	By      string   `json:"by,omitempty"`       // the file that imports it
	Text    string   `json:"text,omitempty"`     // clean
	LeftOut int      `json:"left_out,omitempty"` // bytes of it that are not in Text
	Faults  []string `json:"faults,omitempty"`   // its imports that were not followed, a line each
}

// Summaries returns the names of files and how much of each is shown.
func Summaries(files []File) (told []team.InstructionFile) {
	for _, f := range files {
		told = append(told, team.InstructionFile{File: f.Name, Bytes: len(f.Text), LeftOut: f.LeftOut, Faults: len(f.Faults)})
	}
	return told
}

// May reports whether a file, an absolute path, may be read for the agent. nil: every file may.
type May func(path string) bool

// The most bytes that are shown: of the standing instructions, and of those of a folder below.
const (
	MaxProject = 32 << 10
	MaxFolder  = 8 << 10
)

// The bounds of imports. A chain of them has at most five hops, as the documentation of the
// syntax states.
const (
	maxHops  = 5
	maxFiles = 40
)

// namesIn are the instruction files of a folder, in some of which "@path" imports a file (see https://agents.md). A folder may have
// several; equal texts are shown once.
var namesIn = []struct {
	name    string
	imports bool
}{{"AGENTS.md", false}, {"CLAUDE.md", true}, {filepath.Join(".claude", "CLAUDE.md"), true}}

// Standing returns the instructions of the nearest folder, from the workspace up the tree, that has any. The search ends at the top
// of a repository, and below a folder that anybody may write to, such as /tmp.
func Standing(workspace string, may May) []File {
	for dir := workspace; open(dir); {
		if files, _ := of(workspace, dir, MaxProject, may); len(files) > 0 {
			return files
		}
		up := filepath.Dir(dir)
		if isTop(dir) || up == dir {
			return nil
		}
		dir = up
	}
	return nil
}

// Untaken returns a line for each file on the way of [Standing] that is not fully read, with the reason; at most a few.
func Untaken(workspace string) (lines []string) {
	for dir := workspace; len(lines) < mostUntaken; dir = filepath.Dir(dir) {
		if !open(dir) {
			for _, n := range namesIn {
				if _, err := os.Lstat(filepath.Join(dir, n.name)); err == nil {
					lines = append(lines, fmt.Sprintf("%s is not read: anybody may write to the folder %s", filepath.Join(dir, n.name), dir))
				}
			}
			break
		}
		files, untaken := of(workspace, dir, MaxProject, nil)
		if lines = append(lines, untaken...); len(files) > 0 || isTop(dir) || dir == filepath.Dir(dir) {
			break
		}
	}
	return lines[:min(len(lines), mostUntaken)]
}

const mostUntaken = 5

// open reports whether a folder exists and is not writable for everybody.
func open(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o002 == 0
}

// isTop reports whether a folder is the top of a repository.
func isTop(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

// Below returns the absolute paths of the folders between a workspace and a file in it, the outermost first, without the workspace.
func Below(workspace, file string) (dirs []string) {
	rel, err := filepath.Rel(workspace, filepath.Dir(file))
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return nil
	}
	for at := rel; at != "."; at = filepath.Dir(at) {
		dirs = append(dirs, filepath.Join(workspace, at))
	}
	slices.Reverse(dirs)
	return dirs
}

// Folder returns the instructions of one folder below a workspace.
func Folder(workspace, dir string, may May) []File {
	if !open(dir) {
		return nil
	}
	files, _ := of(workspace, dir, MaxFolder, may)
	return files
}

// of returns the instructions of a folder, of at most limit bytes, and a line for each file that is not fully read.
func of(workspace, dir string, limit int, may May) (files []File, untaken []string) {
	top := topOf(dir)
	root, err := safefs.Root(top)
	if err != nil {
		return nil, nil
	}
	defer root.Close() // nothing is written
	r := &reader{workspace: workspace, top: top, root: root, left: limit, may: may}
	at, err := filepath.Rel(top, dir)
	if err != nil {
		return nil, nil
	}
	for _, n := range namesIn {
		err := r.read(filepath.Join(at, n.name), "", n.imports, nil)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.untaken = append(r.untaken, fmt.Sprintf("%s is not read: %s", filepath.Join(dir, n.name), team.OneLine(err.Error())))
		}
	}
	files = slices.DeleteFunc(r.files, func(f File) bool { return strings.TrimSpace(f.Text) == "" && f.LeftOut == 0 && f.Faults == nil })
	return files, r.untaken
}

// topOf returns the folder that bounds reading for dir: the top of its repository, except the user's home, or dir itself.
func topOf(dir string) string {
	home, _ := os.UserHomeDir()
	for at := dir; open(at); at = filepath.Dir(at) {
		if isTop(at) && at != home {
			return at
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	return dir
}

// reader reads the instructions of one folder.
type reader struct {
	workspace string
	top       string
	root      *os.Root // of top: links lead nowhere else
	left      int      // bytes
	may       May
	files     []File
	infos     []fs.FileInfo // of these
	followed  []bool        // whether the imports of each were
	untaken   []string
}

// read adds a file, named from the top, and if imports is true its imports. chain are the files that led to it. Error: why it was not
// read.
func (r *reader) read(name, by string, imports bool, chain []string) error {
	shown := r.shown(name)
	f, info, err := r.open(name)
	if err != nil {
		return err
	}
	defer f.Close() // it was only read
	i := slices.IndexFunc(r.infos, func(o fs.FileInfo) bool { return os.SameFile(o, info) })
	switch {
	case i >= 0 && slices.Contains(chain, r.files[i].Name):
		return fmt.Errorf("%s imports %s again", cmp.Or(by, shown), r.files[i].Name)
	case i >= 0 && (!imports || r.followed[i]):
		return nil
	case i < 0 && len(r.files) >= maxFiles:
		return fmt.Errorf("more than %d files are imported", maxFiles)
	}
	if i < 0 {
		data, err := io.ReadAll(io.LimitReader(f, int64(r.left)))
		if err != nil {
			return err
		}
		text, left, err := textOf(data, int(info.Size()), r.left)
		if err != nil {
			return fmt.Errorf("%s %w", shown, err)
		}
		if !utf8.Valid(text) {
			r.untaken = append(r.untaken, filepath.Join(r.top, name)+" has bytes that are no UTF-8: members read \ufffd in their place")
		}
		if i = r.add(File{Name: shown, By: by, LeftOut: left}, info, text); i < 0 {
			return nil
		}
	}
	if imports {
		r.followed[i] = true
		r.follow(i, name, append(slices.Clone(chain), r.files[i].Name))
	}
	return nil
}

// open opens a file that may be read.
func (r *reader) open(name string) (*os.File, fs.FileInfo, error) {
	f, info, err := safefs.File(r.root, name)
	if err != nil {
		return nil, nil, err
	}
	if err := r.refused(name, info); err != nil {
		f.Close() // it was only opened
		return nil, nil, err
	}
	return f, info, nil
}

// secretDirs are the folders that hold secrets of git and of the cluster.
var secretDirs = []string{".git", team.ClusterDir}

// refused returns why the file that was opened by name is not read. The target of a link is judged like its name.
func (r *reader) refused(name string, info fs.FileInfo) error {
	path := filepath.Join(r.top, name)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if now, err := os.Stat(real); err != nil || !os.SameFile(now, info) {
		return fmt.Errorf("%s is being replaced", r.shown(name))
	}
	top, err := filepath.EvalSymlinks(r.top)
	if err != nil {
		return err
	}
	inside, err := filepath.Rel(top, real)
	if err != nil {
		return err
	}
	for _, at := range []string{name, inside} {
		for part := range strings.SplitSeq(filepath.ToSlash(at), "/") {
			if slices.Contains(secretDirs, part) {
				return fmt.Errorf("%s is in %s", r.shown(name), part)
			}
		}
	}
	if r.may != nil && (!r.may(path) || !r.may(real)) {
		return fmt.Errorf("a permission rule denies %s", r.shown(name))
	}
	return nil
}

// textOf returns the text of a file of size bytes that begins with data, in UTF-8 and at most limit bytes of it, and how many bytes
// of the file are not in it. A byte order mark identifies UTF-16. Error: the file is not text.
func textOf(data []byte, size, limit int) (text []byte, left int, err error) {
	stored := func(text []byte) int { return len(text) } // bytes of the file that a text takes
	switch mark := data[:min(2, len(data))]; {
	case bytes.HasPrefix(data, []byte("\ufeff")):
		data, size = data[3:], size-3
		text = data
	case bytes.Equal(mark, []byte{0xff, 0xfe}), bytes.Equal(mark, []byte{0xfe, 0xff}):
		order := binary.ByteOrder(binary.LittleEndian)
		if mark[0] == 0xfe {
			order = binary.BigEndian
		}
		data, size = data[2:], size-2
		units := make([]uint16, len(data)/2)
		for i := range units {
			units[i] = order.Uint16(data[2*i:])
		}
		text = []byte(string(utf16.Decode(units)))
		stored = func(text []byte) int { return 2 * len(utf16.Encode([]rune(string(text)))) }
	default:
		text = data
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, 0, errors.New("is no text in UTF-8, nor in UTF-16 with a byte order mark")
	}
	if size > len(data) || len(text) > limit { // whole lines, if there are several, and whole characters
		text = text[:min(len(text), limit)]
		text = bytes.ToValidUTF8(text[:cmp.Or(bytes.LastIndexByte(text, '\n')+1, len(text))], nil)
	}
	return text, max(0, size-stored(text)), nil
}

// add adds a file with that text, and returns its index; -1 if another file has the same text.
func (r *reader) add(f File, info fs.FileInfo, data []byte) int {
	f.Text = team.Clean(string(data), MaxProject)
	if f.LeftOut == 0 && slices.ContainsFunc(r.files, func(o File) bool { return o.LeftOut == 0 && strings.TrimSpace(o.Text) == strings.TrimSpace(f.Text) }) {
		return -1
	}
	r.left -= len(data)
	r.files, r.infos, r.followed = append(r.files, f), append(r.infos, info), append(r.followed, false)
	return len(r.files) - 1
}

// shown returns the name of a file for agents and people: relative to the workspace.
func (r *reader) shown(name string) string {
	path := filepath.Join(r.top, name)
	if rel, err := filepath.Rel(r.workspace, path); err == nil {
		path = rel
	}
	return filepath.ToSlash(path)
}

// follow reads the imports of the file with that index. A failed import is one of its faults.
func (r *reader) follow(i int, name string, chain []string) {
	for _, to := range importsIn(r.files[i].Text) {
		if err := r.imported(filepath.Dir(name), to, r.files[i].Name, chain); err != nil {
			r.files[i].Faults = append(r.files[i].Faults, fmt.Sprintf("@%s is not followed: %s", team.Clip(to, 200), err))
		}
	}
}

// imported reads one import of a file in dir. A word that neither looks like a file nor is one, such as @someone, is not an import.
func (r *reader) imported(dir, to, by string, chain []string) error {
	file := strings.Contains(filepath.Base(to), ".") && filepath.Ext(to) != "."
	name := filepath.Join(dir, filepath.FromSlash(to))
	switch {
	case strings.HasPrefix(to, "~"), filepath.IsAbs(to):
		if file {
			return fmt.Errorf("only what lies in the repository is imported")
		}
		return nil
	case !filepath.IsLocal(name):
		return fmt.Errorf("it leads out of the repository")
	}
	info, err := r.root.Stat(name)
	switch {
	case err == nil && info.IsDir(), err != nil && !file:
		return nil
	case err != nil && strings.HasSuffix(to, ".md"):
		return fmt.Errorf("there is no such file in the repository")
	case err != nil: // such as @example.org
		return nil
	case len(chain) > maxHops:
		return fmt.Errorf("imports go at most %d files deep", maxHops)
	}
	return r.read(name, by, true, chain)
}
