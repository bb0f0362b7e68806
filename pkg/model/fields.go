package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// fields is a JSON object with some known keys.
type fields map[string]json.RawMessage

// take moves the value of a known key into dst, which stays unchanged if the key is absent or null.
func (f fields) take(key string, dst any) error {
	raw, ok := f[key]
	if !ok {
		return nil
	}
	delete(f, key)
	if err := json.Unmarshal(raw, dst); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// word is a JSON string; the digits of a number, which some endpoints send as an id; "" for any other value.
type word string

// UnmarshalJSON never fails.
func (w *word) UnmarshalJSON(raw []byte) error {
	var s string
	switch plain, ok := unescaped(raw); {
	case ok:
		s = plain
	case json.Unmarshal(raw, &s) != nil && strings.IndexByte("-0123456789", raw[0]) >= 0:
		s = string(raw)
	}
	*w = word(s)
	return nil
}

// unescaped returns the text of a JSON string without escapes, which most are; ok is false for any other value. A
// stream has thousands of small strings, and decoding each would cost more than all else.
func unescaped(raw []byte) (s string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	inside := raw[1 : len(raw)-1]
	return string(inside), bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside)
}

// chunks collects the values of unknown keys over the chunks.
type chunks map[string][]json.RawMessage

func (p chunks) add(f fields) {
	for k, v := range f {
		if string(v) != "null" {
			p[k] = append(p[k], v)
		}
	}
}

// size returns about how much the model wrote in them. Endpoints repeat the same thoughts under several keys, so the
// longest counts.
func (p chunks) size() (longest int) {
	for _, vs := range p {
		n := 0
		for _, v := range vs {
			n += max(len(v)-len(`""`), 0)
		}
		if vs[0][0] == '"' || len(p) == 1 {
			longest = max(longest, n)
		}
	}
	return longest
}

// join joins the pieces of each key: it concatenates strings and arrays; of other values the last one stays.
func (p chunks) join() map[string]json.RawMessage {
	if len(p) == 0 {
		return nil
	}
	whole := make(map[string]json.RawMessage, len(p))
	for k, vs := range p {
		whole[k] = joined(vs)
	}
	return whole
}

func joined(vs []json.RawMessage) json.RawMessage {
	last := vs[len(vs)-1]
	var whole any
	switch last[0] {
	case '"':
		var text strings.Builder
		for _, v := range vs {
			var s word
			_ = s.UnmarshalJSON(v)
			text.WriteString(string(s))
		}
		whole = text.String()
	case '[':
		var list blocks
		for _, v := range vs {
			var l []json.RawMessage
			if json.Unmarshal(v, &l) == nil {
				for _, item := range l {
					list.add(item)
				}
			}
		}
		whole = list.join()
	default:
		return last
	}
	raw, _ := json.Marshal(whole) // strings and valid JSON always encode
	return raw
}
