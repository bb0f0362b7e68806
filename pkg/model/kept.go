package model

import (
	"bytes"
	"slices"
)

// Kept is what was encoded of a conversation already, so that a request costs what
// is new in it, and the prompt of each request begins, byte for byte, with that of
// the one before, which endpoints cache. The zero value is empty. It belongs to one
// conversation, whose requests come one after another; a request may go to another
// endpoint or model than the one before, and is then encoded anew.
type Kept struct {
	by     *spoken // with origin: who the bytes are for
	origin string
	images bool // were sent, not told of
	system *Message
	tools  []ToolSpec
	head   []byte

	from []*Message // what wire was made of
	runs []wireRun
	wire []byte
}

// wireRun is some messages that are encoded together.
type wireRun struct {
	first    int    // of its messages
	at       int    // where its bytes begin
	prev     string // role before it
	role     string // of its last wire message
	pictures int    // bytes that are images
}

// body returns the whole body of req, which the caller may keep.
func (k *Kept) body(e *encoding, req Request) ([]byte, error) {
	k.start(e, req)
	if err := k.extend(e, req.Messages); err != nil {
		return nil, err
	}
	wire := k.wire
	if e.marks == OnBlocks {
		wire = k.marked(e)
	}
	wire = bytes.TrimSuffix(wire, []byte(","))
	pictures := 0
	for _, r := range k.runs {
		pictures += r.pictures
	}
	tail := e.wire.tail(e, e.limit(req, len(k.head)+len(wire)-pictures))
	return bytes.Join([][]byte{k.head, wire, tail}, nil), nil // slices.Concat would clear it first
}

// start forgets all if the request is to be encoded in another way than what is
// kept.
func (k *Kept) start(e *encoding, req Request) {
	var system *Message
	if len(req.Messages) > 0 && req.Messages[0].Role == "system" {
		system = req.Messages[0]
	}
	if k.head != nil && k.by == e.spoken && k.origin == e.origin && k.images == (e.load != nil) &&
		k.system == system && slices.EqualFunc(k.tools, req.Tools, sameTool) {
		return
	}
	*k = Kept{by: e.spoken, origin: e.origin, images: e.load != nil, system: system, tools: slices.Clone(req.Tools)}
	k.head = e.wire.head(e, req)
}

func sameTool(a, b ToolSpec) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}

// extend makes wire that of ms. What ms has in common with what is kept stays,
// without the last run, which may have grown.
func (k *Kept) extend(e *encoding, ms []*Message) error {
	same := 0
	for same < min(len(ms), len(k.from)) && ms[same] == k.from[same] {
		same++
	}
	next, prev := 0, ""
	if last := len(k.runs) - 1; last >= 0 {
		for k.runs[last].first > same {
			last--
		}
		r := k.runs[last]
		next, prev = r.first, r.prev
		k.runs, k.wire = k.runs[:last], k.wire[:r.at]
	}
	for i, m := range ms[next:] {
		if err := checkMessage(next+i, m); err != nil {
			*k = Kept{}
			return err
		}
	}
	k.from = append(k.from[:next], ms[next:]...)
	for next < len(ms) {
		n := e.run(ms[next:])
		r := wireRun{first: next, at: len(k.wire), prev: prev}
		e.pictures = 0
		k.wire, prev = e.wire.message(e, k.wire, ms[next:next+n], prev, false)
		r.role, r.pictures = prev, e.pictures
		k.runs = append(k.runs, r)
		next += n
	}
	return nil
}

// marked returns wire with cache marks on its last two messages that are not the
// assistant's: the endpoint finds the first of them where the last request had its
// last. The marks are no part of what it caches.
func (k *Kept) marked(e *encoding) []byte {
	var parts [][]byte
	rest := len(k.wire) // what is before it is not in parts yet
	for i, left := len(k.runs)-1, 2; i >= 0 && left > 0; i-- {
		r, next := k.runs[i], wireRun{first: len(k.from), at: len(k.wire)}
		if i+1 < len(k.runs) {
			next = k.runs[i+1]
		}
		if r.at == next.at || r.role != "user" && r.role != "tool" {
			continue
		}
		mark, _ := e.wire.message(e, nil, k.from[r.first:next.first], r.prev, true)
		parts = append(parts, k.wire[next.at:rest], mark)
		rest = r.at
		left--
	}
	parts = append(parts, k.wire[:rest])
	slices.Reverse(parts)
	return bytes.Join(parts, nil)
}
