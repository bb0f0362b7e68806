package permission

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// line is what a command line runs and opens, as far as that is known.
type line struct {
	calls  []call
	files  []file   // that redirections open
	doubts []string // why no rule can allow it
	sets   bool     // it sets variables, or computes with them
}

// file is what a redirection opens.
type file struct {
	place
	write bool
}

// call is a simple command.
type call struct {
	text    text   // its words
	also    []text // other readings, which deny and ask count as well
	plain   text   // another reading, which allow counts as well; nil: none
	doubts  []string
	open    bool // it may run any other command
	glob    bool // patterns of file names are in it
	expand  bool // variables or substitutions are in it
	inside  *line
	passes  bool // it is allowed if what is inside is
	unnamed text // of a launcher: what is before the command; nil: it is none
	names   []name
}

// name is a file that a call names.
type name struct {
	place
	reads, writes bool // certainly, if the call opens it
	sure          bool // it does open it
}

const (
	maxCalls = 50
	maxLine  = 64 << 10 // bytes
	maxDeep  = 6        // command lines in command lines
)

// reader reads command lines.
type reader struct {
	home  string
	bases []string // where relative paths may begin
	lost  bool     // they may begin anywhere
	deep  int
	calls *int
}

// read reads a command line that begins in dir.
func read(src, dir, home string) *line {
	return (&reader{home: home, bases: []string{dir}, calls: new(int)}).line(src)
}

// odd are characters that a shell and our parser may read differently, or that hide others.
var odd = regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f\x{80}-\x{a0}\x{ad}\x{1680}\x{180e}\x{2000}-\x{200f}\x{2028}-\x{202f}\x{205f}-\x{206f}\x{3000}\x{feff}\x{fffd}]`)

func (r *reader) line(src string) *line {
	l := new(line)
	if len(src) > maxLine {
		l.anything("it is longer than 64 KiB")
		return l
	}
	if r.deep++; r.deep > maxDeep {
		l.anything("it has too many command lines in command lines")
		return l
	}
	defer func() { r.deep-- }()
	if m := odd.FindString(src); m != "" {
		l.anything(fmt.Sprintf("it holds %+q, which may be read in several ways", m))
	}
	if strings.Contains(src, "\\\n") {
		l.doubt(`a \ ends a line`)
	}
	r.statements(l, src)
	if *r.calls > maxCalls {
		l.anything(fmt.Sprintf("it has more than %d commands", maxCalls))
	}
	return l
}

// statements reads what bash runs one after another: also what comes before a fault.
func (r *reader) statements(l *line, src string) {
	defer func() {
		if fault := recover(); fault != nil { // of the parser: a line is not worth the process
			l.anything(fmt.Sprintf("it cannot be read: %v", fault))
		}
	}()
	hidden := false
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	for stmt, err := range parser.StmtsSeq(strings.NewReader(src)) {
		if err != nil { // the last; a break here makes some versions of the parser panic
			l.anything("it is no correct bash: " + err.Error())
			continue
		}
		syntax.Walk(stmt, func(n syntax.Node) bool {
			r.node(l, n)
			hidden = hidden || hides(n)
			return true
		})
	}
	if hidden && l.sets {
		l.anything("quotes hold a substitution, which a variable may bring to run")
	}
}

func (l *line) doubt(why string) {
	if !slices.Contains(l.doubts, why) {
		l.doubts = append(l.doubts, why)
	}
}

// anything notes that any command may run.
func (l *line) anything(why string) {
	l.doubt(why)
	l.calls = append(l.calls, call{text: text{star}, expand: true, open: true})
}

// hides reports whether n is a text that holds a substitution for which it is too early.
func hides(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.SglQuoted:
		return n.Dollar || strings.Contains(n.Value, "$(") || strings.Contains(n.Value, "`") || strings.Contains(n.Value, "${")
	case *syntax.Lit:
		return strings.Contains(n.Value, `\$`) || strings.Contains(n.Value, "\\`")
	}
	return false
}

// node looks at one node of the syntax tree; those below it follow.
func (r *reader) node(l *line, n syntax.Node) {
	switch n := n.(type) {
	case *syntax.Stmt:
		for _, redirect := range n.Redirs {
			r.redirect(l, redirect)
		}
		if n.Coprocess || n.Disown {
			l.doubt("it starts a coprocess")
		}
	case *syntax.CallExpr:
		r.simple(l, n)
	case *syntax.DeclClause:
		l.sets = true
		l.doubt(n.Variant.Value + " sets variables")
	case *syntax.Assign:
		l.sets = true
		if n.Array != nil || n.Index != nil || n.Name == nil || n.Value == nil || !quiet(n.Name.Value) {
			l.doubt("it sets a variable on which other commands may depend")
		}
	case *syntax.ForClause, *syntax.WhileClause, *syntax.FuncDecl:
		r.lost = r.lost || changesDir(n)
	case *syntax.WordIter:
		if !quiet(n.Name.Value) {
			l.doubt("it sets " + n.Name.Value)
		}
	case *syntax.LetClause, *syntax.ArithmCmd, *syntax.ArithmExp, *syntax.CStyleLoop, *syntax.TestClause:
		l.sets = true
		l.doubt("it computes, and variables may hold commands")
	case *syntax.CoprocClause:
		l.doubt("it starts a coprocess")
	case *syntax.ParamExp:
		l.sets = l.sets || n.Index != nil || n.Slice != nil || n.Exp != nil || n.Excl
		l.doubt("what a variable becomes is not known")
	case *syntax.CmdSubst, *syntax.ProcSubst:
		l.doubt("what a command puts out is not known")
	case *syntax.ExtGlob, *syntax.BraceExp:
		l.doubt("what a pattern becomes is not known")
	case *syntax.SglQuoted:
		if n.Dollar {
			l.doubt("$'...' may be read in several ways")
		}
		quotedNewline(l, n.Value)
	case *syntax.DblQuoted:
		for _, p := range n.Parts {
			if lit, ok := p.(*syntax.Lit); ok {
				quotedNewline(l, lit.Value)
			}
		}
	case *syntax.Comment:
		if strings.ContainsAny(n.Text, "'\"`\\$") {
			l.doubt("a comment holds quotes")
		}
	case *syntax.TestDecl:
		l.anything("it is no correct bash")
	}
}

