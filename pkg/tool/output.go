package tool

import (
	"fmt"
	"strings"

	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// Output is what a call of a tool comes to.
type Output struct {
	// Value is for programs. The model is shown Brief, or if that is nil Value: a string as it
	// is, any other value as JSON.
	Value   any
	Brief   any
	Parts   []Part // what the result has beside its text
	Effects Effects
}

// Effects are what a call means for the agent that made it, beside its result. The zero
// Effects mean nothing.
type Effects struct {
	Await   *team.Await   // the agent waits for an answer
	Sent    *team.Sent    // mail was sent to members
	Verdict *team.Verdict // a request to shut down is answered, which the agent carries out
	Moved   *team.Task    // the task whose status the call may have changed, as it is now
	Ends    bool          // the agent's work is over
	Touched string        // the file that was read or written, an absolute path; "" = none in the workspace
	Jobs    []team.Job    // that the call has begun, or shows to have ended, see [team.Job].Ended
	Rests   bool          // the run may end: the agent has nothing to do until there is input
}

// Text returns what the model is shown of the value, before it is cut; "" of none.
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

// Part is an image that a result has beside its text, for models that take images. A line of
// the result's content describes each, and [Result].Parts has them, without Data of more than
// [MaxPartData] bytes.
type Part struct {
	MediaType string // such as "image/png"
	Data      []byte
	Name      string // of the file that it is from
}

// MaxPartData is how many bytes a part has at most.
const MaxPartData = 5 << 20

// bounded returns the parts as they are kept, and a line for each.
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

// line is s in at most n characters on one line.
func line(s string, n int) string { return strings.Join(strings.Fields(team.Clean(s, n)), " ") }
