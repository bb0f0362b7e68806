package permission

import (
	"regexp"
	"slices"
	"strings"
)

// dangers are options by which a command that is harmless otherwise runs something else or
// writes files. Of long ones a part at the front is enough.
type dangers struct {
	short string
	long  []string
	exact []string // words as they are, such as "-exec"
}

var executing = map[string]dangers{
	"rg":     {short: "z", long: []string{"--pre", "--hostname-bin", "--search-zip"}},
	"sort":   {short: "o", long: []string{"--compress-program", "--output"}},
	"tar":    {short: "IF", long: []string{"--use-compress-program", "--to-command", "--checkpoint-action", "--info-script", "--new-volume-script", "--rsh-command", "--rmt-command"}},
	"sdiff":  {long: []string{"--diff-program"}},
	"diff3":  {long: []string{"--diff-program"}},
	"split":  {long: []string{"--filter"}},
	"rsync":  {short: "e", long: []string{"--rsh", "--rsync-path"}},
	"ssh":    {short: "oFSJ"},
	"scp":    {short: "oFS"},
	"sftp":   {short: "oFSb"},
	"curl":   {short: "Ko", long: []string{"--config", "--output"}},
	"wget":   {short: "eO", long: []string{"--execute", "--use-askpass", "--output-document", "--config"}},
	"zip":    {short: "T", long: []string{"--unzip-command", "--test"}},
	"fd":     {short: "xX", long: []string{"--exec", "--exec-batch"}},
	"fdfind": {short: "xX", long: []string{"--exec", "--exec-batch"}},
	"fzf":    {long: []string{"--preview", "--bind"}},
	"bat":    {long: []string{"--pager"}},
	"ag":     {long: []string{"--pager"}},
	"date":   {short: "s", long: []string{"--set"}},
	"tree":   {short: "o"},
	"file":   {short: "C", long: []string{"--compile"}},
	"npm":    {long: []string{"--script-shell", "--node-options"}},
	"cargo":  {long: []string{"--config", "--manifest-path"}},
	"make":   {short: "fE", long: []string{"--eval", "--file", "--makefile", "--include-dir"}},
	"gmake":  {short: "fE", long: []string{"--eval", "--file", "--makefile", "--include-dir"}},
	"just":   {short: "fdc", long: []string{"--command", "--shell", "--justfile", "--working-directory", "--set", "--chooser"}},
	"go":     {exact: []string{"-exec", "-toolexec", "-vettool", "--exec", "--toolexec", "--vettool"}},
	"printf": {short: "v"},
	"test":   {short: "v"},
	"[":      {short: "v"},
	"wait":   {short: "p"},
	"hash":   {short: "p"},
	"jobs":   {short: "x"},
	"git": {short: "O", long: []string{"--open-files-in-pager", "--ext-diff", "--textconv", "--upload-pack", "--receive-pack", "--exec", "--output",
		"--config", "--template", "--tool", "--extcmd", "--paginate"}},
}

// asking are programs that run others when they are asked to.
var asking = []string{"less", "more", "most", "man", "info", "vi", "vim", "nvim", "view", "ex", "ed", "emacs", "nano", "pico", "top", "htop", "lynx", "w3m",
	"links", "mutt", "ftp"}

// options looks for arguments that make a command run something else.
func (r *reader) options(c *call, base string, words []word) {
	if slices.Contains(asking, base) {
		c.doubt(base + " runs other programs when it is asked to")
	}
	switch base {
	case "sed":
		sed(c, words)
	case "awk", "gawk", "mawk", "nawk":
		awk(c, words)
	case "make", "gmake", "just":
		assigned(c, base, words)
	case "go":
		if slices.ContainsFunc(words, func(w word) bool { return w.is("run") }) && slices.ContainsFunc(words, func(w word) bool { return strings.Contains(w.text.String(), "@") }) {
			c.doubt("go run may fetch what it runs")
		}
	case "npm", "pnpm", "yarn", "bun":
		if len(words) > 1 && words[1].is("create", "init", "innit", "explore") {
			c.doubt(base + " " + words[1].text.String() + " may fetch what it runs")
		}
	case "tar":
		if len(words) > 1 && !strings.HasPrefix(words[1].text.String(), "-") && strings.ContainsAny(words[1].text.String(), "IF") {
			c.doubt("tar " + words[1].text.String())
		}
	}
	d, ok := executing[base]
	if !ok {
		return
	}
	for _, w := range words[1:] {
		s := w.text.String()
		switch {
		case w.mayBeOption():
			c.doubt("an argument of " + base + " may become an option")
		case s == "--":
			return
		case d.has(s):
			c.doubt(base + " " + s + " may run something else, or write")
		}
	}
}

// has reports whether an argument is one of the options.
func (d dangers) has(s string) bool {
	name, _, _ := strings.Cut(s, "=")
	switch {
	case slices.Contains(d.exact, name):
		return true
	case strings.HasPrefix(s, "--"):
		return len(name) > 2 && slices.ContainsFunc(d.long, func(long string) bool { return strings.HasPrefix(long, name) || strings.HasPrefix(name, long) })
	}
	return strings.HasPrefix(s, "-") && strings.ContainsAny(s[1:], d.short)
}

