package permission

import (
	"regexp"
	"strings"
)

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
