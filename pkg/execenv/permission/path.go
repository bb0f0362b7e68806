package permission

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// pattern is a rule for files, as in .gitignore: globs of absolute paths, or of paths from the workspace.
type pattern struct {
	globs    []string
	absolute bool
	anywhere bool // it is a name without a folder: for deny and ask it holds outside of the workspace, too
}

// patternOf parses the parentheses of a file rule. never states why it can match no file, "" if it can.
func patternOf(spec, home string) (p pattern, never string, err error) {
	if control.MatchString(spec) {
		return p, "", errControl
	}
	anchored := true
	switch {
	case strings.HasPrefix(spec, "!"):
		return p, "", errors.New("! has no meaning here: write the rule in another list")
	case strings.HasPrefix(spec, "//"):
		spec, p.absolute = spec[2:], true
	case spec == "~" || strings.HasPrefix(spec, "~/"):
		spec, p.absolute = strings.TrimPrefix(home, "/")+spec[1:], true
	case strings.HasPrefix(spec, "~"):
		return p, "", errors.New("write ~/ for your own home; another user's is //home/NAME")
	case strings.HasPrefix(spec, "/"), strings.HasPrefix(spec, "./"):
		_, spec, _ = strings.Cut(spec, "/")
	default:
		anchored = false
	}
	spec = strings.TrimSuffix(strings.ReplaceAll(spec, "{", `\{`), "/")
	if slices.Contains(strings.Split(spec, "/"), "..") {
		never = "it leads out of the workspace by ..: write the path from the root, as in //etc/hosts"
	}
	if spec == "" || spec == "." {
		spec = "**"
	}
	if !doublestar.ValidatePattern(spec) {
		return p, "", errors.New(`this is no pattern of files: write \[ for the character itself`)
	}
	if !anchored && !strings.Contains(spec, "/") {
		spec, p.anywhere = "**/"+spec, true
	}
	if p.absolute {
		spec = "/" + spec
	}
	p.globs = []string{spec, strings.TrimSuffix(spec, "/**") + "/**"}
	return p, never, nil
}

// inside returns a path relative to the workspace; false if it is not in it, or unknown.
func inside(file, dir string) (string, bool) {
	if file == dir {
		return ".", true
	}
	in, ok := strings.CutPrefix(file, strings.TrimSuffix(dir, "/")+"/")
	return in, ok && known(file)
}

// matches reports whether the pattern certainly matches a file, an absolute path; widely counts names outside of the workspace.
func (p pattern) matches(file, dir string, widely bool) bool {
	in, ok := inside(file, dir)
	switch {
	case !known(file):
		return false
	case p.absolute, widely && p.anywhere && !ok:
		in = file
	case !ok:
		return false
	}
	return slices.ContainsFunc(p.globs, func(g string) bool {
		return doublestar.MatchUnvalidated(g, strings.TrimPrefix(in, "/")) || doublestar.MatchUnvalidated(g, in)
	})
}

// mayMatch reports whether the pattern may match a file that is not certain.
func (p pattern) mayMatch(file, dir string) bool {
	return slices.ContainsFunc(p.globs, func(g string) bool {
		if name, ok := strings.CutPrefix(g, "**/"); ok && p.anywhere {
			return meets(star+"/"+loose(name), file)
		}
		if !p.absolute {
			g = strings.TrimSuffix(dir, "/") + "/" + g
		}
		return meets(loose(g), file)
	})
}

// loose returns a glob of files as a text with stars, which matches at least as much.
func loose(glob string) string {
	return unquote(marked(strings.ReplaceAll(glob, "**/", "*"), star, star, "")) // "**/x" is "x", too
}

// unquote removes backslashes.
func unquote(s string) string { return regexp.MustCompile(`\\(.)`).ReplaceAllString(s, "$1") }

// classes matches bracket expressions that the parser and bash read alike.
var classes = regexp.MustCompile(`^\[[!^]?[^\[\]\\/!^][^\[\]\\/]*\]`)

// marked replaces patterns in an unquoted text: many for * and complex forms, few for ? and classes, front at the front of a name.
func marked(s, many, few, front string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		mark := few
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			b.WriteString(s[i : i+2])
			i++
			continue
		case c == '~' && i > 0 && (s[i-1] == '=' || s[i-1] == ':'): // as in dd if=~/x
			b.WriteString(tilde)
			continue
		case c == '*':
			mark = many
		case c == '[':
			class := classes.FindString(s[i:])
			if class == "" { // all that follows may belong to it
				return b.String() + star
			}
			i += len(class) - 1
		case c != '?':
			b.WriteByte(c)
			continue
		}
		if done := b.String(); done == "" || strings.HasSuffix(done, "/") {
			b.WriteString(front)
		}
		if !strings.HasSuffix(b.String(), mark) {
			b.WriteString(mark)
		}
	}
	return b.String()
}

