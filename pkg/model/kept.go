package model

import (
	"bytes"
	"io"
	"net"
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

	from []*Message // what runs was made of
	runs []wireRun
}

// wireRun is some messages that are encoded together.
type wireRun struct {
	first    int    // of its messages
	wire     []byte // never changed: a request that was called off may still be reading it
	prev     string // role before it
	role     string // of its last wire message
	pictures int    // bytes that are images
}

// body returns the whole body of req, which the caller may keep.
func (k *Kept) body(e *encoding, req Request) (body, error) {
	k.start(e, req)
	if err := k.extend(e, req.Messages); err != nil {
		return nil, err
	}
	whole := make(body, 1, len(k.runs)+2)
	whole[0] = k.head
	for _, r := range k.runs {
		whole = append(whole, r.wire)
	}
	if e.marks == onBlocks {
		k.mark(e, whole[1:])
	}
	for i := len(whole) - 1; i > 0; i-- { // behind the last message there is no comma
		if n := len(whole[i]); n > 0 {
			whole[i] = bytes.TrimSuffix(whole[i], []byte(","))
			break
		}
	}
	pictures := 0
	for _, r := range k.runs {
		pictures += r.pictures
	}
	return append(whole, e.wire.tail(e, e.limit(req, whole.size()-pictures))), nil
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
		next, prev = k.runs[last].first, k.runs[last].prev
		k.runs = k.runs[:last]
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
		r := wireRun{first: next, prev: prev}
		e.pictures = 0
		r.wire, prev = e.wire.message(e, nil, ms[next:next+n], prev, false)
		r.role, r.pictures = prev, e.pictures
		k.runs = append(k.runs, r)
		next += n
	}
	return nil
}

// mark puts cache marks on the last two of the runs that are not the assistant's: the
// endpoint finds the first of them where the last request had its last. The marks are
// no part of what it caches.
func (k *Kept) mark(e *encoding, wire [][]byte) {
	end := len(k.from)
	for i, left := len(k.runs)-1, 2; i >= 0 && left > 0; i-- {
		r := k.runs[i]
		if len(r.wire) > 0 && (r.role == "user" || r.role == "tool") {
			wire[i], _ = e.wire.message(e, nil, k.from[r.first:end], r.prev, true)
			left--
		}
		end = r.first
	}
}

// body is a request's body in pieces, which are sent one after another: a long
// conversation is not copied for each request.
type body [][]byte

func (b body) size() (n int) {
	for _, piece := range b {
		n += len(piece)
	}
	return n
}

// reader returns what reads the body from its beginning.
func (b body) reader() io.Reader {
	pieces := make(net.Buffers, len(b)) // which takes itself apart
	copy(pieces, b)
	return &pieces
}
