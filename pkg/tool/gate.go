package tool

import (
	"context"
	"encoding/json"
)

// Request is a call that a gate has to allow. Its arguments are valid.
type Request struct {
	Called    string          // the tool's name as the model has it
	Tool      string          // the tool's own name
	Arguments json.RawMessage // a JSON object, by the tool's own names of its arguments
	Traits    Traits          // of the tool; Ungated also if only this call is, see [UngatedIf]
}

// Changes reports whether the call may change something, and gates apply to it.
func (r Request) Changes() bool { return !r.Traits.ReadOnly && !r.Traits.Ungated }

// Gate is asked before a call runs; its error refuses the call. It may block until ctx ends, for instance to ask a
// person. It is safe for concurrent use. See [Set.Behind].
type Gate func(ctx context.Context, r Request) error

// asks asks all gates of a set about a call with these arguments. Error: the error of the first gate that refuses.
type asks func(ctx context.Context, arguments json.RawMessage, t Traits) error
