// Package needs finds what commands need of the machine beside their workspace, so that a
// sandbox can give it to them: what PATH names, toolchains, caches of packages, and the
// credentials that a role names. All of it is to be read only.
//
// It gives no home as a whole, and nothing that lies where secrets are; credentials are given
// by name only. It confines nothing and runs nothing: package sandbox does.
package needs

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Host is the machine as its user finds it.
type Host struct {
	FS  fs.FS                            // the root of its files; an [fs.ReadLinkFS]
	Env func(name string) (string, bool) // as [os.LookupEnv]
}

// This is the machine and the user of this process.
func This() Host { return Host{FS: os.DirFS("/"), Env: os.LookupEnv} }

// Member is for whose commands something is needed.
type Member struct {
	Home     string   // HOME of the commands: absolute, the member's own, writable
	Writable []string // what else they may write, the workspace among it; absolute
	Network  bool     // whether they reach any host: packages are fetched then, else taken from the caches of the user
}

// Grant is what commands are given beside their workspace. The zero Grant gives nothing.
type Grant struct {
	ReadOnly []string // folders and files that are there; absolute, sorted, none below another
	Env      []string // "NAME=value" each; of credentials it holds secrets
	Omitted  []string // what was asked for by the environment and is not given, and why; a line each

	home  string
	links map[string]string // below home, what is to be found at the path of the host
	git   gitSettings
}

// And returns what both give. Of variables that both have, those of more hold.
func (g Grant) And(more Grant) Grant {
	sum := Grant{
		ReadOnly: outermost(slices.Concat(g.ReadOnly, more.ReadOnly)),
		Env:      slices.Concat(g.Env, more.Env),
		Omitted:  slices.Concat(g.Omitted, more.Omitted),
		home:     g.home,
		links:    map[string]string{},
		git:      g.git.and(more.git),
	}
	for _, links := range []map[string]string{g.links, more.links} {
		for name, target := range links {
			sum.links[name] = target
		}
	}
	return sum.namingGit()
}

// Tools returns what the environment of the host names as tools, and the caches of packages that
// are there. It reads folders, links, and small settings; it changes nothing.
func Tools(h Host, m Member) Grant {
	f := newFinder(h, m)
	f.path()
	f.managers()
	f.golang()
	f.rust()
	f.npm()
	f.pip()
	f.gitUser()
	return f.grant().namingGit()
}

// finder collects a [Grant].
type finder struct {
	Host
	member   Member
	home     string   // of the user, as it is named; "" if there is none
	homes    []string // the same, and where its links lead
	writable []string // by the member, as named and where links lead
	given    []string
	env      []string
	omitted  []string
	links    map[string]string
	git      gitSettings
}

func newFinder(h Host, m Member) *finder {
	f := &finder{Host: h, member: m, links: map[string]string{}}
	if home, _ := h.Env("HOME"); path.IsAbs(home) && path.Clean(home) != "/" {
		f.home = path.Clean(home)
		f.homes = f.names(f.home)
	}
	for _, dir := range append([]string{m.Home}, m.Writable...) {
		if path.IsAbs(dir) {
			f.writable = append(f.writable, f.names(path.Clean(dir))...)
		}
	}
	return f
}

// names returns a path and, if links lead from it elsewhere, each path that they lead to.
func (f *finder) names(name string) []string {
	_, names, err := f.follow(name)
	if err != nil {
		return []string{name}
	}
	return names
}

func (f *finder) grant() Grant {
	return Grant{
		ReadOnly: outermost(f.given), Env: f.env, Omitted: f.omitted,
		home: f.member.Home, links: f.links, git: f.git,
	}
}

// lookup returns a variable, and whether it has a value.
func (f *finder) lookup(name string) (string, bool) {
	value, _ := f.Env(name)
	return value, value != ""
}

func (f *finder) set(name, value string) { f.env = append(f.env, name+"="+value) }

// pass passes variables of the host on, those that are set.
func (f *finder) pass(names ...string) {
	for _, name := range names {
		if value, ok := f.lookup(name); ok {
			f.set(name, value)
		}
	}
}

// folder returns the path that a variable holds, or else that of name below the user's home;
// "" if there is neither.
func (f *finder) folder(variable, name string) string {
	if value, ok := f.lookup(variable); ok && path.IsAbs(value) {
		return path.Clean(value)
	}
	if f.home == "" {
		return ""
	}
	return path.Join(f.home, name)
}

// link has the member find at name, below its home, what is at target, if that can be given.
func (f *finder) link(name, target string) {
	if f.give(target, "") {
		f.links[name] = target
	}
}

// give gives a path with all that its links lead to, and reports whether it is there and is
// given. The reason why not is kept only for what a variable has asked for: what.
func (f *finder) give(name, what string) bool {
	if !path.IsAbs(name) {
		return false
	}
	_, names, err := f.follow(name)
	if err != nil {
		return false
	}
	for _, n := range names {
		if why := f.secret(n); why != "" {
			if what != "" {
				f.omitted = append(f.omitted, what+" is not given to commands: "+why)
			}
			return false
		}
	}
	for _, n := range names {
		if !system(n) && !within(n, f.writable) {
			f.given = append(f.given, n)
		}
	}
	return true
}

// outermost returns paths sorted, without those that lie below another.
func outermost(paths []string) []string {
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	return slices.DeleteFunc(paths, func(p string) bool {
		return slices.ContainsFunc(paths, func(q string) bool { return q != p && below(p, q) })
	})
}

// below reports whether a path is dir, or lies below it.
func below(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// within reports whether a path is one of dirs, or lies below one.
func within(name string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return below(name, dir) })
}
