package blob

import (
	"iter"
	"unicode/utf8"
)

// MaxLine is the most bytes of a line. A longer one counts as several lines, so that a reader can continue in
// the middle of it.
const MaxLine = 4 << 10

// LineLen returns the length of the first line of text in bytes, its end included. A
// line longer than [MaxLine] ends there, or before the character that MaxLine would
// cut. It is 0 only for an empty text.
func LineLen[T string | []byte](text T) int {
	for i := range min(len(text), MaxLine) {
		if text[i] == '\n' {
			return i + 1
		}
	}
	if len(text) <= MaxLine {
		return len(text)
	}
	return cutBefore(text, MaxLine)
}

// cutBefore returns the last place at or before n where a character of text begins;
// n itself if text is not UTF-8 there.
func cutBefore[T string | []byte](text T, n int) int {
	for at := n; at > n-utf8.UTFMax && at >= 0; at-- {
		if at == len(text) || utf8.RuneStart(text[at]) {
			return at
		}
	}
	return n
}

// cutAfter returns the first place at or after n where a character of text begins;
// n itself if text is not UTF-8 there.
func cutAfter(text string, n int) int {
	for at := n; at < n+utf8.UTFMax; at++ {
		if at == len(text) || utf8.RuneStart(text[at]) {
			return at
		}
	}
	return n
}

// lines yields where each line of text begins, by its number from 1, and at last where
// text ends, by the number that the next line would have.
func lines(text string) iter.Seq2[int, int] {
	return func(yield func(number, at int) bool) {
		for number, at := 1, 0; ; number++ {
			if !yield(number, at) || at == len(text) {
				return
			}
			at += LineLen(text[at:])
		}
	}
}
