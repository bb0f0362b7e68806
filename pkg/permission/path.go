package permission

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// pattern is a rule for files, in the way of .gitignore. The globs are of absolute paths, or of
// paths from the workspace; whatever matches a folder matches all that is in it.
type pattern struct {
	globs    []string
	absolute bool
	anywhere bool // it is a name without a folder: for deny and ask it holds beside the workspace, too
}

// patternOf reads what is between the parentheses of a rule for files. never is why it can match
// no file, "" if it can.
func patternOf(spec, home string) (p pattern, never string, bad *fault) {
	if strings.HasPrefix(spec, "!") {
		return p, "", &fault{0, "! has no meaning here: write the rule in another list"}
	}
	for i := range len(spec) {
		if spec[i] < ' ' {
			return p, "", &fault{i, "a rule is one line without control characters"}
		}
	}
	given := spec
	anchored := false
	switch {
	case strings.HasPrefix(spec, "//"):
		spec, p.absolute, anchored = spec[2:], true, true
	case spec == "~" || strings.HasPrefix(spec, "~/"):
		spec, p.absolute, anchored = strings.TrimPrefix(home, "/")+spec[1:], true, true
	case strings.HasPrefix(spec, "~"):
		return p, "", &fault{0, "write ~/ for your own home; another user's is //home/NAME"}
	case strings.HasPrefix(spec, "/"):
		spec, anchored = spec[1:], true
	case strings.HasPrefix(spec, "./"):
		spec, anchored = spec[2:], true
	}
	spec = strings.TrimSuffix(strings.ReplaceAll(spec, "{", `\{`), "/")
	if slices.Contains(strings.Split(spec, "/"), "..") {
		never = "it leads out of the workspace by ..: write the path from the root, as in //etc/hosts"
	}
	if spec == "" || spec == "." {
		spec = "**"
	}
	if !doublestar.ValidatePattern(spec) {
		return p, "", &fault{max(strings.IndexAny(given, `[\`), 0), `this is no pattern of files: write \[ for the character itself`}
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

// place is a file of a call: an absolute path, which may have unknown parts.
type place struct {
	path text
	said string // how the call names it
}

// inside is the path from the workspace; false if the place is not in it, or not known.
func (p place) inside(dir string) (string, bool) {
	if !p.path.certain() {
		return "", false
	}
	abs := p.path.String()
	if abs == dir {
		return ".", true
	}
	return strings.CutPrefix(abs, strings.TrimSuffix(dir, "/")+"/")
}

// matches reports whether the pattern is certainly of the place; widely counts names beside the
// workspace, too.
func (p pattern) matches(at place, dir string, widely bool) bool {
	if !at.path.certain() {
		return false
	}
	name, abs := "", at.path.String()
	switch in, ok := at.inside(dir); {
	case p.absolute || widely && p.anywhere && !ok:
		name = abs
	case ok:
		name = in
	default:
		return false
	}
	return slices.ContainsFunc(p.globs, func(g string) bool {
		return doublestar.MatchUnvalidated(g, name) || !p.absolute && path.IsAbs(name) && doublestar.MatchUnvalidated("/"+g, name)
	})
}

// mayMatch reports whether the pattern may be of a place that is not known for certain.
func (p pattern) mayMatch(at place, dir string) bool {
	return slices.ContainsFunc(p.globs, func(g string) bool {
		if !p.absolute {
			g = strings.TrimSuffix(dir, "/") + "/" + g
		}
		return loose(g).meets(at.path) || p.anywhere && loose("/"+p.globs[0]).meets(at.path)
	})
}

// loose is a glob of files as a text with stars, which matches at least what the glob does.
func loose(glob string) (t text) {
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; c {
		case '\\':
			if i++; i < len(glob) {
				t = append(t, rune(glob[i]))
			}
		case '*', '?':
			switch {
			case strings.HasPrefix(glob[i:], "**/"): // "**/x" is "x", too
				t = append(t, star)
				i += 2
			case strings.HasPrefix(glob[i:], "**"):
				t = append(t, star)
				i++
			default:
				t = append(t, part)
			}
		case '[':
			t = append(t, part)
			if end := strings.LastIndexByte(glob[i:], ']'); end > 0 {
				i += end
			}
		default:
			t = append(t, rune(c))
		}
	}
	return t
}

// viaProc finds folders of a process that lead to the root or to where it is.
var viaProc = regexp.MustCompile(`^/proc/[^/]+/(root|cwd)(/|$)`)

// clean makes an absolute path short. base is where a process is.
func clean(t text, base string) text {
	if t.certain() {
		s := path.Clean(t.String())
		for range 8 {
			m := viaProc.FindStringSubmatch(s)
			if m == nil {
				return literal(s)
			}
			rest := "/" + s[len(m[0]):]
			if m[1] == "cwd" {
				rest = base + rest
			}
			s = path.Clean(rest)
		}
		return text{star}
	}
	first := slices.IndexFunc(t, wild)
	if s := t[first:].String(); strings.Contains(s, "..") || strings.Contains(t.String(), "/proc/") {
		return text{star}
	}
	// What comes before the unknown part is cleaned up to its last slash.
	head := t[:first].String()
	if strings.HasSuffix(head, ".") { // which may become ".."
		return text{star}
	}
	cut := strings.LastIndexByte(head, '/') + 1
	dir := path.Clean("/" + head[:cut])
	if dir != "/" {
		dir += "/"
	}
	return append(literal(dir+head[cut:]), t[first:]...)
}
