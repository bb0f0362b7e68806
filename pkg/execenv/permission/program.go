package permission

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// kind is the way in which a program treats its arguments.
type kind int

const (
	stranger kind = iota // it is not known: an argument may be a command or a file, and the input too
	texts                // none is a file or a command
	setting              // the same; it changes the shell
	reading              // files, which are read
	writing              // files, which are changed or removed
	copying              // files, the last of which is written
	plain                // a developer's tool: none is a command, and each may be a file
	opaque               // it runs what it gets
)

// program describes the plain form of a program. An argument matching odd means another form. A word behind an option matching value
// is a text, as is one matching value with a =. If script is set, the first operand has to match it, unless an option contains the
// script.
type program struct {
	kind               kind
	odd, value, script *regexp.Regexp
	long               []string // names of options in odd
	deep               string   // * counts folders with all that is in them, r does so with an option for it; . is for the current folder if none is named
}

const (
	messages = `^(-[a-z]*m|-m(.|\n)*|--(message|author|date)(=(.|\n)*)?)$`
	formats  = `^--(author|date|grep|format|pretty|since|until|after|before)(=(.|\n)*)?$`
	gitOdd   = `^(-O|--open-f|--ext-diff|--textconv|--output(=|$)|--tool|--extcmd)`

	// A script of sed that prints, deletes or substitutes, and one of awk that opens nothing.
	sedOne   = `([0-9,$ +~!]|/(\\.|[^/\\\n])*/)*([pdqQ=nNDPGHghx]|s(/(\\.|[^/\\\n])*/(\\.|[^/\\\n])*/|\|(\\.|[^|\\\n])*\|(\\.|[^|\\\n])*\||#(\\.|[^#\\\n])*#(\\.|[^#\\\n])*#|,(\\.|[^,\\\n])*,(\\.|[^,\\\n])*,)[gpIi0-9]*) *`
	sedPlain = `^` + sedOne + `(;` + sedOne + `)*;?$|^[0-9$]*[aic][\\ ][^\n]*$`
	awkPlain = `^[^{|@]*(\{[^|<>@]*)?$`
)

