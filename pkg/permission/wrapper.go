package permission

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wrapper is a command that runs the command in its arguments.
type wrapper struct {
	flags    string   // options of one letter without a value
	values   string   // those with a value
	long     []string // long options; with "=" at the end they have a value
	operands int      // before the command
	weighs   bool     // a rule has to allow the wrapper, too
}

var wrappers = map[string]wrapper{
	"nohup": {}, "setsid": {flags: "cfw"}, "builtin": {}, "command": {flags: "p"}, "exec": {flags: "cl", values: "a"},
	"nice":    {values: "n", long: []string{"--adjustment="}},
	"timeout": {flags: "vfp", values: "ks", long: []string{"--foreground", "--preserve-status", "--verbose", "--kill-after=", "--signal="}, operands: 1},
	"stdbuf":  {values: "ioe", long: []string{"--input=", "--output=", "--error="}},
	"time":    {flags: "pvq"},
	"ionice":  {flags: "t", values: "cn"},
	"env":     {flags: "i0v", values: "u", long: []string{"--ignore-environment", "--unset=", "--null", "--debug"}},
	"sudo":    {flags: "AEHnPS", values: "ugpCT", long: []string{"--user=", "--group=", "--non-interactive"}, weighs: true},
	"doas":    {flags: "n", values: "u", weighs: true},
	"busybox": {weighs: true}, "toybox": {weighs: true},
	"xargs": {flags: "0rtxp", values: "aEdILnPs", long: []string{"--null", "--no-run-if-empty", "--arg-file=", "--delimiter=", "--max-args=", "--max-procs=", "--max-lines=", "--replace=", "--verbose"}},
}

// openers run what nothing of their words says, or have so many ways to that none is looked at.
var openers = []string{".", "source", "alias", "enable", "trap", "bind", "complete", "compgen", "fc", "shopt", "coproc", "mapfile", "readarray",
	"watch", "parallel", "su", "runuser", "script", "expect", "entr", "systemd-run", "nsenter", "unshare", "chroot", "strace", "ltrace", "gdb", "perf",
	"valgrind", "tmux", "screen", "flock", "setpriv", "prlimit", "taskset", "chrt", "runcon", "proot", "fakeroot", "bwrap", "firejail", "dbus-run-session",
	"xvfb-run", "unbuffer", "rlwrap", "chronic", "at", "batch", "pkexec", "run-parts", "start-stop-daemon", "zsh", "ksh", "fish", "csh", "tcsh", "rbash"}

// shells read commands as bash does, or less than it.
var shells = []string{"bash", "sh", "dash", "ash"}

// interpreters run what they read when no file is named.
var interpreters = regexp.MustCompile(`^(python|perl|ruby|node|nodejs|php|lua|deno|bun|R|Rscript|julia|tclsh|wish|guile|ghci|irb|osascript|pwsh)[0-9.]*$`)

// through looks at what the command runs.
func (r *reader) through(l *line, c *call, base string, words []word) {
	w, wraps := wrappers[base]
	switch {
	case base == "cd" || base == "pushd" || base == "popd":
		r.cd(words)
	case base == "eval":
		r.eval(c, words)
	case slices.Contains(openers, base):
		c.anything("what " + base + " runs is not known")
	case slices.Contains(shells, base):
		r.shell(l, c, words)
	case interpreters.MatchString(base):
		interpreter(l, base, words)
		r.launch(l, c, base, words) // bun is both
	case base == "find":
		r.find(c, words)
	case base == "git":
		git(c, words)
	case wraps:
		r.unwrap(l, c, w, base, words)
	default:
		r.launch(l, c, base, words)
	}
}

