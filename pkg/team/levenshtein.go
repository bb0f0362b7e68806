package team

import (
	"slices"
	"strings"
)

// Similar returns the one of the words that was probably meant by one that is none of them: it
// begins so, or differs in two letters at most, and in fewer than half of them. "" is none.
func Similar(word string, among []string) string {
	word = strings.ToLower(word)
	best, least := "", min(2, (len([]rune(word))-1)/2)
	for _, w := range among {
		if d := distance(word, strings.ToLower(w)); d <= least && (best == "" || d < least) {
			best, least = w, d
		}
	}
	if best != "" || len(word) < 3 {
		return best
	}
	for _, w := range among {
		if strings.HasPrefix(strings.ToLower(w), word) {
			return w
		}
	}
	return ""
}

// distance is how many letters must be put in, taken out or replaced to make b of a; two that
// have changed places count as one.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range y {
		rows[0][j+1] = j + 1
	}
	for i := range x {
		for j := range y {
			d := rows[i][j]
			if x[i] != y[j] {
				d++
			}
			d = min(d, rows[i][j+1]+1, rows[i+1][j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				d = min(d, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = d
		}
	}
	return rows[len(x)][len(y)]
}

// meant is a hint that begins with what was probably meant, if anything was.
func meant(word string, among []string, hint string) string {
	if like := Similar(word, among); like != "" {
		return "did you mean " + like + "? " + hint
	}
	return hint
}

// oneOf refuses a value that is none of its type's; "" stands for a default. Error: InvalidArgument.
func oneOf[T interface {
	~string
	Values() []string
}](what string, v T) error {
	known := v.Values()
	if v == "" || slices.Contains(known, string(v)) {
		return nil
	}
	return Errorf(InvalidArgument, "%s cannot be %q", what, Clip(string(v), 40)).
		WithHint("%s", meant(string(v), known, "choose "+strings.Join(known, ", ")))
}