// table lists the programs with a known plain form. A name may include the first argument behind a dash.
var table = []struct {
	kind                            kind
	names, odd, value, script, deep string
}{
	{texts, "echo true false : exit return break continue sleep which type basename dirname pwd seq uname whoami id nproc yes expr tty arch groups users uptime free ps sync clear tput bg fg disown times getconf locale cd pushd popd", ``, ``, ``, ``},
	{texts, "jobs", `^-[^-]*x`, ``, ``, ``},
	{texts, "date", `^(-[^d+]|--[fsr])`, ``, ``, ``},
	{texts, "history", `^-`, ``, ``, ``},
	{setting, "read getopts unset let wait shift kill umask ulimit", ``, ``, ``, ``},
	{setting, "printf test [", `^-[vR]`, ``, ``, ``},
	{setting, "set", `^[^-]`, ``, ``, ``},
	{reading, "cat head tail wc nl tac rev od hexdump strings base64 base32 stat cut fold paste join expand unexpand fmt pr column cmp comm ls dir du df readlink realpath tsort tr find", ``, ``, ``, ``},
	{reading, "cksum md5sum sha1sum sha256sum sha512sum b2sum", `^-[a-z]*c|^--check`, ``, ``, ``},
	{reading, "diff", ``, ``, ``, `r`},
	{reading, "grep egrep fgrep", ``, `^-[a-zA-Z]*[ABCm]$`, `(?s)`, `r.`},
	{reading, "rg ag", `^--(pre|host|pager)`, `^-[a-zA-Z]*[ABCmtTg]$|^--glob$`, `(?s)`, `*.`},
	{reading, "jq", `\b(import|include)\s*["#]|^(-[a-zA-Z]*L|--lib)`, ``, `(?s)`, ``},
	{reading, "sed", `^-[nErsuz]*([^nErsuzei-]|e.)|^--(f|l|de|b|w|expression=)`, ``, sedPlain, ``},
	{reading, "awk gawk mawk", `^-[^Fv]|system|getline|ARG`, `^-[Fv]$`, awkPlain, ``},
	{reading, "sort shuf tree less more iconv", `^(-[^-]*[oT]|--o|--comp|--temp|\+)`, ``, ``, ``},
	{reading, "file", `^(-[^-]*[Cf]|--comp|--files)`, ``, ``, ``},
	{reading, "tar-tf tar-tzf tar-tvf tar--tf tar--tzf tar--tvf unzip--l unzip--t", `^(-?[^-]*[IF]|--(use|to-c|checkpoint-a|info|new|rsh|rmt))`, ``, ``, ``},
	{writing, "rmdir unlink shred touch truncate mkdir tee mkfifo sponge dd fallocate", ``, ``, ``, ``},
	{writing, "chmod chown chgrp", ``, ``, ``, `r`},
	{writing, "rm", ``, ``, ``, `*`},
	{copying, "cp install", `^(-[a-zA-Z]*[tls]|--[tls]|--pa)`, ``, ``, `r`},
	{copying, "mv ln link", `^(-[a-zA-Z]*t|--t)`, ``, ``, `*`},
	{copying, "rsync scp", `^(-[^-]*[eFJoSR]|--(rs|rem|rel|del|files|[a-z]*-from))`, ``, ``, `r`},
	{plain, "go golangci-lint staticcheck", `^--?(exec|toolexec|vettool)`, ``, ``, ``},
	{plain, "npm pnpm yarn bun", `^(exec|x|dlx|node|create|explore|pkg|config|set|-[cep]|--call|--eval|--print|--script-shell|--node-options)`, ``, ``, ``},
	{plain, "make gmake ninja", `^(-[^-]*[Ef]|--eval|--file|--makefile)|^[^-].*=`, ``, ``, ``},
	{plain, "cargo rustc mvn gradle dotnet gcc g++ clang cc cmake ctest", `^(exec|-[EPS]|--config|--manifest-path|-B|-wrapper|-D.* )`, ``, ``, ``},
	{plain, "gofmt goimports rustfmt pytest mypy pyright ruff black flake8 isort pip pip3 tsc jest vitest mocha eslint prettier webpack vite rubocop rspec phpunit terraform uniq xxd", ``, ``, ``, ``},
	{plain, "docker podman kubectl helm gh docker-compose uv poetry pipenv", `^(run|exec|tool|alias|extension|--post-r|--editor)`, ``, ``, ``},
	{plain, "curl", `^(-[^-]*K|--config)`, ``, ``, ``},
	{plain, "wget", `^(-[^-]*[ei]|--exec|--use-askpass|--config)`, ``, ``, ``},
	{stranger, "just", `^(-[^-]*[fdc]|--)|=`, ``, ``, `*`},
	{stranger, "split zip", `^--filter|^-TT`, ``, ``, `*`},
	{stranger, "tar-cf tar-czf tar-cvf tar-czvf tar--cf tar--czf tar--czvf", `^(-?[^-]*[IF]|--(use|to-c|checkpoint-a|info|new|rsh|rmt))`, ``, ``, `*`},
	{stranger, "tar bsdtar patch cpio 7z unzip", `^(-?[^-]*[IF]|--(use|to-c|checkpoint-a|info|new|rsh|rmt))`, ``, ``, `*!`},
	{opaque, "shopt mapfile readarray export declare typeset local readonly alias enable bind complete compgen hash fc vi vim nvim view ex ed emacs nano man info watch parallel at batch crontab expect screen tmux script gdb lldb su ssh run-parts start-stop-daemon", ``, ``, ``, ``},
	{reading, git("status log diff show blame ls-files ls-tree rev-parse describe shortlog cat-file rev-list merge-base diff-tree name-rev for-each-ref"), gitOdd, formats, ``, `i`},
	{reading, git("grep"), gitOdd, formats, `(?s)`, `*.i`},
	{plain, git("add branch fetch pull push switch remote init ls-remote bundle fsck gc worktree lfs archive format-patch reflog show-ref count-objects cherry-pick revert config--l config---list config---get config-user.name config-user.email"), gitOdd + `|^-[xi]$|^--(upload-p|receive-p|exec|template|interactive)|ext::`, ``, ``, `i`},
	{plain, git("clone"), `^-[cu]|^--(upload-p|config|template)|ext::`, ``, ``, ``},
	{plain, git("rebase submodule"), `^-[xi]|^--(exec|interactive)|^foreach$`, ``, ``, ``},
	{plain, git("commit tag merge notes"), gitOdd, messages, ``, ``},
	{plain, git("stash"), ``, messages, ``, `*i`},
	{writing, git("rm mv restore"), ``, ``, ``, `*i`},
	{writing, git("clean checkout-index"), `^-i|^--interactive`, ``, ``, `*.i`},
	{plain, git("checkout reset read-tree update-index sparse-checkout"), ``, ``, ``, `*i`},
	{plain, git("apply am"), ``, ``, ``, `*i`},
}

// git returns the names of git's own commands.
func git(commands string) string { return "git-" + strings.ReplaceAll(commands, " ", " git-") }