// unwrap finds the command that a wrapper runs.
func (r *reader) unwrap(l *line, c *call, w wrapper, base string, words []word) {
	rest := words[1:]
	if base == "nice" && len(rest) > 0 && niceness.MatchString(rest[0].text.String()) {
		rest = rest[1:]
	}
	rest, understood := w.options(rest)
	if base == "command" && len(rest) > 0 && rest[0].is("-v", "-V") {
		return // it only shows what would run
	}
	if base == "env" && len(rest) < len(words)-1 {
		c.doubt("env changes the environment")
	}
	if base == "env" || base == "sudo" {
		for len(rest) > 0 && strings.Contains(rest[0].text.String(), "=") {
			c.doubt(base + " sets a variable for a command")
			rest = rest[1:]
		}
	}
	rest = rest[min(w.operands, len(rest)):]
	for _, before := range words[:len(words)-len(rest)] {
		understood = understood && !before.glob && !before.expand
	}
	switch {
	case !understood || len(rest) > 0 && (rest[0].mayBeOption() || strings.HasPrefix(rest[0].text.String(), "-")):
		c.anything("what " + base + " runs is not known, for an option of it")
		return
	case len(rest) == 0:
		if base == "xargs" {
			l.doubt("xargs runs a command with arguments that are not known")
		}
		return
	}
	if base == "xargs" {
		l.doubt("xargs runs a command with arguments that are not known")
		rest = append(slices.Clone(rest), word{text: text{star}, expand: true, split: true})
	}
	c.passes, c.names = !w.weighs, nil
	c.inside = new(line)
	c.inside.calls = []call{r.call(l, rest)}
}

var niceness = regexp.MustCompile(`^-[0-9]+$`)

// options skips the options of a wrapper. It reports false at one that it does not know.
func (w wrapper) options(words []word) (rest []word, understood bool) {
	for len(words) > 0 {
		s, ok := words[0].plain()
		switch {
		case !ok:
			return words, false
		case s == "--":
			return words[1:], true
		case len(s) < 2 || s[0] != '-' || s == "-v" && !strings.Contains(w.flags, "v") || s == "-V":
			return words, true
		case s[1] == '-':
			name, _, given := strings.Cut(s, "=")
			switch {
			case slices.Contains(w.long, name) && !given, slices.Contains(w.long, name+"=") && given:
				words = words[1:]
			case slices.Contains(w.long, name+"=") && len(words) > 1:
				words = words[2:]
			default:
				return words, false
			}
		default:
			i := 1
			for i < len(s) && strings.IndexByte(w.flags, s[i]) >= 0 {
				i++
			}
			switch {
			case i == len(s):
				words = words[1:]
			case strings.IndexByte(w.values, s[i]) < 0:
				return words, false
			case i+1 < len(s):
				words = words[1:]
			case len(words) > 1:
				words = words[2:]
			default:
				return words, false
			}
		}
	}
	return nil, true
}

// eval reads what eval runs, if that is written out.
func (r *reader) eval(c *call, words []word) {
	t := join(words[1:], false)
	if c.expand || c.glob || slices.Contains(t, tilde) {
		c.anything("what eval runs is not known")
		return
	}
	c.inside, c.passes, c.names = r.line(t.String()), true, nil
	r.lost = true // it may have changed folders
}

// shell reads what a shell runs.
func (r *reader) shell(l *line, c *call, words []word) {
	for i := 1; i < len(words); i++ {
		s, ok := words[i].plain()
		switch {
		case !ok:
			c.anything("what the shell runs is not known")
			return
		case s == "--version" || s == "--help":
			return
		case shellFlags.MatchString(s):
			if strings.HasSuffix(s, "o") {
				i++
			}
			continue
		case commandFlag.MatchString(s) && i+1 < len(words):
			if strings.ContainsAny(s, "li") {
				c.doubt("the shell runs what is in its own files first")
			}
			r.script(c, words[i+1])
			return
		case strings.HasPrefix(s, "-") && s != "-" || strings.HasPrefix(s, "+"):
			c.anything("what the shell runs is not known, for an option of it")
			l.doubt("a shell may run what it reads")
			return
		case input.MatchString(s):
			l.anything("a shell runs what it reads")
		}
		return // a file
	}
	l.anything("a shell runs what it reads")
}

// script reads the command line that a shell gets as an argument.
func (r *reader) script(c *call, w word) {
	src, ok := w.plain()
	if !ok || slices.Contains(w.text, tilde) || strings.HasPrefix(src, "-") || strings.HasPrefix(src, "+") {
		c.anything("what the shell runs is not known")
		return
	}
	inner := *r
	inner.bases = slices.Clone(r.bases)
	c.inside, c.passes, c.names = inner.line(src), true, nil
}

var (
	shellFlags  = regexp.MustCompile(`^-[euxvf]*o?$`)
	commandFlag = regexp.MustCompile(`^-[euxvfli]*c$`)
	input       = regexp.MustCompile(`^(-|/dev/(stdin|fd/.*)|/proc/.*)$`)
)