func quotedNewline(l *line, s string) {
	if strings.Contains(s, "\n") {
		l.doubt("quotes hold a newline")
	}
}

// quiet reports whether a variable has no effect on programs: they are in capitals, but for those
// of proxies.
func quiet(name string) bool {
	return strings.ToLower(name) == name && !strings.Contains(name, "proxy") && !strings.HasPrefix(name, "_")
}

// changesDir reports whether cd or the like is somewhere below n.
func changesDir(n syntax.Node) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
			found = found || !wordOf(c.Args[0]).is() && mayChangeDir(wordOf(c.Args[0]))
		}
		return true
	})
	return found
}

func mayChangeDir(w word) bool {
	s, ok := w.plain()
	return !ok || slices.Contains([]string{"cd", "pushd", "popd", "builtin", "command", "eval", "source", "."}, s)
}

// simple reads a simple command of the syntax tree.
func (r *reader) simple(l *line, n *syntax.CallExpr) {
	if len(n.Args) == 0 {
		return
	}
	if len(n.Assigns) > 0 {
		l.doubt("it sets " + n.Assigns[0].Name.Value + " for a command")
	}
	words := make([]word, len(n.Args))
	for i, arg := range n.Args {
		words[i] = wordOf(arg)
	}
	l.sets = l.sets || words[0].is(setting...) || words[0].is("test", "[", "printf", "wait", "builtin", "command")
	l.calls = append(l.calls, r.call(l, words))
}

// call reads the words of a command. What depends on its input is a doubt of the line.
func (r *reader) call(l *line, words []word) call {
	c := call{text: join(words, false)}
	if *r.calls++; *r.calls > maxCalls {
		return c
	}
	for _, w := range words {
		c.glob = c.glob || w.glob
		c.expand = c.expand || w.expand
	}
	if wide := join(words, true); !slices.Equal(wide, c.text) {
		c.also = append(c.also, wide)
	}
	first, ok := words[0].plain()
	if !ok {
		c.doubt("the command's name is not written out")
		c.names = r.names("", words[1:])
		return c
	}
	if strings.HasPrefix(first, "-") { // bash's own time takes --
		c.anything("a command's name begins with a dash")
	}
	base := path.Base(first)
	if base != first {
		c.also = append(c.also, join(append(known(base), words[1:]...), false))
		words = append(known(base), words[1:]...)
	}
	if strings.HasPrefix(first, "~") || words[0].text[0] == tilde {
		c.doubt("the command's name is not written out")
	}
	c.names = r.names(base, words[1:])
	r.builtin(&c, base, words)
	r.options(&c, base, words)
	r.through(l, &c, base, words)
	return c
}

func (c *call) doubt(why string) { c.doubts = append(c.doubts, why) }

// anything notes that the call may run any other command.
func (c *call) anything(why string) {
	c.doubt(why)
	c.open = true
}

// free are the files that every command may open.
var free = []string{"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"}

// redirect looks at a redirection.
func (r *reader) redirect(l *line, n *syntax.Redirect) {
	if n.N != nil && strings.HasPrefix(n.N.Value, "{") {
		l.doubt("a redirection sets a variable")
	}
	w := wordOf(n.Word)
	target, ok := w.plain()
	write := true
	switch n.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if !delimiter.MatchString(target) {
			l.anything("the end of a here-document may be read in several ways")
		}
		return
	case syntax.WordHdoc:
		return
	case syntax.RdrIn:
		write = false
	case syntax.DplIn, syntax.DplOut:
		if ok && descriptor.MatchString(target) {
			return
		}
	}
	if slices.Contains(free, target) && ok {
		return
	}
	if strings.HasPrefix(target, "/dev/tcp/") || strings.HasPrefix(target, "/dev/udp/") {
		l.doubt("a redirection opens a connection")
	}
	if !ok {
		l.doubt("a redirection opens a file that is not known")
	}
	for _, at := range r.places(w) {
		if n.Op == syntax.RdrInOut {
			l.files = append(l.files, file{at, false})
		}
		l.files = append(l.files, file{at, write})
	}
}

var (
	delimiter  = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	descriptor = regexp.MustCompile(`^[0-9]*-?$`)
)
