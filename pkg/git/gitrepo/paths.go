package gitrepo

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentteam/pkg/team"
)

// refused returns the error for content that no task may add to the integration branch.
func refused(format string, args ...any) *team.Error {
	return team.Errorf(team.InvalidArgument, "the commit is refused: "+format, args...)
}

func tooBig(format string, args ...any) *team.Error {
	return team.Errorf(team.BudgetExceeded, "the commit is too large: "+format, args...).
		WithHint("leave out what can be made again: have .gitignore name it")
}

// File modes of git.
const (
	modeLink      = "120000"
	modeSubmodule = "160000"
	modeNone      = "000000"
)

// change is a file that differs between two trees.
type change struct {
	before, after string // modes
	was, is       Hash
	status        byte // A, D, M, T
	path          string
}

// checkChange checks a file that a task has changed, without its content.
func checkChange(c change) error {
	switch {
	case c.before == modeSubmodule:
		return refused("it changes the submodule %s", c.path).WithHint("leave submodules as they are: bring %s back to commit %s", c.path, c.was.Short())
	case c.after == modeSubmodule:
		return refused("%s is a separate git repository", c.path).WithHint("%s", ownRepository(c.path))
	}
	if alias(path.Base(c.path), ".gitmodules", "gitmod~1") {
		return refused("it changes %s, which says where submodules come from", c.path).WithHint("leave submodules as they are")
	}
	if c.status == 'D' {
		return nil
	}
	switch c.after {
	case "100644", "100755", modeLink:
	default:
		return refused("%q has mode %s", c.path, c.after).WithHint("make it a regular file, %s", leave)
	}
	if err := checkPath(c.path); err != nil {
		return err.WithHint("rename it, %s", leave)
	}
	return nil
}

const mostPath, mostDepth = 4000, 200

// checkPath refuses paths that lead out of a tree or into its .git, on any system, and those that do not print as they are.
func checkPath(p string) *team.Error {
	parts := strings.Split(p, "/")
	switch {
	case len(p) > mostPath || len(parts) > mostDepth:
		return refused("the path %.80q... is too long", p)
	case !utf8.ValidString(p):
		return refused("the path %q is not UTF-8", p)
	case strings.ContainsFunc(p, hiddenRune):
		return refused("the path %+q has characters that do not show", p)
	case strings.Contains(p, `\`):
		return refused("the path %q has a backslash", p) // which other systems take for a slash
	}
	for _, part := range parts {
		if part == "" || part == "." || part == ".." {
			return refused("%q is no path inside a tree", p)
		}
		if dotGit(part) {
			return refused("%q is in a .git", p)
		}
	}
	return nil
}

// hiddenRune reports whether r moves the cursor, changes the direction of writing, or is invisible.
func hiddenRune(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) ||
		r == '\u200b' || r == '\u2060' || r == '\ufeff'
}

// dotGit reports whether some file system takes a name for .git: macOS ignores invisible characters, Windows ignores dots and
// spaces at the end and the part after a colon, and it has a short name for each file.
func dotGit(name string) bool { return alias(name, ".git", "git~1") }

// alias reports whether some file system takes name for of, whose short name on Windows is short.
func alias(name, of, short string) bool {
	name = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf) {
			return -1
		}
		return r
	}, name)
	name, _, _ = strings.Cut(name, ":")
	name = strings.ToLower(strings.TrimRight(name, ". "))
	return name == of || name == short
}

// checkLink refuses a symbolic link at p that leads out of its tree. A target may go up only at its beginning: after another
// link, the meaning of ".." is not known here.
func checkLink(p, target string) error {
	refuse := func(why string) error {
		return refused("the symbolic link %s %s", p, why).WithHint("link to files of the project, by relative paths")
	}
	if target == "" || path.IsAbs(target) || strings.ContainsAny(target, "\x00\\") || len(target) > 1 && target[1] == ':' {
		return refuse("leads out of the tree")
	}
	depth, down := strings.Count(p, "/"), false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part == ".." && down:
			return refuse("goes up again behind another folder")
		case part == "..":
			if depth--; depth < 0 {
				return refuse("leads out of the tree")
			}
		case dotGit(part):
			return refuse("leads into a .git")
		default:
			down = true
		}
	}
	return nil
}

// checkCase refuses added paths that some systems take for another path of the tree: a file would be written through a link of
// the other name.
func checkCase(all, added []string) error {
	fresh := map[string]bool{}
	for _, p := range added {
		for q := p; q != "."; q = path.Dir(q) {
			fresh[q] = true
		}
	}
	folded := map[string]string{} // by folded prefix, how it is written
	twice := map[string]string{}
	for _, p := range all {
		for q := p; q != "."; q = path.Dir(q) {
			key := strings.ToLower(q)
			other, seen := folded[key]
			if seen && other == q {
				break // and all above it are known
			}
			if seen {
				twice[q], twice[other] = other, q
				continue
			}
			folded[key] = q
		}
	}
	for _, p := range added {
		for q := p; q != "."; q = path.Dir(q) {
			if other := twice[q]; other != "" && fresh[q] {
				return refused("%s and %s differ by case only", q, other).WithHint("choose another name")
			}
		}
	}
	return nil
}
