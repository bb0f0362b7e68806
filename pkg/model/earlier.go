package model

import (
	"hash"
	"slices"
	"sync"
)

// mostBegun bounds the kept beginnings of conversations: a process works on few at a time.
const mostBegun = 4

// beginning is the encoded beginning of a request, which the next one reuses. A conversation of a megabyte is sent
// again after each small result, so its JSON is kept.
type beginning struct {
	by       wording
	messages []*Message // that it is of; they never change
	body     []byte     // the JSON of these, without the list around it
	pictures int        // bytes of images in it
	last     string     // the role of its last message

	sum  hash.Hash // of all before its end; of Messages only
	size int       // bytes of text before its end; of Messages only
}

// wording holds the inputs of a message's JSON, except the message.
type wording struct {
	*endpointSettings
	model  string
	images bool   // are loaded
	before string // the digest of what stands before the messages; of Messages only
}

// beginnings are the beginnings of the newest requests, the newest first. Safe for concurrent use.
type beginnings struct {
	mu   sync.Mutex
	list []*beginning
}

// of returns the longest known beginning of a conversation, without its last message; an empty one if none is known.
func (bs *beginnings) of(by wording, messages []*Message) *beginning {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	longest := &beginning{by: by}
	for _, b := range bs.list {
		n := len(b.messages)
		if b.by == by && n > len(longest.messages) && n < len(messages) && slices.Equal(b.messages, messages[:n]) {
			longest = b
		}
	}
	return longest
}

// keep replaces was with b, which continues it.
func (bs *beginnings) keep(b, was *beginning) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(bs.list), func(x *beginning) bool { return x == was })
	bs.list = append([]*beginning{b}, list[:min(len(list), mostBegun-1)]...)
}
