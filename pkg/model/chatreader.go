package model

// newChatReader returns what reads the stream of a chat completion.
func newChatReader(req Request, onDelta func(string)) turnReader {
	return &chatReader{assembly: newAssembly(req), onDelta: onDelta}
}

type chatReader struct {
	*assembly
	onDelta func(string)
}

func (c *chatReader) event(_ string, data []byte) error { return c.add(data, c.onDelta) }
func (c *chatReader) finished() bool                    { return c.finish != "" }
