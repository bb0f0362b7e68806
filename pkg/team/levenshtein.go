package team

import (
	"slices"
	"strings"
)

// Similar returns the word of among that was probably meant by word: it begins with word, or differs in at
// most two letters and fewer than half of them. It returns "" if there is none.
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

// distance returns how many letters must be inserted, removed or replaced to turn a into b; two swapped
// letters count as one.
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

// meant returns hint behind the probably meant word, if there is one.
func meant(word string, among []string, hint string) string {
	if like := Similar(word, among); like != "" {
		return "did you mean " + like + "? " + hint
	}
	return hint
}

// oneOf returns InvalidArgument for a value that its type does not have; "" stands for a default.
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
