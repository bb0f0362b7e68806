package permission

import "slices"

// A text is what a rule or a command line is matched by: its bytes, and the marks below. A rule's
// star matches anything. A command's star is a part that is not known.
type text []rune

const (
	sep   rune = -1 - iota // between two words
	star                   // anything, also nothing
	part                   // the same, but for a slash
	tilde                  // a ~ that the shell may replace
)

func literal(s string) text {
	t := make(text, len(s))
	for i := range len(s) {
		t[i] = rune(s[i])
	}
	return t
}

// String is the text for people.
func (t text) String() string {
	b := make([]byte, 0, len(t))
	for _, r := range t {
		switch r {
		case sep:
			b = append(b, ' ')
		case star, part:
			b = append(b, '*')
		case tilde:
			b = append(b, '~')
		default:
			b = append(b, byte(r))
		}
	}
	return string(b)
}

func wild(r rune) bool { return r == star || r == part }

// certain reports whether all of t is known.
func (t text) certain() bool { return !slices.ContainsFunc(t, wild) }

// covers reports whether a pattern matches whatever a line may become.
func (t text) covers(line text) bool {
	p, l := 0, 0
	back, from := -1, 0 // the last star of the pattern, and where in the line it ends
	for l < len(line) {
		switch {
		case p < len(t) && t[p] == star:
			back, from = p, l
			p++
		case p < len(t) && t[p] == line[l]:
			p++
			l++
		case back >= 0:
			from++
			p, l = back+1, from
		default:
			return false
		}
	}
	for p < len(t) && t[p] == star {
		p++
	}
	return p == len(t)
}

// meets reports whether there is a text that both may become.
func (t text) meets(line text) bool {
	now := make([]bool, len(line)+1) // now[l]: what is before here meets line[:l]
	now[0] = true
	for p := 0; p <= len(t); p++ {
		next := make([]bool, len(line)+1)
		for l := 0; l <= len(line); l++ {
			if !now[l] {
				continue
			}
			if p < len(t) && wild(t[p]) {
				next[l] = true
				if l < len(line) && (t[p] == star || line[l] != '/') {
					now[l+1] = true
				}
			}
			if l < len(line) && wild(line[l]) {
				now[l+1] = true
				if p < len(t) && (line[l] == star || t[p] != '/') {
					next[l] = true
				}
			}
			if p < len(t) && l < len(line) && t[p] == line[l] {
				next[l+1] = true
			}
		}
		if p == len(t) {
			return now[len(line)]
		}
		now = next
	}
	return false
}

// words are the words of a text.
func (t text) words() (list []string) {
	for {
		end := slices.Index(t, sep)
		if end < 0 {
			return append(list, t.String())
		}
		list, t = append(list, t[:end].String()), t[end+1:]
	}
}

// head is the first word of a text.
func (t text) head() string {
	if end := slices.Index(t, sep); end >= 0 {
		t = t[:end]
	}
	return t.String()
}
