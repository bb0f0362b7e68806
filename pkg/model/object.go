package model

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"agentteam/pkg/wire"
)

// object writes a JSON object, its fields in the order in which they come.
type object struct {
	b   []byte
	any bool
}

// openObject begins an object at the end of b.
func openObject(b []byte) *object { return &object{b: append(b, '{')} }

func (o *object) close() []byte { return append(o.b, '}') }

func (o *object) key(k string) {
	if o.any {
		o.b = append(o.b, ',')
	}
	o.any = true
	o.b = append(appendText(o.b, k), ':')
}

func (o *object) raw(k string, v []byte) {
	o.key(k)
	o.b = append(o.b, v...)
}

func (o *object) text(k, v string) {
	o.key(k)
	o.b = appendText(o.b, v)
}

// said writes v unless it is empty.
func (o *object) said(k, v string) {
	if v != "" {
		o.text(k, v)
	}
}

func (o *object) number(k string, n int) { o.raw(k, strconv.AppendInt(nil, int64(n), 10)) }

// list writes an array with a value for each of all, which add appends to what is there.
func list[T any](o *object, k string, all []T, add func(b []byte, i int, v T) []byte) {
	o.key(k)
	o.b = append(o.b, '[')
	for i, v := range all {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = add(o.b, i, v)
	}
	o.b = append(o.b, ']')
}

// appendText appends s as a JSON string, without the escapes that are only of use
// inside HTML: each costs a model five characters. A NUL is left out: what stores text in
// a database or a C string refuses it, or ends there. A conversation is encoded for each
// request, so the usual text is copied once.
func appendText(b []byte, s string) []byte {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	const hex = "0123456789abcdef"
	if !utf8.ValidString(s) || strings.Contains(s, "\u2028") || strings.Contains(s, "\u2029") { // rare
		data, _ := wire.Plain(s) // a string always encodes
		return append(b, data...)
	}
	b = append(b, '"')
	done := 0
	for i := range len(s) {
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
