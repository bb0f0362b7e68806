package permission

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// fault is what is wrong with the text of a rule, and at which byte.
type fault struct {
	at   int
	what string
}

// command is a rule for commands: it matches what one of its patterns covers. A trailing " *"
// matches nothing as well.
type command struct {
	patterns []text
	first    string // the first word; "" if it is not known
}

// exact reports whether c matches one command only.
func (c command) exact() bool { return len(c.patterns) == 1 && c.patterns[0].certain() }

func (c command) covers(line text) bool {
	return slices.ContainsFunc(c.patterns, func(p text) bool { return p.covers(line) })
}

func (c command) meets(line text) bool {
	return slices.ContainsFunc(c.patterns, func(p text) bool { return p.meets(line) })
}

// commandOf reads what is between the parentheses of a rule for commands. never is why it can
// match no command, "" if it can.
func commandOf(spec string) (c command, never string, bad *fault) {
	spec, prefix := strings.CutSuffix(spec, ":*")
	t, never, bad := tokens(spec)
	if bad != nil {
		return c, "", bad
	}
	if len(t) == 0 {
		return c, "", &fault{0, "there is no command before :*"}
	}
	if prefix {
		t = append(t, sep, star)
	}
	c.patterns = []text{t}
	if bare, ok := cutSuffix(t, sep, star); ok {
		c.patterns = append(c.patterns, bare)
	}
	if head := t[:max(slices.Index(append(slices.Clone(t), sep), sep), 0)]; head.certain() {
		c.first = head.String()
	}
	if name, _, assigns := strings.Cut(c.first, "="); assigns && syntax.ValidName(name) {
		never = "an assignment before a command is no part of what a rule matches"
	}
	return c, never, nil
}

func cutSuffix(t text, suffix ...rune) (text, bool) {
	if n := len(t) - len(suffix); n > 0 && slices.Equal(t[n:], suffix) {
		return t[:n], true
	}
	return t, false
}

// splits are the characters at which a command line is taken apart, so that no command holds
// them.
const splits = "&|;<>()"

// tokens reads the words of a pattern. Quotes are as in bash; a * in quotes is a star.
func tokens(spec string) (t text, never string, bad *fault) {
	blank := false // before the next character
	for i := 0; i < len(spec); i++ {
		c := spec[i]
		if c == ' ' || c == '\t' {
			blank = true
			continue
		}
		if c == '#' && (blank || len(t) == 0) {
			never = "# begins a comment"
		}
		if blank && len(t) > 0 {
			t = append(t, sep)
		}
		blank = false
		switch {
		case c == '\\' && i+1 < len(spec):
			i++
			t = append(t, rune(spec[i]))
		case c == '\'' || c == '"':
			end := closing(spec, i)
			if end < 0 {
				return nil, "", &fault{i, "this quote is not closed: write \\" + string(c) + " for the character itself"}
			}
			t = append(t, inQuotes(spec[i+1:end], c)...)
			i = end
		case c == '*':
			t = append(t, star)
		case c == '~':
			t = append(t, tilde)
		case strings.IndexByte(splits, c) >= 0:
			never = "a command line is taken apart at " + string(c) + ": write a rule for each of its commands"
			t = append(t, rune(c))
		case c == '$' || c == '`':
			never = "what " + string(c) + " becomes is not known before the command runs"
			t = append(t, rune(c))
		case c < ' ':
			return nil, "", &fault{i, "a rule is one line without control characters"}
		default:
			t = append(t, rune(c))
		}
	}
	return t, never, nil
}

// closing is where the quote that begins at start ends; -1 if nowhere.
func closing(s string, start int) int {
	for i := start + 1; i < len(s); i++ {
		switch {
		case s[start] == '"' && s[i] == '\\':
			i++
		case s[i] == s[start]:
			return i
		}
	}
	return -1
}

// inQuotes is the text between two quotes.
func inQuotes(s string, quote byte) (t text) {
	for i := 0; i < len(s); i++ {
		if quote == '"' && s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\", s[i+1]) >= 0 {
			i++
		}
		t = append(t, rune(s[i]))
	}
	return t
}

// column is the place of a byte, in characters from 1.
func column(s string, at int) int { return utf8.RuneCountInString(s[:min(at, len(s))]) + 1 }
