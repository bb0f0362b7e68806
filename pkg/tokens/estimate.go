package tokens

import (
	"unicode"
	"unicode/utf8"
)

// What the pieces of a text cost, in thousandths of a token; found by comparing with
// [Count] on prose, code, data and noise. See TestEstimate for how near that is.
const (
	token = 1000

	shortWord   = 6    // letters that a word may have to be one token
	letter      = 300  // of a word behind these
	capital     = 600  // letter of a word in capitals
	attached    = 500  // a mark before a word, such as that of .Put
	mark        = 300  // another mark beside the first
	sameMark    = 65   // a mark or line end like the one before
	sameSpace   = 12   // a space beside the first
	hexDigit    = 640  // of a digest
	noise       = 740  // byte of base64 and the like
	ideograph   = 820  // Chinese, Japanese, Korean
	cyrillic    = 300  // letter
	otherLetter = 420  // of other writing
	otherSymbol = 2400 // emoji and the like

	leastNoise = 16  // bytes; shorter runs of letters and digits are names
	judged     = 256 // of them, by which the rest is judged
)

// Estimate returns about how many tokens a text is, without a vocabulary: it cuts the
// text as [Count] does, at words, numbers, marks and blanks, and guesses each piece. It
// takes a thirtieth of Count's time and no memory, and says rather too much than too
// little: from 1 % under to 15 % over for English, code, Chinese, base64 and digests,
// up to 30 % over for dense JSON, more for writing with many accents. Only ruled tables
// and tables of numbers were seen to come out too small, by 5 to 20 %.
func Estimate(text string) int {
	cost, before := 0, class(0)
	for at := 0; at < len(text); {
		c := classOf(text, at)
		n, price := piece(text[at:], c, before)
		cost += price
		at, before = at+n, c
	}
	return (cost + token - 1) / token
}

// piece returns the length and the cost of what text, which is not empty, begins with;
// before is the class of what stood before it.
func piece(text string, c, before class) (n, price int) {
	switch c {
	case lowerCase, upperCase, digit:
		if before != lowerCase && before != upperCase && before != digit {
			if n, price = gibberish(text); n > 0 {
				return n, price
			}
		}
		return name(text, c)
	case space:
		return blanks(text)
	case lineEnd:
		n = run(text, 0, lineEnd)
		return n, token + (n-1)*sameMark
	case punctuation:
		return marks(text, before)
	}
	r, n := utf8.DecodeRuneInString(text)
	return n, foreign(r)
}

// name is a word or a number; with CamelCase each part is a word.
func name(text string, c class) (n, price int) {
	if c == digit { // three are a token
		n = run(text, 0, digit)
		return n, (n + 2) / 3 * token
	}
	capitals := run(text, 0, upperCase)
	n = run(text, capitals, lowerCase)
	if capitals > 1 {
		return n, max(token, capitals*capital+max(0, n-capitals-shortWord/2)*letter)
	}
	return n, token + max(0, n-shortWord)*letter
}

// gibberish is a long run of letters and digits that are not in words, as of a digest
// or of base64; n is 0 if text does not begin with one. A run is judged once, by its
// beginning.
func gibberish(text string) (n, price int) {
	var seen [classes]int
	hex := true
	for ; n < min(len(text), judged) && inRun(text, n); n++ {
		b, c := text[n], classOf(text, n)
		seen[c]++
		hex = hex && (c == digit || 'a' <= b|0x20 && b|0x20 <= 'f')
	}
	switch {
	case n < leastNoise || seen[digit] == 0:
		return 0, 0
	case hex:
		price = hexDigit
	case seen[upperCase] > n/8 && seen[lowerCase] > n/8:
		price = noise
	default:
		return 0, 0
	}
	for n < len(text) && inRun(text, n) {
		n++
	}
	return n, n * price
}

// inRun reports whether the byte at a position may be part of gibberish.
func inRun(text string, at int) bool {
	c := classOf(text, at)
	return c == lowerCase || c == upperCase || c == digit || text[at] == '+' || text[at] == '/'
}

// blanks are spaces and tabs. One of them belongs to the word or mark that follows, and
// all of them to the end of their line.
func blanks(text string) (n, price int) {
	n = run(text, 0, space)
	next := lineEnd
	if n < len(text) {
		next = classOf(text, n)
	}
	if n > 1 && next != lineEnd {
		price = token + (n-1)*sameSpace
	}
	if next == digit {
		price += token
	}
	return n, price
}

// marks are punctuation and symbols of ASCII, with the ends of lines behind them.
func marks(text string, before class) (n, price int) {
	n = run(text, 0, punctuation)
	price = token
	for i := 1; i < n; i++ {
		if text[i] == text[i-1] {
			price += sameMark
		} else {
			price += mark
		}
	}
	if n < len(text) {
		next := classOf(text, n)
		if n == 1 && before != space && (next == lowerCase || next == upperCase) {
			return n, attached
		}
	}
	return run(text, n, lineEnd), price
}

// foreign is the cost of a character beyond ASCII, or of a control character.
func foreign(r rune) int {
	switch {
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
		return ideograph
	case unicode.Is(unicode.Cyrillic, r):
		return cyrillic
	case unicode.IsLetter(r), unicode.IsMark(r):
		return otherLetter
	case unicode.IsPunct(r), unicode.IsSpace(r), unicode.IsControl(r), r == utf8.RuneError:
		return token
	}
	return otherSymbol
}

// run returns the end of the run of class c in text from position from on.
func run(text string, from int, c class) int {
	for from < len(text) && classOf(text, from) == c {
		from++
	}
	return from
}

// class is what a byte counts as.
type class byte

const (
	beyond class = iota // of ASCII, or a control character
	lowerCase
	upperCase
	digit
	space
	lineEnd
	punctuation
	classes // how many there are
)

func classOf(text string, at int) class { return classTable[text[at]] }

var classTable = func() (t [256]class) {
	for b := byte('!'); b <= '~'; b++ {
		t[b] = punctuation
	}
	for b := byte('0'); b <= '9'; b++ {
		t[b] = digit
	}
	for b := byte('a'); b <= 'z'; b++ {
		t[b], t[b-'a'+'A'] = lowerCase, upperCase
	}
	t[' '], t['\t'], t['\n'], t['\r'] = space, space, lineEnd, lineEnd
	return t
}()
