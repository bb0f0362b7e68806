package permission

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is one word of a command. Quotes are gone from its text; what the shell replaces by
// something that is not known is a star there.
type word struct {
	text   text
	glob   bool // some of its stars are patterns of file names; no other star is in it if !expands
	expand bool // some of its stars are variables, substitutions and the like
	split  bool // it may become several words, or none
	cut    int  // of what comes from this character on nothing is known, counted from 1; 0 = no such place
}

// plain returns the word's text if all of it is known.
func (w word) plain() (string, bool) {
	if w.glob || w.expand {
		return "", false
	}
	return w.text.String(), true
}

// is reports whether the word is certainly one of some texts.
func (w word) is(texts ...string) bool {
	s, ok := w.plain()
	return ok && slices.Contains(texts, s)
}

// mayBeOption reports whether the word may begin with a dash without showing it.
func (w word) mayBeOption() bool { return len(w.text) > 0 && w.text[0] == star }

func (w *word) hole() { w.text, w.expand = append(w.text, star), true }

// wordOf reads a word as the shell does.
func wordOf(n *syntax.Word) word {
	var w word
	for _, part := range n.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			w.bare(part.Value)
		case *syntax.SglQuoted:
			if part.Dollar {
				w.hole()
				continue
			}
			w.text = append(w.text, literal(part.Value)...)
		case *syntax.DblQuoted:
			w.quoted(part)
		default:
			w.hole()
			w.split = true
		}
	}
	if w.cut > 0 {
		w.text = append(w.text[:w.cut-1], star)
	}
	return w
}

// rest marks that nothing is known from here on.
func (w *word) rest() {
	w.split = true
	if w.cut == 0 {
		w.cut = len(w.text) + 1
	}
}

// quoted adds what is in double quotes.
func (w *word) quoted(q *syntax.DblQuoted) {
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || q.Dollar {
			w.hole()
			p, variable := part.(*syntax.ParamExp)
			w.split = w.split || variable && (p.Param == nil || p.Param.Value == "@" || p.Index != nil || p.Excl)
			continue
		}
		for i := 0; i < len(lit.Value); i++ {
			c := lit.Value[i]
			if c == '\\' && i+1 < len(lit.Value) && strings.IndexByte("$`\"\\\n", lit.Value[i+1]) >= 0 {
				i++
				if c = lit.Value[i]; c == '\n' {
					continue
				}
			}
			w.text = append(w.text, rune(c))
		}
	}
}

// bare adds what is in no quotes.
func (w *word) bare(s string) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			switch i++; {
			case i == len(s): // the end of the line
				w.text = append(w.text, '\\')
			case s[i] != '\n':
				w.text = append(w.text, rune(s[i]))
			}
		case '*', '?':
			w.text, w.glob, w.split = append(w.text, star), true, true
		case '[':
			if s == "[" {
				w.text = append(w.text, '[')
				continue
			}
			w.glob = true
			w.rest()
		case '{':
			if strings.HasPrefix(s[i:], "{}") && !strings.Contains(s[i:], ",") { // as find and xargs have it
				w.text = append(w.text, '{')
				continue
			}
			w.expand = true
			w.rest()
		case '~':
			if len(w.text) == 0 && i+1 < len(s) && s[i+1] != '/' { // another user's home
				w.hole()
				continue
			}
			w.text = append(w.text, tilde)
		default:
			w.text = append(w.text, rune(c))
		}
	}
}

// join is the words as one text. A word that may become none takes the gap before it along if
// loose is set: then the text may be more than the words can become, never less.
func join(words []word, loose bool) text {
	var t text
	for i, w := range words {
		if i > 0 && !(loose && (w.split || words[i-1].split)) {
			t = append(t, sep)
		}
		t = append(t, w.text...)
	}
	return t
}

// words are known words.
func known(texts ...string) (words []word) {
	for _, s := range texts {
		words = append(words, word{text: literal(s)})
	}
	return words
}
