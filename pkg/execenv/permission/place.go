package permission

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

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
	case !may && !t.follow:
		return false
	case !there || may && !p.anywhere && t.write || strings.ContainsAny(t.path, star+below):
		return may
	case !known(t.path):
		names, _ := filepath.Glob(shown(t.path))
		return len(names) > maxWords || slices.ContainsFunc(names, func(name string) bool {
			hidden := strings.HasPrefix(path.Base(name), ".") && strings.Contains(t.path, first)
			t.path = name
			return !hidden && p.holds(t, dir, seen)
		})
	}
	found := false
	t.behind = append(slices.Clone(t.behind), resolve(t.path))
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
		if t.follow && !found && e.Type()&fs.ModeSymlink != 0 {
			next := t
			if next.path = resolve(name); !slices.Contains(t.behind, next.path) {
				found = p.holds(next, dir, seen)
			}
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
