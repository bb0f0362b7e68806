// Package tokens counts the tokens of a text, and so how full a model's window is: with the vocabulary of OpenAI's
// newer models, with an estimate that costs nothing, and, with a [Calibration], with the endpoint's own reports, since every
// model has its own vocabulary.
//
// It does no I/O and depends on no endpoint. Package agent decides how to react to a nearly full window.
package tokens

import (
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"
)

// o200k is loaded by the first call of Count. It is not a sync.OnceValue: its initializer would link the vocabulary
// into programs that never count.
var o200k struct {
	load sync.Once
	*codec.Codec
}

// Count returns the tokens of a text in o200k_base: exact for OpenAI's newer models, and within a fifth or so for
// others. It takes some tenths of a second for a megabyte.
//
// The first call loads the vocabulary: 30 ms, and then 7 MB of heap, some 12 MB of the process's memory. A program that
// never calls Count does not contain it (7 MB). Safe for concurrent use.
func Count(text string) int {
	o200k.load.Do(func() { o200k.Codec = codec.NewO200kBase() })
	n, err := o200k.Count(text)
	if err != nil { // of its regular expression, which has no time limit: never seen
		return Estimate(text)
	}
	return n
}