// assigned looks for variables, which become parts of the commands in a makefile.
func assigned(c *call, base string, words []word) {
	for _, w := range words[1:] {
		if s := w.text.String(); !strings.HasPrefix(s, "-") && strings.Contains(s, "=") {
			c.doubt(base + " " + s + " changes the commands that it runs")
		}
	}
}

// gitRunning are commands of git that run others, or set what runs later.
var gitRunning = []string{"filter-branch", "difftool", "mergetool", "instaweb", "config", "shell", "send-email", "daemon", "hook", "gui", "citool", "help", "web--browse", "var"}

// gitCommands looks for commands of git that run others; words begin with git's own command.
func gitCommands(c *call, words []word) {
	var all []string
	for _, w := range words {
		s := w.text.String()
		all = append(all, s)
		if strings.Contains(s, "ext::") {
			c.doubt("git runs a command for " + s)
		}
	}
	has := func(beginnings ...string) bool {
		return slices.ContainsFunc(all[1:], func(a string) bool {
			return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(a, b) })
		})
	}
	s := all[0]
	switch {
	case slices.Contains(gitRunning, s), s == "rebase" && has("-x", "--e", "-i", "--i"), s == "bisect" && has("run"),
		s == "submodule" && has("foreach", "add", "update"), s == "clone" && has("-c", "-u"), s == "ls-remote" && has("-u"), s == "worktree" && has("add"):
		c.doubt("git " + s + " may run something else")
	}
}

// sed looks for scripts that run commands or write files.
func sed(c *call, words []word) {
	script := true // the next operand is one
	operand := func(w word) {
		if s, ok := w.plain(); !ok || !harmlessSed(s) {
			c.doubt("the script of sed may run commands or write files")
		}
		script = false
	}
	for i := 1; i < len(words); i++ {
		s := words[i].text.String()
		switch {
		case words[i].mayBeOption() || words[i].expand:
			c.doubt("an argument of sed is not known")
		case sedFlags.MatchString(s):
		case sedScript.MatchString(s) && i+1 < len(words):
			i++
			operand(words[i])
		case strings.HasPrefix(s, "-"):
			c.doubt("sed " + s)
		case script:
			operand(words[i])
		}
	}
}

var (
	sedFlags  = regexp.MustCompile(`^(-[nErsuz]+|-[nErsuz]*i|--in-place|--quiet|--silent|--regexp-extended)$`)
	sedScript = regexp.MustCompile(`^(-[nErsuz]*e|--expression)$`)
	sedPlain  = regexp.MustCompile(`^[ \t]*(([0-9]+|\$|/[^/\\\n]*/)(,[+~]?([0-9]+|\$|/[^/\\\n]*/))?)?[ \t]*!?[ \t]*[pdqQ=nNDPGHghx][ \t]*$`)
	sedAddr   = regexp.MustCompile(`^[ \t]*(([0-9]+|\$|/[^/\\\n]*/)(,[+~]?([0-9]+|\$|/[^/\\\n]*/))?)?[ \t]*s`)
	sedAfter  = regexp.MustCompile(`^[gpiI0-9]*[ \t]*$`)
)

// harmlessSed reports whether a script of sed is known to run nothing and write no other file: one
// substitution, or plain commands.
func harmlessSed(s string) bool {
	if m := sedAddr.FindString(s); m != "" && len(s) > len(m) {
		delimiter, rest := s[len(m)], s[len(m)+1:]
		if strings.IndexByte("/|,#:@!%_", delimiter) < 0 {
			return false
		}
		for range 2 {
			end := 0
			for end < len(rest) && rest[end] != delimiter {
				if rest[end] == '\\' {
					end++
				}
				if end < len(rest) && rest[end] == '\n' {
					return false
				}
				end++
			}
			if end >= len(rest) {
				return false
			}
			rest = rest[end+1:]
		}
		return sedAfter.MatchString(rest)
	}
	for _, part := range strings.Split(s, ";") {
		if !sedPlain.MatchString(part) {
			return false
		}
	}
	return true
}

// awk looks for programs that run commands or write files.
func awk(c *call, words []word) {
	for _, w := range words[1:] {
		s := w.text.String()
		switch {
		case w.mayBeOption() || w.expand:
			c.doubt("an argument of awk is not known")
		case awkFlags.MatchString(s):
		case strings.HasPrefix(s, "-"):
			c.doubt("awk " + s)
		case strings.ContainsAny(s, "|>@") || strings.Contains(s, "system") || strings.Contains(s, "getline"):
			c.doubt("the program of awk may run commands or write files")
		}
	}
}

var awkFlags = regexp.MustCompile(`^(-F.*|-v.*|--)$`)

// setting are builtins that set what other commands depend on.
var setting = []string{"read", "getopts", "unset", "export", "declare", "typeset", "local", "readonly", "let", "set", "pushd", "popd", "umask", "history", "exec"}

// builtin looks at commands of bash itself.
func (r *reader) builtin(c *call, base string, words []word) {
	if !slices.Contains(setting, base) || base == "exec" && len(words) > 1 {
		return
	}
	for _, w := range words[1:] {
		if base != "set" || !w.is("-e", "-u", "-x", "-o", "-eu", "-ex", "-eux", "-euo", "-euxo", "pipefail", "+e", "+x") {
			c.doubt(base + " changes what other commands do")
			return
		}
	}
}