// programs returns the programs of the table by name.
var programs = sync.OnceValue(func() map[string]program {
	all := map[string]program{}
	for _, row := range table {
		p := program{kind: row.kind, deep: row.deep}
		for _, m := range longNames.FindAllStringSubmatch(row.odd, -1) {
			p.long = append(p.long, strings.Split(cmp.Or(m[1], m[2]), "|")...)
		}
		for re, text := range map[**regexp.Regexp]string{&p.odd: row.odd, &p.value: row.value, &p.script: row.script} {
			if text != "" {
				*re = regexp.MustCompile(text)
			}
		}
		for name := range strings.FieldsSeq(row.names) {
			all[name] = p
		}
	}
	return all
})

// longNames matches the names of long options in an expression of the table.
var longNames = regexp.MustCompile(`--\??(?:\(([^()]*)\)|([a-z-]+))`)

// unusual reports whether an argument matches odd, or abbreviates a long option in it.
func (p program) unusual(w string) bool {
	short, is := strings.CutPrefix(w, "--")
	short, _, _ = strings.Cut(short, "=")
	return p.odd.MatchString(w) || is && short != "" && slices.ContainsFunc(p.long, func(name string) bool {
		name = strings.TrimSuffix(name, "=")
		return name != short && strings.HasPrefix(name, short)
	})
}

// text reports whether an argument is a text: the value of an option.
func (p program) text(args []string, i int) bool {
	is := func(i int, whole bool) bool {
		return i >= 0 && p.value != nil && p.value.MatchString(args[i]) && whole == strings.Contains(args[i], "=")
	}
	return is(i, true) || is(i-1, false)
}

var (
	// code matches characters of a program's own language: then it may run anything.
	code = regexp.MustCompile("[`$;|&<>(){}!\\\\\"'\n]")
	// running matches programs that run others, or have a language in their arguments.
	running = regexp.MustCompile(`^(git|find|sed|[gm]?awk|(ba|da|a)?sh|env|timeout|nice|nohup|time|xargs)$`)
	// built matches the files by which a project's tools run commands.
	built = regexp.MustCompile(`(?i)(^|/)(gnu)?(makefile|package\.json|justfile)$`)
	// recursive matches options that include everything in folders.
	recursive = regexp.MustCompile(`^(-[a-zA-Z]*[rRa][a-zA-Z]*|--(rec|ar|deref|di).*|recurse)$`)
)

// program reads the arguments of a command by its name.
func (r *reader) program(c *call, base string, args []string) {
	p := programs()[base]
	if len(args) > 0 {
		if special, ok := programs()[base+"-"+args[0]]; ok {
			p = special
		}
	}
	if c.kind = p.kind; r.form(c, base, args) {
		return
	}
	i := 0
	for i < len(args) && (p.odd == nil || p.text(args, i) || !mayBeOption(args[i]) && !p.unusual(args[i])) {
		i++
	}
	if i < len(args) || p.kind == setting && p.odd == nil {
		switch {
		case p.kind == setting:
			if c.doubt = base + " may change what other commands do"; slices.ContainsFunc(args, risky.MatchString) {
				r.l.open(c.doubt)
			}
		case strings.HasPrefix(base, "git-"):
			r.l.open("an option of " + base + " may make it run something else")
		default:
			if s := args[i]; option(s) || strings.Contains(s, "=") {
				c.doubt = cmp.Or(c.doubt, base+" "+shown(s)+" may run or write something else")
			}
			p = program{}
		}
	}
	switch p.kind {
	case opaque:
		r.l.open("it is not known what " + base + " runs")
	case stranger:
		r.strange(c, args)
	case copying: // a program may run by the copy's name
		for _, w := range args {
			c.maybe = append(c.maybe, join([]string{named(w), star}, true))
		}
	case texts, setting:
		return
	}
	if (p.kind == plain || p.kind == stranger) && slices.ContainsFunc(r.written, func(t string) bool { return built.MatchString(t) }) {
		r.l.open(base + " may run what the line itself writes")
	}
	if r.in != "" && (strings.Contains(p.deep, "i") || slices.ContainsFunc(args, func(w string) bool { return strings.HasPrefix(w, "--files0") })) {
		r.l.open(base + " opens what its input names")
	}
	r.files(c, p, base, args)
}

