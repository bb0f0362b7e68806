package permission

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// fault is an error in the text of a rule, with its byte offset.
type fault struct {
	at   int
	what string
}

// command is a rule for commands: it matches the commands that one of its patterns covers. A trailing " *" also matches nothing.
type command struct {
	patterns []string
	covers   *regexp.Regexp
	first    string // the first word; "" if it is not known
}

// exact reports whether c matches one command only.
func (c command) exact() bool { return len(c.patterns) == 1 && known(c.patterns[0]) }

func (c command) meets(line string) bool {
	return slices.ContainsFunc(c.patterns, func(p string) bool { return meets(p, inLine.Replace(line)) })
}

// commandOf parses the parentheses of a command rule. never states why it can match no command, "" if it can.
func commandOf(spec string) (c command, never string, bad *fault) {
	spec, prefix := strings.CutSuffix(spec, ":*")
	words, never, bad := tokens(spec)
	if bad != nil {
		return c, "", bad
	}
	if len(words) == 0 && never == "" {
		return c, "", &fault{0, "there is no command before :*"}
	}
	if prefix {
		words = append(words, star)
	}
	c.patterns = []string{strings.Join(words, sep)}
	if bare, ok := strings.CutSuffix(c.patterns[0], sep+star); ok {
		c.patterns = append(c.patterns, bare)
	}
	c.covers = covering(c.patterns...)
	if len(words) > 0 && known(words[0]) {
		c.first = words[0]
	}
	if name, _, assigns := strings.Cut(c.first, "="); assigns && syntax.ValidName(name) {
		never = "an assignment before a command is no part of what a rule matches"
	}
	return c, never, nil
}

// tokens returns the words of a pattern. Quotes are as in bash: a * in quotes is a character.
func tokens(spec string) (words []string, never string, bad *fault) {
	if i := strings.IndexFunc(spec, func(c rune) bool { return c < ' ' && c != '\t' }); i >= 0 {
		return nil, "", &fault{i, "a rule is one line without control characters"}
	}
	home, end := (&reader{}).shell(), 0
	var err error
	for w, bad := range syntax.NewParser(syntax.KeepComments(true)).WordsSeq(strings.NewReader(spec)) {
		if bad != nil {
			err = bad
			break
		}
		syntax.Walk(w, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Lit:
				n.Value = stars.ReplaceAllString(n.Value, `${1}`+star)
			case *syntax.DblQuoted:
				return false
			case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp:
				never = "what $ becomes is not known before the command runs"
			}
			return never == ""
		})
		if end = int(w.End().Offset()); never == "" {
			word, err := expand.Literal(home, w)
			if words = append(words, word); err != nil {
				never = err.Error()
			}
		}
	}
	var wrong syntax.ParseError
	switch rest := spec; {
	case errors.As(err, &wrong) && strings.Contains(wrong.Text, "quote"):
		at := int(wrong.Pos.Offset())
		return nil, "", &fault{at, "this quote is not closed: write \\" + spec[at:at+1] + " for the character itself"}
	case err != nil:
		if errors.As(err, &wrong) {
			rest = spec[min(int(wrong.Pos.Offset()), len(spec)-1):]
		}
		never = "a command line is taken apart at " + rest[:1] + ": write a rule for each of its commands"
	case never == "" && end < len(strings.TrimSpace(spec)):
		never = "# begins a comment"
	}
	return words, never, nil
}

// stars matches the stars outside quotes.
var stars = regexp.MustCompile(`((?:^|[^\\])(?:\\\\)*)\*`)

// column returns the position of a byte, in characters from 1.
func column(s string, at int) int { return utf8.RuneCountInString(s[:min(at, len(s))]) + 1 }