// viaProc matches folders of a process that lead to its folder, its root or an open folder.
var viaProc = regexp.MustCompile(`^/proc/.*/(root|cwd|fd)(/|$)|^/dev/fd/[^/]+/|^/proc/.*[` + wild + `]`)

// clean shortens an absolute path. A path that may lead anywhere becomes a star.
func clean(t string) string {
	if viaProc.MatchString(t) {
		return star
	}
	if at := strings.IndexAny(t, wild); at >= 0 {
		cut := strings.LastIndexByte(t[:at], '/') + 1
		if strings.Contains(t[cut:], "..") || strings.HasSuffix(t[:at], ".") { // which may become ".."
			return star
		}
		t = strings.TrimRight(t, "/")
		if cut > 0 {
			t = strings.TrimSuffix(path.Clean(t[:cut]), "/") + "/" + t[cut:]
		}
	} else {
		t = path.Clean(t)
	}
	if viaProc.MatchString(t) {
		return star
	}
	return t
}

// resolve returns where an absolute path leads on this machine, with symbolic links followed; a missing part stays unchanged.
func resolve(t string) string {
	for at := len(t); at > 0 && known(t); at = strings.LastIndexByte(t[:at], '/') {
		if real, err := filepath.EvalSymlinks(t[:at]); err == nil {
			return path.Join(real, t[at:])
		}
	}
	return clean(t)
}

const maxPath = 4096 // bytes

// places returns the files that a word may be: absolute paths, also where symbolic links on this machine lead.
func (r *reader) places(w string) (list []string) {
	from := []string{""}
	switch {
	case w == "", len(w) > 2*maxPath: // the kernel opens no such name
		return nil
	case w[:1] == star, w[:1] == below:
		return []string{w}
	case w[:1] == tilde && (len(w) > 1 && w[1] != '/' || strings.Contains(w, "..")):
		return []string{star}
	case w[:1] == tilde:
		w = r.home + w[1:]
	case w[:1] != "/":
		from = r.cwd
	}
	for _, base := range from {
		full := w
		if base != "" {
			full = strings.TrimSuffix(base, "/") + "/" + w
		}
		list = append(list, clean(full))
		if real := resolve(full); real != list[len(list)-1] {
			list = append(list, real)
		}
	}
	return list
}

// file records the files that a word may name.
func (r *reader) file(w string, t touch) {
	t.said, t.follow = shown(w), t.follow || r.follow
	sure := t.sure && len(r.cwd) == 1 && !option(w)
	if root, end, ok := strings.Cut(w, "/"+below); ok && known(root) && !strings.Contains(end, "/") {
		w, sure, t.deep, t.only = root, false, true, "*"+end
	}
	for i, p := range parts(w) {
		for _, t.path = range r.places(p) {
			t.sure = sure && i == 0
			r.l.touches = append(r.l.touches, t)
			if !strings.Contains(t.path, part) || i > 0 {
				continue
			}
			names, _ := filepath.Glob(shown(t.path)) // links among the names
			for _, name := range names[:min(len(names), 200)] {
				if real := resolve(name); real != name {
					link := t
					link.path, link.sure = real, false
					r.l.touches = append(r.l.touches, link)
				}
			}
		}
	}
}

// parts returns the parts of a word that may name a file or a command: the whole, the value of an option, the parts of "if=a",
// "HEAD:a", "@a" and "f=@a;type=b"; each also without quotes and brackets.
func parts(w string) (list []string) {
	if !strings.HasPrefix(w, "-") {
		list = append(list, w)
	} else if len(w) > 2 && w[1] != '-' {
		for i := 2; i < len(w) && i < 10 && (i == 2 || w[i-1] != '/' && w[i-1] != '.'); i++ { // behind several letters
			list = append(list, w[i:])
		}
	}
	for i := range len(w) {
		if strings.IndexByte("=:@<,", w[i]) >= 0 && len(list) <= maxWords {
			list = append(list, w[i+1:])
		}
	}
	for piece := range strings.FieldsFuncSeq(w, func(c rune) bool { return strings.ContainsRune(`=:@<,;"'{}()[] `, c) }) {
		if piece != w && len(list) <= maxWords {
			list = append(list, piece)
		}
	}
	if len(list) > maxWords {
		list = append(list[:maxWords], star)
	}
	return list
}

