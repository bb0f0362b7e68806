package permission

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

var (
	control    = regexp.MustCompile(`[\x00-\x08\x0a-\x1f]`)
	errControl = errors.New("a rule is one line without control characters")
)

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
func commandOf(spec string) (c command, never string, err error) {
	spec, prefix := strings.CutSuffix(spec, ":*")
	words, never, err := tokens(spec)
	if err == nil && len(words) == 0 && never == "" {
		err = errors.New("there is no command before :*")
	}
	if err != nil {
		return c, "", err
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
func tokens(spec string) (words []string, never string, err error) {
	if control.MatchString(spec) {
		return nil, "", errControl
	}
	home, end := (&reader{}).shell(), 0
	for w, err := range syntax.NewParser(syntax.KeepComments(true)).WordsSeq(strings.NewReader(spec)) {
		switch {
		case err != nil && strings.Contains(err.Error(), "quote"):
			return nil, "", errors.New(`a quote is not closed: write \ before the character itself`)
		case err != nil:
			return words, "it is taken apart as a command line: write a rule for each of its commands", nil
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
	if never == "" && end < len(strings.TrimSpace(spec)) {
		never = "# begins a comment"
	}
	return words, never, nil
}

// stars matches the stars outside quotes.
var stars = regexp.MustCompile(`((?:^|[^\\])(?:\\\\)*)\*`)
