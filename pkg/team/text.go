package team

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of the contents of records, in bytes. A message to NATS may hold 1 MiB; longer texts belong in a file of the
// workspace.
const (
	MaxTitleBytes   = 512
	MaxTextBytes    = 64 << 10 // description, message, summary, reason, prompt, metadata
	MaxMessageBytes = 1 << 20  // of a message whose text is stored apart: some 250,000 tokens, more than most models take
	MaxDependencies = 256

	maxMetadataDepth = 100
)

// checkText refuses texts that no record may hold: over limit bytes, invalid UTF-8, or control characters other than
// newline and tab.
func checkText(what, s string, limit int) error {
	if len(s) > limit {
		return Errorf(InvalidArgument, "%s is %d bytes long, the limit is %d", what, len(s), limit).
			WithHint("put the text into a file of the workspace and name the file")
	}
	if !utf8.ValidString(s) {
		return Errorf(InvalidArgument, "%s is not valid UTF-8 at byte %d", what, invalidAt(s)).WithHint("save it as UTF-8")
	}
	for i, r := range s {
		if unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' {
			return Errorf(InvalidArgument, "%s holds the control character %U at byte %d", what, r, i+1).WithHint("remove it")
		}
	}
	return nil
}

// invalidAt returns where s stops being UTF-8, counted in bytes from 1.
func invalidAt(s string) int {
	for i, r := range s {
		if r != utf8.RuneError {
			continue
		}
		if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
			return i + 1
		}
	}
	return len(s) + 1
}

// checkTitle refuses a title that cannot be shown as one line as it was written: an invisible one, one of several
// lines, and one with characters that turn the direction of writing, which make one text look like another.
func checkTitle(s string) error {
	const rest = "put the rest into the description"
	switch {
	case s == "":
		return Errorf(InvalidArgument, "the title is empty").WithHint("give the task a title")
	case strings.ContainsAny(s, "\n\r\u2028\u2029"):
		return Errorf(InvalidArgument, "the title has more than one line").WithHint(rest)
	case len(s) > MaxTitleBytes:
		return Errorf(InvalidArgument, "the title is %d bytes long, the limit is %d", len(s), MaxTitleBytes).WithHint(rest)
	}
	if err := checkText("the title", s, MaxTitleBytes); err != nil {
		return err
	}
	for i, r := range s {
		if unicode.Is(unicode.Bidi_Control, r) {
			return Errorf(InvalidArgument, "the title holds %U at byte %d, which turns the direction of writing", r, i+1).WithHint("remove it")
		}
	}
	if !strings.ContainsFunc(s, visible) {
		return Errorf(InvalidArgument, "the title has no visible character").WithHint("give the task a title that can be read")
	}
	return nil
}

// visible reports whether r is visible. Spaces, format characters (Unicode Z and Cf) and letters without a glyph are
// not.
func visible(r rune) bool {
	return unicode.IsGraphic(r) && !unicode.In(r, unicode.Z, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) &&
		r != '\u2800' // a pattern of Braille without a dot
}

// checkMetadata refuses metadata that cannot be stored as part of a record.
func checkMetadata(m json.RawMessage) error {
	if err := checkText("metadata", string(m), MaxTextBytes); err != nil || len(m) == 0 {
		return err
	}
	if !json.Valid(m) {
		return Errorf(InvalidArgument, "metadata is not valid JSON").WithHint("give an object, such as {\"issue\": 4}")
	}
	// Records nest, and readers in some languages allow a few hundred levels.
	depth := 0
	for d := json.NewDecoder(bytes.NewReader(m)); ; {
		switch token, err := d.Token(); {
		case err != nil: // the end
			return nil
		case token == json.Delim('{'), token == json.Delim('['):
			if depth++; depth > maxMetadataDepth {
				return Errorf(InvalidArgument, "metadata is nested more than %d deep", maxMetadataDepth).WithHint("put it into a file of the workspace and name the file")
			}
		case token == json.Delim('}'), token == json.Delim(']'):
			depth--
		}
	}
}

// Clip shortens s to at most n runes, for a message to people.
func Clip(s string, n int) string {
	r := []rune(strings.ToValidUTF8(s, "\uFFFD"))
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}

// Clean makes a foreign text fit for a record and for people: at most n characters, valid UTF-8, without control
// characters except newline and tab.
func Clean(s string, n int) string {
	return Clip(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")), n)
}

// OneLine returns a text with each run of spaces and line ends as one space.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Summarize returns the first non-empty line of a text, at most 80 characters. It is the default summary of a message.
func Summarize(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return Clip(line, 80)
		}
	}
	return ""
}
