package team

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of what travels inside a record, in bytes. A message to NATS may hold
// 1 MiB; what is longer than these belongs in a file of the workspace.
const (
	MaxTitleBytes   = 512
	MaxTextBytes    = 64 << 10 // description, message, summary, reason, prompt, metadata
	MaxDependencies = 256

	maxMetadataDepth = 100
)

// checkText refuses what no record may hold: more than limit bytes, bytes that
// are not UTF-8, and control characters other than newline and tab.
func checkText(what, s string, limit int) error {
	if len(s) > limit {
		return Errorf(InvalidArgument, "%s is %d bytes long, the limit is %d", what, len(s), limit).
			WithHint("put the text into a file of the workspace and name the file")
	}
	if !utf8.ValidString(s) {
		return Errorf(InvalidArgument, "%s is not valid UTF-8", what)
	}
	for i, r := range s {
		if unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' {
			return Errorf(InvalidArgument, "%s holds the control character %U at byte %d", what, r, i).WithHint("remove it")
		}
	}
	return nil
}

func checkTitle(s string) error {
	if strings.TrimSpace(s) == "" {
		return Errorf(InvalidArgument, "the title is empty").WithHint("give the task a title")
	}
	if strings.ContainsAny(s, "\n\r") {
		return Errorf(InvalidArgument, "the title has more than one line").WithHint("put the rest into the description")
	}
	return checkText("the title", s, MaxTitleBytes)
}

// checkMetadata refuses what could not be stored as part of a record.
func checkMetadata(m json.RawMessage) error {
	if err := checkText("metadata", string(m), MaxTextBytes); err != nil || len(m) == 0 {
		return err
	}
	if !json.Valid(m) {
		return Errorf(InvalidArgument, "metadata is not valid JSON")
	}
	// Records hold each other, and readers in some languages allow a few hundred levels.
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

// clip shortens s to at most n runes for use in a message to people.
func clip(s string, n int) string {
	r := []rune(strings.ToValidUTF8(s, "\uFFFD"))
	if len(r) <= n {
		return string(r)
	}
	return string(r[:n-1]) + "…"
}

// Clean makes a text of foreign origin fit for a record and for people's eyes: at
// most n characters, valid UTF-8, without control characters but for newline and tab.
func Clean(s string, n int) string {
	return clip(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")), n)
}

// Summarize returns the first words of a text: its first non-empty line, at most
// 80 characters. It is the summary of a message that came without one.
func Summarize(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return clip(line, 80)
		}
	}
	return ""
}
