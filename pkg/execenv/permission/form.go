package permission

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// form is the plain form of the options of a command that runs another, or a script.
type form struct{ one, two *regexp.Regexp } // options of one word, and of two

func options(one, two string) form {
	return form{regexp.MustCompile(`^(` + one + `)$`), regexp.MustCompile(`^(` + two + `)$`)}
}

var (
	// wrappers run the command in their arguments.
	wrappers = map[string]form{
		"nohup": options(`--`, `-`), "builtin": options(`--`, `-`), "command": options(`--|-p`, `-`), "exec": options(`--|-[cl]+`, `-a`),
		"nice": options(`--|-[0-9]+|-n[0-9-]+|--adj.*=.*`, `-n|--adjustment`), "time": options(`--|-p`, `-`),
		"env":     options(`--|-[i0v]+|-u.+|--ignore-environment|--unset=.*|[A-Za-z_][A-Za-z_0-9]*=(.|\n)*`, `-u|--unset`),
		"xargs":   options(`--|-[0rtx]+|-[dLnPs].+|--null|--no-run-if-empty|--verbose|--(delimiter|max-args|max-procs|max-lines)=.*`, `-[0rtx]*[dLnPs]|--(delimiter|max-args|max-procs)`),
		"timeout": options(`--|-[vfp]+|--foreground|--preserve-status|--verbose|-[ks].+|--(kill-after|signal)=.*`, `-[vfp]*[ks]|--kill-after|--signal`),
	}
	gitBefore    = options(`--no-pager|-P|--no-optional-locks|--literal-pathspecs|--no-replace-objects|--version|--help|-p`, `-C`)
	shellOptions = options(`-[euxvfn]+`, `-[euxvfn]*o`)
	commandFlag  = regexp.MustCompile(`^-[euxvfli]*c$`)
	harmless     = options(`-[uBOwvV]+|--test|--watch|--enable-source-maps`, `-`)
	shells       = []string{"bash", "sh", "dash", "ash"}

	// interpreters run their input when no file is named.
	interpreters = regexp.MustCompile(`^(python|pypy|perl|ruby|node|nodejs|php|lua|luajit|R|Rscript|julia|tclsh|wish|guile|ghci|irb|osascript|pwsh|zsh|ksh|mksh|fish|csh|tcsh|rbash)[0-9.]*$`)
)

// skip returns the words behind the options, and whether all of these are of the plain form.
func (f form) skip(args []string) (rest []string, understood bool) {
	for len(args) > 0 && known(args[0]) {
		switch s := args[0]; {
		case f.two.MatchString(s) && len(args) > 1 && known(args[1]):
			args = args[2:]
			continue
		case !f.one.MatchString(s):
			return args, !option(s)
		case s == "--":
			return args[1:], true
		}
		args = args[1:]
	}
	return args, len(args) == 0
}

// form reads the arguments of a program that runs others, or that changes the folder; false for other programs.
func (r *reader) form(c *call, base string, args []string) bool {
	for (base == "cd" || base == "trap") && len(args) > 0 && slices.Contains([]string{"-P", "-L", "--"}, args[0]) {
		args = args[1:]
	}
	wrapper, wraps := wrappers[base]
	switch {
	case wraps:
		r.wrapper(c, wrapper, base, args)
	case base == "eval":
		r.script(c, strings.Join(args, " "), func(run func()) { run() })
	case base == "trap":
		if r.lose(); len(args) > 1 {
			r.script(c, args[0], r.apart)
		}
	case base == "source", base == ".":
		c.doubt = cmp.Or(c.doubt, "it is not known what "+base+" runs")
		r.ran(c, args)
	case slices.Contains(shells, base), interpreters.MatchString(base):
		r.run(c, base, args)
	case base == "find":
		r.find(c, args)
	case base == "git":
		r.git(c, args)
	default:
		switch base {
		case "cd":
			r.cd(append(slices.Clone(args), tilde)[0])
		case "pushd", "popd":
			if r.cd(append(slices.Clone(args), "-")[0]); base == "popd" {
				r.lose()
			}
		}
		return false
	}
	return true
}

// wrapper reads the command that a wrapper runs.
func (r *reader) wrapper(c *call, f form, base string, args []string) {
	if base == "command" && len(args) > 0 && slices.Contains([]string{"-v", "-V"}, args[0]) {
		return // it only shows the command
	}
	rest, understood := f.skip(args)
	if base == "env" && len(rest) < len(args) {
		c.doubt = cmp.Or(c.doubt, "env changes the environment")
		for _, w := range args[:len(args)-len(rest)] {
			if name, value, set := strings.Cut(w, "="); set {
				r.environment(name, value)
			}
		}
	}
	if base == "timeout" && len(rest) > 0 {
		understood = understood && known(rest[0])
		rest = rest[1:]
	}
	if base == "xargs" {
		r.l.doubt = cmp.Or(r.l.doubt, "xargs runs a command with arguments that are not in the line")
		more := r.in
		if known(more) || slices.Contains(args, "-d") {
			more = star
		}
		if len(rest) == 0 {
			rest = []string{"echo"}
		}
		rest = append(slices.Clone(rest), more)
		defer func(in string) { r.in = in }(r.in)
		r.in = ""
	}
	switch {
	case !understood || len(rest) > 0 && option(rest[0]):
		r.l.open("it is not known what " + base + " runs, for an option of it")
		r.files(c, program{}, "", args)
	case len(rest) > 0:
		c.inside = r.within(func() { r.l.calls = []call{r.call(rest)} })
	}
}

// script reads a command line in an argument, if it is written out.
func (r *reader) script(c *call, src string, in func(func())) {
	if !known(src) || strings.Contains(src, tilde) || strings.HasPrefix(src, "-") || strings.HasPrefix(src, "+") {
		r.l.open("it is not known what this runs: " + c.String())
		return
	}
	in(func() { c.inside = r.within(func() { r.source(src) }) })
}

