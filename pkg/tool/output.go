package tool

import (
	"fmt"
	"strings"

	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// Output is the outcome of a call of a tool.
type Output struct {
	// Value is for programs. The model is shown Brief, or if that is nil Value: a string as it
	// is, any other value as JSON.
	Value   any
	Brief   any
	Parts   []Part // what the result has beside its text
	Effects Effects
}

// Effects are the consequences of a call for the agent that made it, in addition to its result. The zero Effects have
// none.
type Effects struct {
	Await   *team.Await   // the agent waits for an answer
	Sent    *team.Sent    // mail was sent to members
	Verdict *team.Verdict // a request to shut down is answered, which the agent carries out
	Moved   *team.Task    // the task whose status the call may have changed, as it is now
	Ends    bool          // the agent's work is over
	Touched string        // the file that was read or written, an absolute path; "" = none in the workspace
	Jobs    []team.Job    // that the call has begun, or shows to have ended, see [team.Job].Ended
	Backoff bool          // the run may end: the agent has nothing to do until there is input
}

// Text returns the text of the output for the model, before it is cut; "" without one.
func (o Output) Text() (string, error) {
	shown := o.Brief
	if shown == nil {
		shown = o.Value
	}
	switch v := shown.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	}
	text, err := codec.Plain(shown)
	return string(text), err
}

// Part is an image of a result, for models that take images. A line of the result's content describes each image, and
// [Result].Parts has them, without Data over [MaxPartData] bytes.
type Part struct {
	MediaType string // such as "image/png"
	Data      []byte
	Name      string // of the file that it is from
}

// MaxPartData bounds the bytes of a part.
const MaxPartData = 5 << 20

// bounded returns the parts within their bounds, and a line for each.
func bounded(parts []Part) (kept []Part, lines string) {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "[image %s %s, %d bytes", line(p.MediaType, 100), line(p.Name, 500), len(p.Data))
		if len(p.Data) > MaxPartData {
			fmt.Fprintf(&b, ", left out: at most %d are kept; you cannot see it here", MaxPartData)
			p.Data = nil
		}
		b.WriteString("]\n")
		kept = append(kept, p)
	}
	return kept, strings.TrimSuffix(b.String(), "\n")
}

// line returns at most n characters of s on one line.
func line(s string, n int) string { return strings.Join(strings.Fields(team.Clean(s, n)), " ") }
