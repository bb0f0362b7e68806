package permission

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// line is the commands and files of a command line, as far as the line shows them.
type line struct {
	calls   []call
	touches []touch
	doubt   string // why no rule can allow it; "" if one can
	opens   string // why it may run and open anything, so that none can either; "" if it may not
}

// call is a simple command.
type call struct {
	texts  []string // its words, and other readings of them, which are as certain
	maybe  []string // commands that it may run
	doubt  string   // why only a rule without a star can allow it; "" if others can
	kind   kind     // of its program
	inside *line    // the command of a wrapper or a shell; nil for other commands
}

func (c call) String() string { return shown(c.texts[0]) }

// touch is a file that the line opens, changes or removes.
type touch struct {
	path        string // absolute
	said        string // how the line names it
	by          string // the command, or the redirection
	read, write bool
	sure        bool // it is known to do so
	redirect    bool
	deep        bool   // with all that is in it
	only        string // a glob of the names of what is in it; "" for all
	visible     bool   // of what is in it only names without a dot at the front
	follow      bool   // and with all that is in folders to which links in it lead, which may be any
}

const (
	maxCalls = 500
	maxLine  = 64 << 10 // bytes
	maxDeep  = 6        // command lines in command lines
)

// reader reads a command line in the order in which bash runs it.
type reader struct {
	home string
	l    *line

	cwd      []string // where the command may be; with a star it may be anywhere
	vars     map[string]string
	assigned map[string]int // how often the line sets a variable
	frozen   bool           // no variable is known
	maybe    int            // in how many branches, which may run or not
	in       string         // the input of a command: "" for none, and for a file; with a star it is a text for each line
	written  []string       // files with new contents
	follow   bool           // find follows links
	deep     int
	calls    *int
}

// read reads a command line that starts in dir.
func read(src, dir, home string) *line {
	r := &reader{home: home, l: new(line), cwd: []string{dir}, vars: map[string]string{}, assigned: map[string]int{}, calls: new(int)}
	r.source(src)
	return r.l
}

