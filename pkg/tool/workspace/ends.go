package workspace

import (
	"slices"
	"sort"
	"strings"
)

// lines are a text whose lines end with \n or \r\n. Any other \r is an ordinary character.
type lines struct {
	text    string
	plain   string // the same with \n only
	windows []int  // the places in plain of the ends that are \r\n in text, in order
}

func lf(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

func linesOf(text string) lines {
	l := lines{text: text, plain: lf(text)}
	for at, from := 0, 0; ; {
		i := strings.Index(text[from:], "\r\n")
		if i < 0 {
			return l
		}
		from += i + 2
		at = from - 2 - len(l.windows)
		l.windows = append(l.windows, at)
	}
}

// find returns the places of s in plain.
func (l lines) find(s string) (places []int) {
	for from := 0; ; {
		i := strings.Index(l.plain[from:], s)
		if i < 0 {
			return places
		}
		places = append(places, from+i)
		from += i + len(s)
	}
}

// exact returns the places at which text has s itself.
func (l lines) exact(places []int, s string) (exact []int) {
	for _, p := range places {
		if l.text[l.in(p):l.in(p+len(lf(s)))] == s {
			exact = append(exact, p)
		}
	}
	return exact
}

// in returns the place in text for a place in plain.
func (l lines) in(p int) int { return p + sort.SearchInts(l.windows, p) }

// end returns the line end at a place in plain.
func (l lines) end(p int) string {
	if _, windows := slices.BinarySearch(l.windows, p); windows {
		return "\r\n"
	}
	return "\n"
}

// fit returns after, which replaces before at a place in plain, with the line ends of that place: unchanged lines keep
// theirs, a replaced line passes its own on, and other lines get that of the line before. In a text of one line it
// returns written.
func (l lines) fit(at int, before, after, written string) string {
	old, fresh := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	ends := make([]string, 0, len(old)) // of the lines of before
	for i, p := 0, at; i < len(old)-1; i++ {
		p += len(old[i])
		ends = append(ends, l.end(p-1))
	}
	around, ok := l.around(at, at+len(before))
	if !ok && len(ends) == 0 {
		return written
	}
	if len(ends) > 0 {
		around = ends[0]
	}
	same := 0 // lines at the end that stay
	for same < min(len(old), len(fresh))-1 && old[len(old)-1-same] == fresh[len(fresh)-1-same] {
		same++
	}
	var b strings.Builder
	for i, line := range fresh {
		text, ended := strings.CutSuffix(line, "\n")
		b.WriteString(text)
		if !ended {
			break
		}
		if k := len(old) - (len(fresh) - i); len(fresh)-i <= same && k < len(ends) {
			around = ends[k]
		} else if i < len(ends) && i < len(old)-same {
			around = ends[i]
		}
		b.WriteString(around)
	}
	return b.String()
}

// around returns the end of the line in which a part of plain ends, or else of the line before; ok is false if there is
// none.
func (l lines) around(from, to int) (end string, ok bool) {
	if i := strings.IndexByte(l.plain[to:], '\n'); i >= 0 {
		return l.end(to + i), true
	}
	if i := strings.LastIndexByte(l.plain[:from], '\n'); i >= 0 {
		return l.end(i), true
	}
	return "", false
}
