package toolchain

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// defaultPath is the default of PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// path sets PATH to the granted folders of the user's, those that the member can write last: they hide no other program.
func (f *finder) path() {
	value, ok := f.lookup("PATH")
	if !ok {
		value = defaultPath
	}
	var first, last []string
	for entry := range strings.SplitSeq(value, ":") {
		if !path.IsAbs(entry) {
			f.grant.Omitted = append(f.grant.Omitted, entry) // another folder for each command
			continue
		}
		entry = path.Clean(entry)
		real, names, err := f.follow(entry)
		switch {
		case err != nil || !f.isDir(real):
		case slices.ContainsFunc(names, func(n string) bool { return within(n, f.writable) }):
			last = append(last, entry)
		case system(real):
			first = append(first, entry)
			f.programs(real)
		default:
			first = append(first, f.entry(entry, real)...)
		}
	}
	all := slices.Concat(first, last)
	if len(all) == 0 {
		all = []string{defaultPath}
	}
	f.set("PATH", strings.Join(all, ":"))
}

// entry grants a folder of PATH, with the needs of its programs, and returns where its links lead.
func (f *finder) entry(entry, real string) []string {
	if dirs, ok := f.withoutShims(real); ok {
		return dirs
	}
	if f.secret(real) {
		f.grant.Omitted = append(f.grant.Omitted, entry)
		return nil
	}
	f.installation(real)
	if real != entry && !f.secret(entry) {
		f.give(entry) // what is there may name itself so
	}
	f.programs(real)
	return []string{real}
}

// marks are the entries beside the bin of an installation with a separate folder.
var marks = []string{"lib", "lib64", "libexec", "VERSION", "pyvenv.cfg"}

// installation grants a real folder of programs, with the installation around it.
func (f *finder) installation(dir string) {
	root := dir
	if before, _, ok := strings.Cut(dir+"/", "/node_modules/"); ok && !within(before, f.writable) {
		root = before + "/node_modules" // packages need those beside them
	} else if base := path.Base(dir); base == "bin" || base == "sbin" || base == "condabin" {
		root = path.Dir(dir)
	}
	if below(dir, "/nix/store") {
		root = "/nix/store" // all of it is public, and its parts name each other
	}
	whole := path.Base(root) == "node_modules" || root == "/nix/store" || f.has(root, marks...)
	if root == dir || !whole || f.secret(root) {
		f.give(dir)
		return
	}
	f.give(root)
	if f.has(root, "pyvenv.cfg") { // a virtual environment: its python is another's
		f.program(path.Join(root, "bin/python"))
	}
}

// programs grants the targets of the links in a real folder of programs.
func (f *finder) programs(dir string) {
	entries, _ := fs.ReadDir(f.FS, inFS(dir))
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 {
			f.program(path.Join(dir, entry.Name()))
		}
	}
}

// program grants the needs of a linked program: the installation of each path on the way.
func (f *finder) program(name string) {
	_, names, err := f.follow(name)
	if err != nil {
		return
	}
	for _, n := range names[1:] {
		dir := path.Dir(n)
		if system(n) || within(n, f.writable) || slices.ContainsFunc(f.grant.ReadOnly, func(g string) bool { return below(n, g) }) {
			continue
		}
		if f.secret(dir) {
			f.grant.Omitted = append(f.grant.Omitted, n)
			return
		}
		f.installation(dir)
	}
}
