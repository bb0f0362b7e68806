package sandbox

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"agentteam/pkg/execenv/sandbox/supervisor"
	"agentteam/pkg/team"
	"agentteam/pkg/tool/command"
)

// access is the way in which commands see a place.
type access int

const (
	writes access = iota // they change it, and what is below
	reads                // they read and execute it, if it is there
	hides                // it is not there
)

// place is a path of a view.
type place struct {
	path string
	access
	from string // what is there: the path itself, or another one
}

// view is the box of a command: its places, environment and limits. A level translates it, into mounts or into Landlock rights.
type view struct {
	dir    string // the workspace
	temp   string // where commands find the folder for temporary files
	places []place
	env    []string // all of it
	Limits
}

// view returns the view of a command in b. It checks that no earlier command put a symbolic link where the box has a place.
func (b Box) view(level team.Sandbox, more []string) (v view, err error) {
	v = view{dir: b.Dir, temp: b.temp(), env: command.Environ(os.Environ()), Limits: b.Limits}
	if level == team.Unconfined {
		v.env = slices.Concat(v.env, b.Env, more)
		return v, nil
	}
	for _, list := range []struct {
		access
		paths []string
	}{{writes, append([]string{b.Dir, b.Home}, b.Write...)}, {reads, b.ReadOnly}, {hides, b.Hidden}} {
		for _, path := range list.paths {
			v.places = append(v.places, place{path, list.access, path})
		}
	}
	if level == team.Bubblewrap {
		for path, from := range b.Shown {
			v.places = append(v.places, place{path, reads, from})
		}
		v.temp = v.tempMount()
	}
	v.places = append([]place{{v.temp, writes, b.temp()}}, v.places...)
	v.env = append(v.env, "HOME="+b.Home, "TMPDIR="+v.temp)
	if b.Proxy != nil {
		v.env = append(v.env, proxied()...)
	}
	v.env = slices.Concat(v.env, b.Env, more)
	slices.SortStableFunc(v.places, func(a, b place) int { return cmp.Compare(a.path, b.path) }) // parents first
	return v, v.untouched(level)
}

// proxied returns the variables by which programs find the proxy, with exceptions for addresses inside the box.
func proxied() (env []string) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		env = append(env, name+"=http://"+supervisor.ProxyAddress)
	}
	const own = "localhost,127.0.0.1,::1"
	return append(env, "NO_PROXY="+own, "no_proxy="+own)
}

// having returns the paths with that access.
func (v view) having(a access) (paths []string) {
	for _, p := range v.places {
		if p.access == a {
			paths = append(paths, p.path)
		}
	}
	return paths
}

// tempMount returns where commands see the member's folder for temporary files: /tmp, if no path of the box is below. A command could
// put a symbolic link where the next one's mount points are created.
func (v view) tempMount() string {
	i := slices.IndexFunc(temps, func(temp string) bool {
		return !slices.ContainsFunc(v.places, func(p place) bool { return below(p.path, temp) })
	})
	return temps[max(i, 0)]
}

// temps are the possible places of the folder for temporary files. The last one serves nothing else.
var temps = []string{"/tmp", "/var/tmp", "/run/agentteam"}

// untouched checks that no link leads a place elsewhere.
func (v view) untouched(level team.Sandbox) error {
	for _, p := range v.places {
		if real, err := filepath.EvalSymlinks(p.from); p.access == reads && p.from != p.path && err == nil && real != p.from { // replaced since it was looked at
			return team.Errorf(team.InvalidState, "%s leads to %s, and is not shown at %s", p.from, real, p.path).WithHint("name the place that it leads to")
		}
		out := p.access == hides && v.leadsOut(p.path)
		for _, dir := range v.having(writes) {
			switch link, err := linkBetween(dir, p.path); {
			case err != nil:
				return team.Errorf(team.InvalidState, "%w", err)
			case link != "" && (link != p.path || !out):
				return team.Errorf(team.InvalidState, "%s is a symbolic link: commands in a sandbox need the real path", link).
					WithHint("remove the link, or name the place that it leads to")
			}
		}
		if _, err := os.Lstat(p.path); level == team.Confined && p.access == hides && err == nil && !out {
			return team.Errorf(team.InvalidState, "%s cannot be hidden in the weaker sandbox %q", p.path, level).
				WithHint("move it out of the workspace and leave a symbolic link, or install bubblewrap")
		}
	}
	return nil
}

// linkBetween returns the first symbolic link on the way from dir to path, "" if there is none or path is not below dir.
func linkBetween(dir, path string) (link string, err error) {
	for at := path; at != dir && below(at, dir); at = filepath.Dir(at) {
		switch info, lerr := os.Lstat(at); {
		case errors.Is(lerr, os.ErrNotExist):
		case lerr != nil:
			err = lerr // unless a link is on the way there
		case info.Mode()&os.ModeSymlink != 0:
			link, err = at, nil
		}
	}
	return link, err
}

// leadsOut reports whether path is a symbolic link to a place that no command of the box can read.
func (v view) leadsOut(path string) bool {
	target, err := filepath.EvalSymlinks(path)
	if link, _ := os.Readlink(path); link == "" || err != nil {
		return link != "" && errors.Is(err, os.ErrNotExist)
	}
	return !slices.ContainsFunc(v.places, func(p place) bool {
		real, err := filepath.EvalSymlinks(p.from)
		return p.access != hides && err == nil && below(target, real)
	})
}

// valid checks the fields of a box.
func (b Box) valid() error {
	refuse := func(format string, args ...any) error {
		return team.Errorf(team.InvalidArgument, "a sandbox: "+format, args...)
	}
	folders := append([]string{b.Dir, b.Home}, b.Write...)
	inside := slices.Clone(b.Hidden)
	for at, from := range b.Shown {
		if inside = append(inside, at); !filepath.IsAbs(from) {
			return refuse("%q is not absolute", from)
		}
	}
	for _, path := range slices.Concat(folders, b.ReadOnly, inside) {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
			return refuse("%q is not an absolute path below /", path)
		}
	}
	for _, path := range inside {
		if !below(path, b.Dir) || path == b.Dir {
			return refuse("%s is not below %s", path, b.Dir)
		}
	}
	for _, dir := range []string{b.Home, b.temp()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return refuse("the home of the commands: %w", err)
		}
	}
	for _, dir := range folders {
		if _, err := os.Stat(dir); err != nil {
			return refuse("%w", err)
		}
	}
	return nil
}
