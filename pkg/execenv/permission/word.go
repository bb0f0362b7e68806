package permission

import (
	"cmp"
	"io"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// A word of a command is a string without its quotes, in which marks stand for unknown parts.

// option reports whether a word is an option, or may become one.
func option(w string) bool { return mayBeOption(w) || strings.HasPrefix(w, "-") }

// mayBeOption reports whether a word may begin with a dash without showing it.
func mayBeOption(w string) bool { return w != "" && strings.Contains(wild, w[:1]) }

// named returns the last name of a path.
func named(w string) string {
	if base := strings.TrimRight(w, "/"); base != "" {
		return base[strings.LastIndexByte(base, '/')+1:]
	}
	return w
}

const maxWords = 64 // that braces or a loop may make

// words returns the words that nodes of the syntax tree become.
func (r *reader) words(all ...*syntax.Word) (list []string) {
	for _, n := range all {
		before, plain := len(list), r.plain(n)
		if plain == nil {
			list = append(list, star)
			continue
		}
		for s, err := range expand.FieldsSeq(r.shell(), plain) {
			if err != nil || len(list) == before+maxWords {
				list = append(list[:before], star)
				break
			}
			list = append(list, s)
		}
	}
	return list
}

// word returns a word without splitting, as in an assignment.
func (r *reader) word(n *syntax.Word) string {
	if plain := r.plain(n); plain != nil {
		if s, err := expand.Literal(r.shell(), plain); err == nil {
			return s
		}
	}
	return star
}

// shell returns the known variables, commands and homes.
func (r *reader) shell() *expand.Config {
	known := func(name string) string {
		value, set := r.vars[name]
		switch {
		case name == "IFS":
			return " \t\n"
		case set && !r.frozen && r.assigned[name] < 2 && r.assigned["IFS"] == 0 && !strings.ContainsAny(value, `*?[\`):
			return value
		case name == "HOME" && r.assigned[name] == 0:
			return tilde
		case name == "PWD" && r.assigned[name] == 0 && len(r.cwd) == 1:
			return r.cwd[0]
		}
		return star
	}
	return &expand.Config{
		Env:       expand.FuncEnviron(known),
		CmdSubst:  func(w io.Writer, n *syntax.CmdSubst) error { _, err := io.WriteString(w, r.puts(n.Stmts)); return err },
		ProcSubst: func(*syntax.ProcSubst) (string, error) { return "/dev/fd/63", nil },
	}
}

// plain returns a word with marks for patterns of names; nil if it contains more than plain variables.
func (r *reader) plain(n *syntax.Word) *syntax.Word {
	plain, front := &syntax.Word{}, first
	for _, p := range n.Parts {
		if lit, ok := p.(*syntax.Lit); ok && n.Lit() != "[" {
			if front != "" && len(plain.Parts) > 0 && !strings.HasPrefix(lit.Value, "/") { // in the middle of a name
				front = ""
			}
			p = &syntax.Lit{Value: marked(lit.Value, part, part, front)}
		}
		plain.Parts = append(plain.Parts, p)
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			simple := &syntax.ParamExp{Dollar: n.Dollar, Short: n.Short, Rbrace: n.Rbrace, Param: n.Param}
			if !reflect.DeepEqual(n, simple) || strings.Contains("@*", n.Param.Value) || n.Param.Value == "IFS" && r.assigned["IFS"] > 0 {
				plain = nil
			}
		case *syntax.SglQuoted:
			if n.Dollar && strings.Contains(n.Value, `\`) {
				plain = nil
			}
		case *syntax.ArithmExp, *syntax.ExtGlob:
			plain = nil
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		}
		return true
	})
	return plain
}

// puts returns a text for each line of the output of commands.
func (r *reader) puts(all []*syntax.Stmt) string {
	if len(all) != 1 || len(all[0].Redirs) > 0 {
		return star
	}
	if c, ok := all[0].Cmd.(*syntax.BinaryCmd); ok && c.Op == syntax.Pipe { // a filter
		if y, ok := c.Y.Cmd.(*syntax.CallExpr); ok && len(y.Assigns)+len(c.Y.Redirs) == 0 && filter.MatchString(join(r.words(y.Args...), false)) {
			return r.puts([]*syntax.Stmt{c.X})
		}
	}
	c, simple := all[0].Cmd.(*syntax.CallExpr)
	if !simple || len(c.Assigns) > 0 || len(r.cwd) != 1 || len(c.Args) == 0 {
		return star
	}
	said := r.words(c.Args...)
	switch line := join(said, false); {
	case slices.ContainsFunc(said, func(w string) bool { return !known(w) || strings.Contains(w, "..") && w != "./..." }):
	case line == "pwd":
		return r.cwd[0]
	case strings.HasPrefix(line, "go"+sep+"list") && !strings.Contains(line, sep+"-"):
		return "./..."
	case line == join([]string{"git", "rev-parse", "--show-toplevel"}, false):
		for dir := r.cwd[0]; dir != "/" && known(dir); dir = path.Dir(dir) {
			if _, err := os.Stat(dir + "/.git"); err == nil {
				return dir
			}
		}
	case names.MatchString(line):
		return "./" + below
	case said[0] == "find" && !slices.ContainsFunc(said, printing.MatchString):
		if roots, tests := searched(said[1:]); len(roots) == 1 {
			return roots[0] + "/" + below + ends(tests)
		}
	}
	return star
}

var (
	printing = regexp.MustCompile(`^-(f?printf|exec|ok|f?ls)`)
	// names matches commands that list files of the current folder.
	names  = regexp.MustCompile(`^git` + sep + `(ls-files|diff(` + sep + `--cached)?` + sep + `--name-only)(` + sep + `[^-:` + sep + `][^:]*)?$|^(grep` + sep + `-[inwE]*(rl|lr)[inwE]*|rg` + sep + `-l)` + sep + `[^-/` + sep + `][^` + sep + `]*(` + sep + `[^-/` + sep + `][^` + sep + `]*)*$`)
	filter = regexp.MustCompile(`^(grep(` + sep + `-[viEF]+)?` + sep + `[^-` + sep + `][^` + sep + `]*|(sort|uniq|head|tail)(` + sep + `-[nur0-9]+)*)$`)
)

// beforeRoots matches options of find before its folders.
var beforeRoots = regexp.MustCompile(`^(-[HLPD]|-O.*|--)$`)

// searched returns the folders in which find searches, and its tests.
func searched(args []string) (roots, tests []string) {
	for len(args) > 0 && (!option(args[0]) || beforeRoots.MatchString(args[0])) && args[0] != "(" && args[0] != "!" {
		if !option(args[0]) {
			roots = append(roots, args[0])
		} else if args[0] == "-D" && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	return roots, args
}

// ends returns the common ending of all names that find finds.
func ends(tests []string) string {
	said := sep + strings.Join(tests, sep)
	m := byName.FindStringSubmatch(said)
	if m == nil || alternatives.MatchString(said) {
		return ""
	}
	return m[1]
}

var (
	byName       = regexp.MustCompile(sep + `-name` + sep + `[^` + sep + `]*?([A-Za-z0-9_.-]*)(` + sep + `|$)`)
	alternatives = regexp.MustCompile(sep + `(-or?|,|\(|(!|-not)` + sep + `-name)(` + sep + `|$)`)
)

// assign records the value of a variable.
func (r *reader) assign(a *syntax.Assign) {
	value := ""
	if _, set := r.vars["PATH"]; !set && a.Name != nil && a.Name.Value == "PATH" {
		r.vars["PATH"] = "/usr/bin"
	}
	if a.Value != nil {
		value = r.word(a.Value)
	}
	if a.Append || a.Array != nil || a.Index != nil {
		value = star
	}
	if a.Name == nil { // the options of export and others, or a name that is not written out
		name, v, _ := strings.Cut(value, "=")
		if r.frozen = true; !known(name) || strings.HasPrefix(name, "-") && strings.Contains(name, "n") {
			r.l.open("it sets a variable of which the name is not written out")
		}
		r.environment(name, v)
		return
	}
	if delete(r.vars, a.Name.Value); a.Naked {
		return
	}
	if known(value) && r.maybe == 0 {
		r.vars[a.Name.Value] = value
	}
	r.environment(a.Name.Value, value)
}

var (
	// risky matches variables by which programs run others, or read files. With a plain value they run nothing.
	risky   = regexp.MustCompile(`^(PATH|IFS|ENV|HOME|CDPATH|PS[0-9]|PROMPT_COMMAND|GLOBIGNORE|BASH.*|SHELL.*|LD_.*|GIT_(CONFIG.*|DIR|WORK_TREE|INDEX_FILE|EXEC_PATH|OBJECT_.*|ALTERNATE.*|PROXY.*|EXTERNAL.*|TEMPLATE_DIR|COMMON_DIR)|PYTHONSTARTUP|MAKEFILES|(?i:npm_config_.*)|PERL5(LIB|OPT)|CC|CXX|LD|AR|.*(PAGER|EDITOR|VISUAL|BROWSER|OPT|OPTS|OPTIONS|FLAGS|COMMAND|ARGS|RSH|SSH|ASKPASS|OPEN|WRAPPER|RUNNER|LINKER|RUSTC))$`)
	plainly = regexp.MustCompile(`^(-[\w=./,:+-]*( -[\w=./,:+-]*)*|[0-9]*|true|false|cat|never|always|auto|gcc|g\+\+|clang|clang\+\+)$`)
	// runners matches variables with options by which a program runs another, or code that it reads.
	runners = regexp.MustCompile(`=.*(-(exec|toolexec|vettool|overlay)|linker|wrapper|plugin|require|import|loader|agent|eval|OnError|OnOut|[= ]-B)|^[A-Z]*MAKEFLAGS=.*-[a-zA-Z]*[CfEI]|^TAR_OPTIONS=.*-([a-z]*[IF]|-(to|us|ch|in|ne|rs|rm))|^(RUBY|PERL5)OPT=.*-[a-zA-Z]*[rIMmd]`)
	folders = regexp.MustCompile(`^((/usr|/bin|/sbin|/opt|/nix|/snap|` + tilde + `|/home/[a-z0-9._-]+|/root)(/[A-Za-z0-9._-]+)*/?(:|$))*$`)
)

// environment checks a variable that programs may obey.
func (r *reader) environment(name, value string) {
	if strings.ToLower(name) != name || strings.Contains(name, "proxy") || strings.HasPrefix(name, "_") {
		r.l.doubt = cmp.Or(r.l.doubt, "it sets "+name+", which programs may obey")
	}
	switch {
	case !risky.MatchString(name), name == "IFS", name == "HOME", name == "PATH" && folders.MatchString(value):
	case name == "CDPATH" || name == "GLOBIGNORE" || !known(value) || !plainly.MatchString(value), runners.MatchString(name + "=" + value):
		r.l.open("the variable " + name + " may make a command run something else: " + path.Base(shown(value)))
	}
	if known(value) {
		if strings.ToLower(name) != name && slices.ContainsFunc(parts(value), r.wrote) {
			r.l.open("the variable " + name + " names a file that the line itself writes")
		}
		r.file(value, touch{by: name + "=" + shown(value), read: true, write: true})
	}
}

// The marks in the text of a rule or a word. No line that is read completely contains these bytes: [odd] finds them.
const (
	sep   = "\x01" // between two words
	star  = "\x02" // anything, also nothing
	part  = "\x03" // the same, but for a slash
	first = "\x04" // one character, neither a dot nor a slash: a pattern at the front of a name
	below = "\x05" // the same as star: a name in a folder, at any depth
	tilde = "\x06" // the home of the user that runs the command

	wild = star + part + first + below
)

// known reports whether a text is fully written out.
func known(t string) bool { return !strings.ContainsAny(t, wild) }

// shown returns a text for people.
func shown(t string) string { return forPeople.Replace(t) }

var (
	forPeople = strings.NewReplacer(sep, " ", star, "*", part, "*", first, "", below, "*", tilde, "~")
	loosely   = strings.NewReplacer(sep+star+sep, star, sep+star, star, star+sep, star)
	inLine    = strings.NewReplacer(part, star, first, "", below, star)
)

// join joins words. With loose an unknown word may be empty: it takes the gaps around it along.
func join(words []string, loose bool) string {
	t := strings.Join(words, sep)
	if loose {
		t = loosely.Replace(t)
	}
	return t
}

// covering returns a regular expression for everything that the patterns match: their stars match anything.
func covering(patterns ...string) *regexp.Regexp {
	var all []string
	for _, p := range patterns {
		all = append(all, strings.ReplaceAll(regexp.QuoteMeta(p), star, `.*`))
	}
	return regexp.MustCompile(`(?s)^(` + strings.Join(all, "|") + `)$`)
}

// meets reports whether some text matches both.
func meets(a, b string) bool {
	eats := func(t string, i int, u string, j int) bool { // t[i] takes u[j], and stays
		return i < len(t) && j < len(u) && (t[i] == star[0] || t[i] == below[0] || t[i] == part[0] && u[j] != '/')
	}
	empty := func(t string, i int) bool {
		return i < len(t) && (t[i] == star[0] || t[i] == below[0] || t[i] == part[0])
	}
	one := func(t string, i int, u string, j int) bool { // both take one character
		return i < len(t) && j < len(u) && (t[i] == u[j] || t[i] == first[0] && u[j] != '.' && u[j] != '/')
	}
	next := make([]bool, len(b)+2) // next[j]: a[i+1:] meets b[j:]
	for i := len(a); i >= 0; i-- {
		now := make([]bool, len(b)+2)
		for j := len(b); j >= 0; j-- {
			now[j] = i == len(a) && j == len(b) || empty(a, i) && next[j] || empty(b, j) && now[j+1] ||
				eats(a, i, b, j) && now[j+1] || eats(b, j, a, i) && next[j] || (one(a, i, b, j) || one(b, j, a, i)) && next[j+1]
		}
		next = now
	}
	return next[0]
}
