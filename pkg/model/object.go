package model

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentteam/pkg/team/codec"
)

// slots hold values that go-openai cannot encode, or only slowly: texts, which it would escape three times, and fields
// that its types do not have. Its request has a mark in the place of each; the marks are filled afterwards.
type slots []slot

// slot is the value for a mark: raw if it is set, else text as a string. A slot with neither removes its key.
type slot struct {
	text string
	raw  []byte
	at   *int // of an element of the list of messages that is raw: where it stands
}

// roleAlone begins a message of chat completions that consists of a mark only.
const roleAlone = `{"role":`

// noKey, as raw JSON, removes the key of the mark.
var noKey = []byte{}

// say returns the mark of a text. No other string of a request begins like a mark.
func (s *slots) say(text string) string { return s.add(slot{text: text}) }

// said returns the mark of a text; "" for "".
func (s *slots) said(text string) string {
	if text == "" {
		return ""
	}
	return s.say(text)
}

// raw returns the mark of JSON, which may have further fields after its value.
func (s *slots) raw(b []byte) string { return s.add(slot{raw: b}) }

// also returns the mark of a word and the fields after it.
func (s *slots) also(word string, more fields, ours ...string) string {
	return s.raw(appendFields(appendText(nil, word), more, ours...))
}

// element returns the mark of raw elements of the list of messages, and stores their position in at; for no elements
// the position only.
func (s *slots) element(raw []byte, at *int) string { return s.add(slot{raw: raw, at: at}) }

func (s *slots) add(v slot) string {
	*s = append(*s, v)
	return "@" + strconv.Itoa(len(*s)-1)
}

// fill returns the JSON of go-openai with each mark filled.
func (s slots) fill(written []byte) []byte {
	size := len(written)
	for _, v := range s {
		size += len(v.text) + len(v.text)/8 + len(v.raw)
	}
	b := make([]byte, 0, size)
	for {
		head, rest, found := bytes.Cut(written, []byte(`"@`))
		b = append(b, head...)
		if !found {
			return b
		}
		digits, after, _ := bytes.Cut(rest, []byte(`"`))
		written = after
		n, err := strconv.Atoi(string(digits))
		switch {
		case err != nil || n >= len(s): // a model's name
			b = append(b, `"@`...)
			written = rest
		case s[n].at != nil:
			b, written = bytes.TrimSuffix(b, []byte(roleAlone)), bytes.TrimPrefix(after, []byte("}"))
			switch {
			case len(s[n].raw) > 0:
			case b[len(b)-1] == ',':
				b = b[:len(b)-1]
			default:
				written = bytes.TrimPrefix(written, []byte(","))
			}
			*s[n].at = len(b)
			b = append(b, s[n].raw...)
		case len(s[n].raw) > 0:
			b = append(b, s[n].raw...)
		case s[n].raw != nil:
			b = b[:bytes.LastIndexByte(b, ',')]
		default:
			b = appendText(b, s[n].text)
		}
	}
}

// appendFields appends the fields in the order of their names, each behind a comma, without those in ours.
func appendFields(b []byte, f fields, ours ...string) []byte {
	for _, k := range slices.Sorted(maps.Keys(f)) {
		if !slices.Contains(ours, k) {
			b = append(append(appendText(append(b, ','), k), ':'), f[k]...)
		}
	}
	return b
}

// appendText appends s as a JSON string, without the escapes that only HTML needs: each costs a model five characters.
// It omits NUL: software with databases or C strings refuses it, or stops there. A conversation is encoded for each
// request, so the usual text is copied once.
func appendText(b []byte, s string) []byte {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	const hex = "0123456789abcdef"
	if !utf8.ValidString(s) || strings.Contains(s, "\u2028") || strings.Contains(s, "\u2029") { // rare
		data, _ := codec.Plain(s) // a string always encodes
		return append(b, data...)
	}
	b = append(b, '"')
	done := 0
	for i := 0; i < len(s); i++ {
		for i+8 <= len(s) && plainWord(s[i:i+8]) {
			i += 8
		}
		if i == len(s) {
			break
		}
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[done:i]...)
		done = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
	}
	return append(append(b, s[done:]...), '"')
}

// plainWord reports whether eight bytes need no escape. It checks all of them at the same time, since a prompt of a
// megabyte is read so for each request.
func plainWord(s string) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	quote, slash := w^('"'*ones), w^('\\'*ones)
	return ((w-' '*ones)&^w|(quote-ones)&^quote|(slash-ones)&^slash)&high == 0
}