// run reads the script that a shell or an interpreter runs.
func (r *reader) run(c *call, base string, args []string) {
	own := func(run func()) { r.apart(func() { r.frozen = true; run() }) } // another shell knows no variable
	shell, form := slices.Contains(shells, base), harmless
	if shell {
		form = shellOptions
	}
	rest, understood := form.skip(args)
	head := ""
	if len(rest) > 0 {
		head = rest[0]
	}
	switch {
	case shell && len(rest) > 1 && commandFlag.MatchString(head):
		if strings.ContainsAny(head, "li") {
			c.doubt = cmp.Or(c.doubt, "the shell runs its own files first")
		}
		r.script(c, rest[1], own)
	case len(rest) == 1 && (head == "--version" || head == "--help"):
	case head == "-m" && len(rest) > 1 && strings.HasPrefix(base, "py"):
		defer func(in string) { r.in = in }(r.in)
		if !slices.Contains([]string{"code", "pdb", "asyncio", "IPython"}, rest[1]) { // others read data
			r.in = ""
		}
		r.strange(c, rest[1:])
		r.files(c, program{}, base, rest[1:])
	case len(rest) == 0 && shell && r.in != "" && known(r.in):
		r.l.doubt = cmp.Or(r.l.doubt, "a shell runs what it reads")
		src := "\n" + r.in
		r.script(c, src, func(run func()) { own(func() { r.in = ""; run() }) })
	case len(rest) == 0 && r.in == "":
		r.l.doubt = cmp.Or(r.l.doubt, base+" runs what it reads")
	case !understood || head == "-" || strings.HasPrefix(head, "+") || len(rest) == 0:
		r.l.open("it is not known what " + base + " runs")
		r.files(c, program{}, "", args)
	default:
		r.ran(c, rest)
	}
}

// ran records a file that is run, and its arguments.
func (r *reader) ran(c *call, args []string) {
	if len(args) > 0 {
		r.runs(c, args[0])
		r.file(args[0], touch{by: c.String(), read: true, sure: true})
		r.files(c, program{kind: plain}, "", args[1:])
	}
}

// runs records a file that is run: the line may have written it.
func (r *reader) runs(c *call, file string) {
	if !known(file) || notFiles.MatchString(file) || r.wrote(file) {
		r.l.open("it is not known what " + shown(file) + " holds, or the line itself writes it")
	}
}

// find reads the tests of find: the files that it lists, and its actions on them.
func (r *reader) find(c *call, args []string) {
	roots, tests := searched(args)
	names := "/" + below + ends(tests)
	defer func(was bool) { r.follow = was }(r.follow)
	r.follow = slices.Contains(args, "-L") || slices.Contains(args, "-follow")
	inside := r.within(func() {
		for i, s := range tests {
			switch {
			case mayBeOption(s):
				r.l.open("an argument of find is not in the line")
			case s == "-exec" || s == "-execdir" || s == "-ok" || s == "-okdir":
				c.doubt = cmp.Or(c.doubt, "find runs a command for files that are not in the line")
				end := slices.IndexFunc(append(slices.Clone(tests[i:]), ";"), func(w string) bool { return w == ";" || w == "+" })
				for _, root := range roots {
					var run []string
					for _, w := range tests[i+1 : i+end] {
						run = append(run, strings.ReplaceAll(w, "{}", root+names))
					}
					if len(run) > 0 {
						cwd := r.cwd
						if strings.HasSuffix(s, "dir") {
							r.lose()
						}
						r.l.calls = append(r.l.calls, r.call(run))
						r.cwd = cwd
					}
				}
			case s == "-delete":
				c.doubt = cmp.Or(c.doubt, "find removes files")
				for _, root := range roots {
					r.file(root+names, touch{by: c.String(), read: true, write: true})
				}
			case strings.HasPrefix(s, "-f") && i+1 < len(tests): // -fprint and others, -files0-from
				c.doubt = cmp.Or(c.doubt, "find reads or writes a file")
				r.file(tests[i+1], touch{by: c.String(), read: true, write: true})
			}
		}
	})
	if len(inside.calls)+len(inside.touches) > 0 || inside.opens != "" {
		c.inside = inside
	}
}

// git reads the options before git's own command, and that command.
func (r *reader) git(c *call, args []string) {
	defer func(cwd []string) { r.cwd = cwd }(r.cwd)
	rest, understood := gitBefore.skip(args)
	before := args[:len(args)-len(rest)]
	if i := slices.Index(before, "-C"); i >= 0 && i+1 < len(before) {
		r.file(before[i+1], touch{by: c.String(), read: true, write: true})
		r.cd(before[i+1])
	}
	if !understood {
		r.l.open("an option of git may make it run or open something else: " + c.String())
	}
	if len(rest) == 0 {
		return
	}
	if short := join(append([]string{"git"}, rest...), false); len(before) > 0 && strings.HasPrefix(c.texts[0], "git"+sep) && understood && !slices.Contains(before, "-C") && !slices.Contains(before, "-p") {
		c.texts = []string{short}
	} else {
		c.texts = append(c.texts, short)
	}
	name := "git-" + rest[0]
	if !known(rest[0]) || programs()[name].kind == stranger && (len(rest) < 2 || programs()[name+"-"+rest[1]].kind == stranger) {
		r.l.open("it is not known what git " + shown(rest[0]) + " runs")
	}
	for i, w := range rest { // git has patterns of names, too
		if m := marked(w, below, below, ""); known(w) && !known(m) {
			rest[i] = "./" + m
		}
	}
	r.program(c, name, rest[1:])
}