// interpreter looks whether an interpreter runs what it reads.
func interpreter(l *line, base string, words []word) {
	for _, w := range words[1:] {
		s, ok := w.plain()
		switch {
		case ok && input.MatchString(s):
			l.doubt(base + " runs what it reads")
			return
		case !ok || !strings.HasPrefix(s, "-"), oneLiner.MatchString(s):
			return
		}
	}
	l.doubt(base + " runs what it reads")
}

var oneLiner = regexp.MustCompile(`^(-[a-zA-Z]*[cemEr]|-V|--version|--help|-h|--eval|-[a-z]*e.*)$`)

// find reads what find runs.
func (r *reader) find(c *call, words []word) {
	for i := 1; i < len(words); i++ {
		s, ok := words[i].plain()
		switch {
		case words[i].expand || words[i].mayBeOption():
			c.doubt("an argument of find is not known")
			if words[i].split {
				c.open = true
			}
		case !ok:
		case slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, s):
			end := i + 1
			for end < len(words) && !words[end].is(";", "+") {
				end++
			}
			c.doubt("find runs a command for files that are not known")
			if end > i+1 {
				if c.inside == nil {
					c.inside = new(line)
				}
				c.inside.calls = append(c.inside.calls, r.call(c.inside, found(words[i+1:end])))
			}
			i = end
		case s == "-delete" || s == "-fls" || strings.HasPrefix(s, "-fprint"):
			c.doubt("find changes files by " + s)
		}
	}
}

// found are words in which {} stands for a file.
func found(words []word) (list []word) {
	for _, w := range words {
		if s, ok := w.plain(); ok && strings.Contains(s, "{}") {
			w = word{expand: true}
			for i, piece := range strings.Split(s, "{}") {
				if i > 0 {
					w.text = append(w.text, star)
				}
				w.text = append(w.text, literal(piece)...)
			}
		}
		list = append(list, w)
	}
	return list
}

// git takes the options before git's own command away.
func git(c *call, words []word) {
	i, harmless := 1, true
	for ; i < len(words); i++ {
		s, ok := words[i].plain()
		if !ok && (words[i].mayBeOption() || strings.HasPrefix(words[i].text.String(), "-")) {
			c.anything("an option of git is not known")
			return
		}
		if !strings.HasPrefix(s, "-") {
			break
		}
		name, value, given := strings.Cut(s, "=")
		switch {
		case slices.Contains([]string{"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects", "--version", "-v"}, s):
		case slices.Contains([]string{"-p", "--paginate", "--bare", "--glob-pathspecs", "--noglob-pathspecs", "--icase-pathspecs", "--no-lazy-fetch", "--exec-path", "--help", "-h"}, s):
			c.doubt("git " + s)
		case slices.Contains([]string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix", "--attr-source"}, name):
			if harmless = false; !given || name == "-C" || name == "-c" {
				i++
				if i < len(words) {
					value, ok = words[i].plain()
				}
			}
			if name != "-C" {
				c.doubt("git " + name + " may make git run something else")
			}
			if name == "-c" || name == "--config-env" {
				c.open = c.open || !ok || strings.HasPrefix(strings.ToLower(value), "alias.")
			}
		case name == "--exec-path" && given:
			c.doubt("git --exec-path runs other programs")
		default:
			c.anything("git does not have the option " + s)
			return
		}
	}
	if i >= len(words) {
		return
	}
	gitCommands(c, words[i:])
	if i == 1 {
		return
	}
	short := join(append(known("git"), words[i:]...), false)
	c.also = append(c.also, short)
	if harmless && len(c.doubts) == 0 && c.text[0] == 'g' {
		c.plain = short
	}
}

// quoted are words as a line of bash that reads as they are. It reports false if there is none
// of one line.
func quoted(words []word) (string, bool) {
	var b strings.Builder
	for i, w := range words {
		s, ok := w.plain()
		if !ok || strings.ContainsAny(s, "\n\t") {
			return "", false
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		if len(w.text) > 0 && w.text[0] == tilde {
			b.WriteByte('~')
			s = s[1:]
			if s == "" {
				continue
			}
		}
		if slices.Contains(w.text[min(1, len(w.text)):], tilde) {
			return "", false
		}
		q, err := syntax.Quote(s, syntax.LangPOSIX)
		if err != nil {
			return "", false
		}
		b.WriteString(q)
	}
	return b.String(), true
}