// strange reads the arguments of an unknown program: each may begin a command, or be a command line.
func (r *reader) strange(c *call, args []string) {
	name, words := c.String(), []string{}
	if r.in != "" {
		r.l.open("it is not known what this does with its input: " + name)
	}
	for _, w := range args {
		if words = append(words, strings.Fields(w)...); known(w) && code.MatchString(w) || len(words) > maxWords {
			r.l.open("it is not known what this runs: " + name)
			return
		}
	}
	for i, w := range words {
		for _, p := range parts(w) {
			base := named(p)
			if at := strings.IndexByte(base, '@'); at > 0 { // the version of a package
				base = base[:at]
			}
			if c.maybe = append(c.maybe, join(append([]string{base}, words[i+1:]...), true)); running.MatchString(base) {
				r.l.open("it is not known what " + base + " runs in this: " + name)
			}
		}
	}
}

var (
	scriptOption = regexp.MustCompile(`^(-[a-zA-Z]*e|--expression|--regexp)$`)
	inScript     = regexp.MustCompile(`^(-[a-zA-Z]*[ef]|--(file|exp|reg))`)
	unfiltered   = regexp.MustCompile(`^(-[a-zA-Z]*[uLg.]|--i?glob|--hidden|--no-ignore|--follow)`)
	launched     = regexp.MustCompile(`^(npx|bunx|((uv|poetry|pipenv) run)|(bundle|pnpm) exec) (eslint|prettier|tsc|jest|vitest|mocha|webpack|vite|pytest|mypy|pyright|ruff|black|flake8|isort|rubocop|rspec)( |$)`)
	following    = regexp.MustCompile(`^(-[a-zA-Z]*[RL]|--(follow|deref|copy-l))`)
	inPlace      = regexp.MustCompile(`^(-[nErsuz]*i|--i)`)
	included     = regexp.MustCompile(`^--include=(\*[A-Za-z0-9_.-]+)$`)
)

// files records the files in the arguments of a program.
func (r *reader) files(c *call, p program, base string, args []string) {
	has := func(re *regexp.Regexp) bool {
		return slices.ContainsFunc(args, func(w string) bool { return mayBeOption(w) || re.MatchString(w) })
	}
	t := touch{by: c.String(), read: true, write: p.kind != reading || base == "sed" && has(inPlace), sure: p.kind == reading || p.kind == writing || p.kind == copying}
	t.deep = p.kind == stranger && !launched.MatchString(c.String()) || strings.Contains(p.deep, "*") || strings.Contains(p.deep, "r") && has(recursive)
	t.follow, t.visible = base == "diff" || p.kind != writing && has(following), (base == "rg" || base == "ag") && !has(unfiltered)
	if i := slices.IndexFunc(args, func(w string) bool { return included.MatchString(shown(w)) }); i >= 0 && !slices.ContainsFunc(args[i+1:], func(w string) bool { return strings.HasPrefix(w, "--include") }) {
		t.only = included.FindStringSubmatch(shown(args[i]))[1]
	}
	operand := func(w string) bool { return !option(w) || mayBeOption(w) }
	last := len(args) - 1
	for last >= 0 && !operand(args[last]) {
		last--
	}
	operands, script := 0, p.script != nil && !has(inScript)
	for i, w := range args {
		t, before := t, ""
		if i > 0 {
			before = args[i-1]
		}
		given := p.script != nil && operands == 0 && scriptOption.MatchString(before) && (i < 2 || !strings.HasPrefix(args[i-2], "--"))
		value := p.text(args, i)
		if operand(w) && !value && !given {
			operands++
		}
		switch {
		case given, script && operands == 1 && operand(w) && !value:
			if !p.script.MatchString(w) || p.script.String() != `(?s)` && !known(w) {
				r.l.open("the script is no plain form: " + shown(w))
			}
			if known(w) {
				continue
			}
		case value && (strings.HasPrefix(base, "git") || p.script == nil):
			continue
		case included.MatchString(shown(w)):
			continue
		}
		if p.kind == copying && t.sure && base != "mv" && base != "ln" && base != "link" {
			t.write = i == last
		}
		t.sure = t.sure && !(p.script != nil && operands < 2)
		if r.file(w, t); t.write && (p.kind == copying || slices.Contains([]string{"tee", "dd", "curl", "wget", "sponge", "sed"}, base)) {
			r.write(w)
		}
		if p.kind == copying && i == last { // in a folder the names of the others are written
			for _, source := range args[:last] {
				name := named(source)
				t.deep = t.deep || name == "." || name == ".."
				r.file(w+"/"+name, t)
			}
		}
	}
	if named := operands > 1 || p.script == nil && operands > 0; strings.Contains(p.deep, "!") || strings.Contains(p.deep, ".") && !named && t.deep && (r.in == "" || base != "rg" && base != "ag") { // grep -r reads no input
		t.read = t.read && !strings.Contains(p.deep, "!")
		t.sure = false
		r.file(".", t)
	}
}

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