// cd follows a change of folder.
func (r *reader) cd(to string) {
	next := r.places(to)
	if to == "" || option(to) || strings.HasPrefix(to, "+") || len(r.cwd) > 8 || slices.ContainsFunc(next, func(p string) bool { return !known(p) }) {
		r.lose()
		return
	}
	r.cwd = union(next, nil)
}

// absent reports whether the rule, a name for all folders, matches none of the names on the disk for a pattern.
func (p pattern) absent(file, dir string) bool {
	if info, err := os.Stat(dir); !p.anywhere || strings.ContainsAny(file, star+below) || err != nil || !info.IsDir() {
		return false
	}
	names, _ := filepath.Glob(shown(file))
	return !slices.ContainsFunc(append(names, shown(file)), func(name string) bool { return p.matches(name, dir, true) || p.matches(resolve(name), dir, true) })
}

// maxWalk bounds the names below folders that are read for one line.
const maxWalk = 50000

// holds reports whether something below a folder may match the pattern. For names in any folder it reads the disk.
func (p pattern) holds(t touch, dir string, seen *int) bool {
	in := strings.TrimSuffix(t.path, "/") + "/" + star
	if t.only != "" {
		in += loose(t.only)
	}
	info, err := os.Stat(dir)
	switch there, may := err == nil && info.IsDir(), p.mayMatch(in, dir); {
	case t.follow:
		return true
	case !may:
		return false
	case !there || may && !p.anywhere && t.write || strings.ContainsAny(t.path, star+below):
		return may
	case !known(t.path):
		names, _ := filepath.Glob(shown(t.path))
		return len(names) > maxWords || slices.ContainsFunc(names, func(name string) bool {
			t.path = name
			return p.holds(t, dir, seen)
		})
	}
	found := false
	_ = filepath.WalkDir(t.path, func(name string, e fs.DirEntry, err error) error {
		if *seen++; *seen > maxWalk {
			found = true
		}
		switch {
		case found:
			return fs.SkipAll
		case err != nil: // a folder that is not read hides no other
			return nil
		}
		hidden := t.visible && strings.HasPrefix(e.Name(), ".") && name != t.path
		if e.IsDir() && (e.Name() == ".git" || hidden) {
			return fs.SkipDir
		}
		if ok, _ := path.Match(t.only, e.Name()); !hidden && (ok || t.only == "") {
			found = p.matches(name, dir, true) || e.Type()&fs.ModeSymlink != 0 && !t.visible && p.matches(resolve(name), dir, true)
		}
		return nil
	})
	return found
}

// write records that a file has new content, which a later command may run.
func (r *reader) write(w string) {
	for _, p := range parts(w) {
		r.written = append(r.written, named(p))
	}
}

// wrote reports whether the line may have written a file.
func (r *reader) wrote(file string) bool {
	return slices.ContainsFunc(r.written, func(w string) bool { return !known(w) || w == named(file) })
}

// maxHeld bounds the protected paths of a sandbox: each is a mount of each command.
const maxHeld = 200

// Held returns the files and folders of a workspace under deny rules, for reading or only for changing, as absolute paths, none below
// another of its list, without symbolic links and folders .git. whole is false if there are more than it returns or looks at.
func (r *Rules) Held(dir string) (unread, unchanged []string, whole bool) {
	dir = filepath.Clean(dir)
	seen := 0
	about := func(path, tool string) bool {
		for _, rule := range r.deny {
			if !rule.all && rule.opens(tool == "read_file", tool == "edit_file") && rule.files.matches(path, dir, true) {
				return true
			}
		}
		return false
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch seen++; {
		case seen > 2*maxWalk || len(unread)+len(unchanged) >= maxHeld:
			return fs.SkipAll
		case path == dir || err != nil || e.Type()&fs.ModeSymlink != 0:
			return nil
		case e.Name() == ".git":
		case about(path, "read_file"):
			unread = append(unread, path)
		default:
			in := len(unchanged) > 0 && strings.HasPrefix(path, unchanged[len(unchanged)-1]+"/")
			if !in && about(path, "edit_file") {
				unchanged = append(unchanged, path)
			}
			return nil
		}
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return unread, unchanged, err == nil && seen <= 2*maxWalk && len(unread)+len(unchanged) < maxHeld
}