// odd matches characters that a shell and the parser may read differently, or that hide others.
var odd = regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f\x{80}-\x{a0}\x{ad}\x{1680}\x{180e}\x{2000}-\x{200f}\x{2028}-\x{202f}\x{205f}-\x{206f}\x{3000}\x{feff}\x{fffd}]`)

var (
	// hides matches a substitution in quotes, which is only text. computes matches constructs that evaluate text: arithmetic, tests,
	// names of variables.
	hides    = regexp.MustCompile("'[^']*(\\$\\(|`|\\$\\{)|\\\\[$`]|\\$'")
	computes = regexp.MustCompile(`\(\(|\[\[|\$\[|\$\{[^}]*[\[!:#%/=?+@-]|\b(let|unset|read|wait|declare|typeset|local|export|readonly|mapfile|readarray|set|getopts)\b|\b(test|printf)\s+-v|\[\s+-v|(^|[\s;&|(])\w+\+?=`)
)

// source reads a command line, and the part of it before a fault: bash runs that.
func (r *reader) source(src string) {
	l := r.l
	if r.deep++; len(src) > maxLine || r.deep > maxDeep {
		l.open("it is longer than 64 KiB, or has too many command lines in command lines")
		return
	}
	defer func() {
		r.deep--
		if fault := recover(); fault != nil { // of the parser: a line is not worth the process
			l.open(fmt.Sprintf("it cannot be read: %v", fault))
		}
	}()
	if m := odd.FindString(src); m != "" {
		l.open(fmt.Sprintf("it holds %+q, which may be read in several ways", m))
	}
	if strings.HasSuffix(src, `\`) {
		l.doubt = cmp.Or(l.doubt, `a \ ends it`)
	}
	if hides.MatchString(src) && computes.MatchString(src) {
		l.open("quotes hold a substitution, which a variable may bring to run")
	}
	var all []*syntax.Stmt
	for stmt, err := range syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).StmtsSeq(strings.NewReader(src)) {
		if err != nil { // the last; a break here makes some versions of the parser panic
			l.open("it is no correct bash: " + err.Error())
			continue
		}
		all = append(all, stmt)
		syntax.Walk(stmt, r.note)
	}
	r.stmts(all)
}

// open records that the line may run and open anything.
func (l *line) open(why string) { l.opens = cmp.Or(l.opens, why) }

// note records the effect of a node of the syntax tree on variables, wherever it is.
func (r *reader) note(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Assign:
		if n.Name != nil {
			r.assigned[n.Name.Value]++
		}
	case *syntax.ParamExp:
		r.frozen = r.frozen || n.Exp != nil && strings.HasSuffix(n.Exp.Op.String(), "=")
	case *syntax.FuncDecl:
		if _, is := programs()[n.Name.Value]; is {
			r.l.open("a function has the name of a program")
		}
		r.frozen = true
	case *syntax.CallExpr:
		r.frozen = r.frozen || len(n.Args) > 0 && slices.Contains(setters, named(r.word(n.Args[0]))) || slices.ContainsFunc(n.Args, func(w *syntax.Word) bool { return w.Lit() == "-v" })
	case *syntax.TestDecl:
		r.l.open("it is no correct bash")
	}
	return true
}

// setters are builtins that may set variables by their names.
var setters = strings.Fields("read mapfile readarray getopts unset let eval source . builtin command shift wait trap")

// stmts reads statements that run one after another, whether they succeed or not.
func (r *reader) stmts(all []*syntax.Stmt) {
	for _, s := range all {
		before := r.cwd
		r.stmt(s)
		r.cwd = union(before, r.cwd)
	}
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// lose records that the command may be in any folder.
func (r *reader) lose() { r.cwd = union(r.cwd, []string{star}) }

func (r *reader) stmt(s *syntax.Stmt) {
	if *r.calls > maxCalls {
		return
	}
	if s.Background || s.Coprocess || s.Disown {
		r.apart(func() { r.stmt(&syntax.Stmt{Cmd: s.Cmd, Redirs: s.Redirs}) })
		return
	}
	in := r.in
	for _, redirect := range s.Redirs {
		r.redirect(redirect)
	}
	if c, ok := s.Cmd.(*syntax.CallExpr); !ok || len(c.Args) != 1 || r.word(c.Args[0]) != "exec" { // whose redirections stay
		defer func() { r.in = in }()
	}
	switch c := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		r.simple(c)
	case *syntax.BinaryCmd:
		r.binary(c)
	case *syntax.Block:
		r.stmts(c.Stmts)
	case *syntax.Subshell:
		r.apart(func() { r.stmts(c.Stmts) })
	case *syntax.CoprocClause:
		r.apart(func() { r.in = star; r.stmt(c.Stmt) })
	case *syntax.ForClause:
		r.again(func() { r.loop(c) })
	case *syntax.WhileClause, *syntax.FuncDecl:
		r.again(func() { r.inner(c) })
	case *syntax.DeclClause:
		r.l.doubt = cmp.Or(r.l.doubt, "it declares variables")
		for _, a := range c.Args {
			r.inner(a)
			r.assign(a)
		}
	default: // branches, arithmetic and tests
		r.inner(c)
	}
}

// again reads statements that may run more than once: if they change the folder, the next run may start in any.
func (r *reader) again(read func()) {
	before := r.cwd
	if read(); !slices.Equal(before, r.cwd) {
		r.lose()
		read()
	}
}

func (r *reader) binary(c *syntax.BinaryCmd) {
	if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
		r.apart(func() { r.stmt(c.X) })
		in := r.puts([]*syntax.Stmt{c.X})
		r.apart(func() { r.in = in; r.stmt(c.Y) })
		return
	}
	if c.Op == syntax.OrStmt {
		r.branch(c.X)
	} else {
		r.stmt(c.X)
	}
	r.branch(c.Y)
}

// branch reads statements that may run or not.
func (r *reader) branch(all ...*syntax.Stmt) {
	r.maybe++
	r.stmts(all)
	r.maybe--
}

// apart reads the part of a line that runs in another shell.
func (r *reader) apart(run func()) {
	was := *r
	r.vars = maps.Clone(r.vars)
	run()
	was.written = r.written
	*r = was
}

func (r *reader) loop(c *syntax.ForClause) {
	r.inner(c.Loop)
	iter, words := c.Loop.(*syntax.WordIter)
	if !words {
		r.branch(c.Do...)
		return
	}
	items := r.words(iter.Items...)
	if c.Select || !iter.InPos.IsValid() || len(items) > maxWords {
		items = []string{star}
	}
	for _, r.vars[iter.Name.Value] = range items {
		r.environment(iter.Name.Value, star)
		r.branch(c.Do...)
	}
	delete(r.vars, iter.Name.Value)
}

// inner reads the statements in a node, and its substitutions.
func (r *reader) inner(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			r.branch(n)
			return false
		case *syntax.CmdSubst:
			r.apart(func() { r.stmts(n.Stmts) })
			return false
		case *syntax.ProcSubst:
			r.apart(func() { r.in = star; r.stmts(n.Stmts) })
			return false
		}
		return true
	})
}

// within reads into another line.
func (r *reader) within(run func()) *line {
	outer, inner := r.l, new(line)
	r.l = inner
	run()
	r.l = outer
	return inner
}

// simple reads a simple command of the syntax tree.
func (r *reader) simple(n *syntax.CallExpr) {
	r.inner(n)
	words := r.words(n.Args...)
	for _, a := range n.Assigns {
		if r.assign(a); len(n.Args) > 0 {
			delete(r.vars, a.Name.Value)
			r.l.doubt = cmp.Or(r.l.doubt, "it sets "+a.Name.Value+" for a command")
		}
	}
	if len(words) > 0 { // else all of it were empty variables
		r.l.calls = append(r.l.calls, r.call(words))
	}
}

// call reads the words of a command.
func (r *reader) call(words []string) call {
	c := call{texts: []string{join(words, false)}, maybe: []string{join(words, true)}}
	if *r.calls++; *r.calls > maxCalls {
		r.l.open(fmt.Sprintf("it has more than %d commands", maxCalls))
		return c
	}
	name := words[0]
	if !known(name) || strings.HasPrefix(name, tilde) || strings.HasPrefix(name, "-") || name == "" {
		r.l.open("the name of a command is not written out: " + shown(name))
		r.files(&c, program{}, "", words[1:])
		return c
	}
	base := named(name)
	if base != name {
		c.texts = append(c.texts, join(append([]string{base}, words[1:]...), false))
		r.runs(&c, name)
	}
	if own, ok := strings.CutPrefix(base, "git-"); ok { // git's own programs
		c.texts = append(c.texts, join(append([]string{"git", own}, words[1:]...), false))
	}
	r.program(&c, base, words[1:])
	return c
}

// redirect reads a redirection.
func (r *reader) redirect(n *syntax.Redirect) {
	r.inner(n)
	target, op := star, n.Op.String()
	if words := r.words(n.Word); len(words) == 1 {
		target = words[0]
	}
	here, read, write, in := strings.HasPrefix(op, "<<"), strings.HasPrefix(op, "<"), strings.Contains(op, ">"), ""
	switch {
	case here:
		in = r.spoken(n, target)
	case !known(target), notFiles.MatchString(target), n.Op == syntax.DplIn, r.wrote(target):
		in = star
	}
	if read && (n.N == nil || n.N.Value == "0") {
		r.in = in
	}
	switch {
	case here, (n.Op == syntax.DplIn || n.Op == syntax.DplOut) && descriptor.MatchString(target), devices.MatchString(target):
		return
	case !known(target), strings.HasPrefix(target, "/dev/"), n.N != nil && strings.HasPrefix(n.N.Value, "{"):
		r.l.doubt = cmp.Or(r.l.doubt, "a redirection opens a file that is not in the line, or a connection, or sets a variable")
	}
	if r.file(target, touch{by: "a redirection", read: read, write: write, sure: true, redirect: true}); write {
		r.write(target)
	}
}

var (
	devices    = regexp.MustCompile(`^/dev/(null|stdin|stdout|stderr|tty)$`)
	delimiter  = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	descriptor = regexp.MustCompile(`^[0-9]*-?$`)
	notFiles   = regexp.MustCompile(`^(-|/dev/(stdin|fd/.*)|/proc/.*)$`)
)

// spoken returns the text of a here-document or a here-string.
func (r *reader) spoken(n *syntax.Redirect, word string) string {
	switch {
	case n.Op == syntax.WordHdoc && known(word):
		return word + "\n"
	case n.Op == syntax.WordHdoc:
		return star
	case !delimiter.MatchString(word):
		r.l.open("the end of a here-document may be read in several ways")
	case n.Hdoc != nil && n.Hdoc.Lit() != "" && !(strings.Contains(n.Hdoc.Lit(), `\`) && n.Word.Lit() != ""):
		return n.Hdoc.Lit()
	}
	return star
}
