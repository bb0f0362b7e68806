package blob

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

const ref = "stored:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

var noteLine = regexp.MustCompile(`(?m)^\[(\d+) bytes are left out here, lines (\d+) to (\d+) of (\d+); to read them, read "` + ref + `" from offset (\d+)\]\n`)

func TestExcerpt(t *testing.T) {
	numbered := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%d\n", i+1)
		}
		return b.String()
	}
	for name, tt := range map[string]struct {
		text        string
		limit       int
		head, tail  string
		first, last int
		all         int
	}{
		"between lines":             {numbered(1000), 300, "1\n", "\n1000\n", 0, 0, 1000},
		"one line without an end":   {strings.Repeat("x", 1000), 500, "xxx", "xxx", 1, 1, 1},
		"between characters":        {strings.Repeat("界", 1000), 500, "界", "界", 1, 1, 1},
		"a long line is several":    {strings.Repeat("x", 3*MaxLine), 500, "xxx", "xxx", 1, 3, 3},
		"a long line after others":  {"a\nb\n" + strings.Repeat("x", 5000), 500, "a\nb\nx", "xxx", 3, 4, 4},
		"the note and no more":      {numbered(1000), 10, "", "", 1, 1000, 1000},
		"room for half a character": {strings.Repeat("界", 1000), len(note(3000, 3000, 3000, 3000, ref)) + 3, "", "", 1, 1, 1},
		"of what is not UTF-8":      {strings.Repeat("\x80", 1000), 500, "\x80", "\x80", 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := Excerpt(tt.text, tt.limit, ref)
			m := noteLine.FindStringSubmatch(got)
			if m == nil {
				t.Fatalf("there is no line that says what is left out: %q", got)
			}
			if !strings.HasPrefix(got, tt.head) || !strings.HasSuffix(got, tt.tail) {
				t.Errorf("%q, want it to begin with %q and end with %q", got, tt.head, tt.tail)
			}
			if utf8.ValidString(tt.text) && !utf8.ValidString(got) {
				t.Errorf("a character is cut: %q", got)
			}
			if tt.first != 0 && fmt.Sprint(m[2:5]) != fmt.Sprint([]int{tt.first, tt.last, tt.all}) {
				t.Errorf("it names lines %v, want %d to %d of %d", m[2:5], tt.first, tt.last, tt.all)
			}
		})
	}
	if got := Excerpt("fits", 4, ref); got != "fits" {
		t.Errorf("what fits became %q", got)
	}
	if got := Excerpt(numbered(1000), 500, ""); !strings.Contains(got, "they could not be kept") || strings.Contains(got, "read_file") {
		t.Errorf("without a reference: %q", got)
	}
}

// Whatever the text: head and tail are its own, the numbers are right, nothing is cut
// inside a character, and whoever reads on at the offset misses nothing.
func TestExcerptOfAnything(t *testing.T) {
	line := rapid.OneOf(rapid.StringN(0, 60, -1), rapid.SampledFrom([]string{"", "\n", strings.Repeat("界", 3000), strings.Repeat("x", MaxLine)}))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(line, 1, 40).Draw(t, "lines"), "\n")
		limit := rapid.IntRange(0, 3000).Draw(t, "limit")
		got := Excerpt(text, limit, ref)
		if len(text) <= limit {
			if got != text {
				t.Fatalf("what fits was changed")
			}
			return
		}
		at := noteLine.FindStringSubmatchIndex(got)
		m := noteLine.FindStringSubmatch(got)
		head, tail := got[:at[0]], got[at[1]:]
		left, first, last, all, offset := number(m[1]), number(m[2]), number(m[3]), number(m[4]), number(m[5])
		if n := len(text) - left - len(tail); n == len(head)-1 && strings.HasSuffix(head, "\n") {
			head = head[:n] // this line end is the note's
		} else if n != len(head) {
			t.Fatalf("%d + %d + %d bytes are not the %d of the text", len(head), left, len(tail), len(text))
		}
		if !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) {
			t.Fatalf("the head %q or the tail %q is not the text's", head, tail)
		}
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Fatalf("a character is cut: %q", got)
		}
		if len(got) > max(limit, 300) {
			t.Fatalf("%d bytes, the limit is %d", len(got), limit)
		}
		var starts []int
		for _, at := range lines(text) {
			starts = append(starts, at)
		}
		switch {
		case all != len(starts)-1 || first < 1 || first > last || last > all || offset != first:
			t.Fatalf("lines %d to %d of %d with offset %d, of %d", first, last, all, offset, len(starts)-1)
		case starts[first-1] > len(head) || starts[last] < len(text)-len(tail):
			t.Fatalf("lines %d to %d are not all that is left out", first, last)
		case starts[first] <= len(head) || starts[last-1] >= len(text)-len(tail):
			t.Fatalf("lines %d to %d are more than what is left out", first, last)
		}
	})
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func TestLineLen(t *testing.T) {
	long := strings.Repeat("界", 2000)
	for name, tt := range map[string]struct {
		text string
		want int
	}{
		"nothing":                       {"", 0},
		"its end belongs to it":         {"ab\ncd", 3},
		"the last may have no end":      {"ab", 2},
		"an empty one":                  {"\nab", 1},
		"the longest":                   {strings.Repeat("x", MaxLine-1) + "\nab", MaxLine},
		"too long by its end":           {strings.Repeat("x", MaxLine) + "\nab", MaxLine},
		"too long, between characters":  {long, MaxLine - MaxLine%3},
		"too long, and no UTF-8":        {strings.Repeat("\x80", 2*MaxLine), MaxLine},
		"as long as may be, at the end": {strings.Repeat("x", MaxLine), MaxLine},
	} {
		if got := LineLen(tt.text); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
		if got := LineLen([]byte(tt.text)); got != tt.want {
			t.Errorf("%s, of bytes: %d, want %d", name, got, tt.want)
		}
	}
}
