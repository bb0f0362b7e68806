package model

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
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

// appendText appends s as a JSON string, without the escapes that are only of use
// inside HTML: each costs a model five characters. A NUL is left out: what stores text in
// a database or a C string refuses it, or ends there.
func appendText(b []byte, s string) []byte {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	buf := bytes.NewBuffer(b)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
