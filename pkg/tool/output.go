package tool

import (
	"cmp"
	"fmt"
	"strings"

	"agentteam/pkg/team"
	"agentteam/pkg/wire"
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
	text, err := wire.Plain(shown)
	return string(text), err
}

// Kind is what a part is.
type Kind string

// The kinds of parts.
const (
	Image    Kind = "image"
	Resource Kind = "resource" // a file, or whatever else has a URI
)

// Part is something that a result has beside its text. Models that take images get those with
// Data. A line of the result's content describes each part, and [Result].Parts has them. Of a
// result the first [MaxParts] are kept, and no Data of more than [MaxPartData] bytes; their
// lines state that.
type Part struct {
	Kind      Kind
	MediaType string // such as "image/png"; "" = not known
	Data      []byte // the content; nil: it is where URI points to
	URI       string // where the content is from; "" = nowhere else
}

// The bounds of the parts of one result.
const (
	MaxParts    = 16
	MaxPartData = 5 << 20
)

// bounded returns those parts that are kept, and a line for each of all.
func bounded(parts []Part) (kept []Part, lines string) {
	var b strings.Builder
	for i, p := range parts {
		if i == MaxParts {
			fmt.Fprintf(&b, "[%d more parts were left out: a result has at most %d]\n", len(parts)-i, MaxParts)
			break
		}
		p.Kind, p.MediaType, p.URI = Kind(line(string(p.Kind), 40)), line(p.MediaType, 100), line(p.URI, 500)
		fmt.Fprintf(&b, "[%s %s", p.Kind, cmp.Or(p.MediaType, "of an unknown type"))
		if p.URI != "" {
			b.WriteString(" " + p.URI)
		}
		switch {
		case len(p.Data) > MaxPartData:
			fmt.Fprintf(&b, ", %d bytes, left out: at most %d are kept", len(p.Data), MaxPartData)
			p.Data = nil
		case p.Data != nil:
			fmt.Fprintf(&b, ", %d bytes", len(p.Data))
		}
		if p.Kind != Image || p.Data == nil {
			b.WriteString("; you cannot see it here")
		}
		b.WriteString("]\n")
		kept = append(kept, p)
	}
	return kept, strings.TrimSuffix(b.String(), "\n")
}

// line is s in at most n characters on one line.
func line(s string, n int) string { return strings.Join(strings.Fields(team.Clean(s, n)), " ") }
