// Package tokens tells how many tokens a text is, and so how full a model's window is:
// by the vocabulary of OpenAI's newer models, by a guess that costs nothing, and, with
// a [Gauge], by what the endpoint itself reports, since every model has its own.
//
// It does no I/O and knows no endpoint. What is done about a window that is nearly full
// is decided by package agent.
package tokens

import (
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

// o200k is loaded by the first who counts. It is not a sync.OnceValue: its initializer
// would link the vocabulary into programs that never count.
var o200k struct {
	load sync.Once
	*codec.Codec
}

// Count returns how many tokens of o200k_base a text is: exact for OpenAI's newer
// models, and within a fifth or so for others. It takes
// some tenths of a second for a megabyte.
//
// The first call loads the vocabulary: 30 ms, and from then on 7 MB of heap, some 12 MB
// of the process's memory. A program that never calls Count does not carry it (7 MB).
// Safe for concurrent use.
func Count(text string) int {
	o200k.load.Do(func() { o200k.Codec = codec.NewO200kBase() })
	n, err := o200k.Count(text)
	if err != nil { // of its regular expression, which has no time limit: never seen
		return Estimate(text)
	}
	return n
}
