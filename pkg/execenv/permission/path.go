package permission

import (
	"errors"
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
