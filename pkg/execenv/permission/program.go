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
