package model

import (
	"encoding/json"
	"slices"
	"strings"
)

// growing are the fields of a reasoning block that arrive in pieces: OpenRouter's reasoning_details and the
// thinking_blocks of proxies.
var growing = []string{"text", "summary", "thinking", "signature", "data"}

// blocks is a list whose elements may arrive in pieces. A thought of 12,000 tokens is as many pieces; unjoined, each
// would be stored, and sent back, with all its other fields.
type blocks struct {
	list []*block
	at   map[string]*block // those with a number, by number and type
}

// block is an element of a list, whole or joined from pieces.
type block struct {
	raw   json.RawMessage // as it came first
	rest  fields          // what does not grow; nil if nothing does
	grown map[string]*strings.Builder
}

func (bs *blocks) add(raw json.RawMessage) {
	b := newBlock(raw)
	if b.rest == nil {
		bs.list = append(bs.list, b)
		return
	}
	var whole *block
	key := string(b.rest["index"]) + " " + string(b.rest["type"])
	if isSet(b.rest["index"]) {
		whole = bs.at[key]
	} else if n := len(bs.list); n > 0 && bs.list[n-1].goesOnWith(b) {
		whole = bs.list[n-1]
	}
	if whole != nil {
		whole.take(b)
		return
	}
	bs.list = append(bs.list, b)
	if bs.at == nil {
		bs.at = map[string]*block{}
	}
	bs.at[key] = b
}

// newBlock decodes an element. Without a type, or a growing field, it stays unchanged.
func newBlock(raw json.RawMessage) *block {
	b := &block{raw: raw}
	f := fields{}
	if json.Unmarshal(raw, &f) != nil || !isSet(f["type"]) {
		return b
	}
	for _, key := range growing {
		var s string
		if isString(f[key]) && json.Unmarshal(f[key], &s) == nil {
			if b.grown == nil {
				b.grown = map[string]*strings.Builder{}
			}
			b.grown[key] = &strings.Builder{}
			b.grown[key].WriteString(s)
			delete(f, key)
		}
	}
	if b.grown != nil {
		b.rest = f
	}
	return b
}

func isString(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

// goesOnWith reports whether next, neither of which has a number, is a piece of b: all other fields are equal, and b
// has no signature, with which a block ends.
func (b *block) goesOnWith(next *block) bool {
	if b.rest == nil || next.grown["data"] != nil || b.grown["signature"] != nil && b.grown["signature"].Len() > 0 {
		return false
	}
	for key, v := range next.rest {
		if isSet(v) && string(b.rest[key]) != string(v) {
			return false
		}
	}
	return true
}

// take appends next, a piece of the same block, to b.
func (b *block) take(next *block) {
	for key, s := range next.grown {
		if b.grown[key] == nil {
			b.grown[key] = s
		} else {
			b.grown[key].WriteString(s.String())
		}
	}
	for key, v := range next.rest {
		if isSet(v) || b.rest[key] == nil {
			b.rest[key] = v
		}
	}
	b.raw = nil
}

func (bs *blocks) join() []json.RawMessage {
	out := slices.Grow([]json.RawMessage{}, len(bs.list))
	for _, b := range bs.list {
		if b.raw == nil {
			for key, s := range b.grown {
				b.rest[key], _ = json.Marshal(s.String()) // a string always encodes
			}
			b.raw, _ = json.Marshal(b.rest) // so does what was JSON before
		}
		out = append(out, b.raw)
	}
	return out
}
