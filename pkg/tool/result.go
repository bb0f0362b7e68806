package tool

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"agentteam/pkg/team"
	"agentteam/pkg/team/codec"
)

// MaxContent bounds the bytes of a result that the model sees.
const MaxContent = 64 << 10

// maxError bounds the bytes of an error's message. JSON encodes a byte in at most six, so an error is never cut and
// always parses.
const maxError = 8 << 10

// Call is a model's request: Arguments is the JSON text as the model wrote it.
type Call struct{ ID, Name, Arguments string }

// Result is the answer to a call.
type Result struct {
	// Content is what the model sees. It is valid UTF-8, never empty (endpoints
	// refuse that) and at most [MaxContent] bytes; of more, the middle is cut
	// and a line says how much. An error is a JSON object
	// {"error", "code", "status":"error"}, with "hint" if there is one, or the
	// text of [Plain].
	Content string
	IsError bool
	Code    team.Code    // of an error
	Value   any          // of the tool's [Output]; nil for an error
	Parts   []Part       // of the tool's [Output], within the bounds of [Part]; none for an error
	Effects Effects      // of the tool's [Output]; for an error those of [With]
	Account team.Account // how the call was made
}

// Plain returns err as an error that the model sees as text, unquoted: the output of a command is easier to read than
// JSON that quotes it.
func Plain(err error, text string) error { return &plain{err, text} }

type plain struct {
	error
	text string
}

func (p *plain) Unwrap() error { return p.error }

// IsPlain reports whether the model sees a plain text for err, see [Plain].
func IsPlain(err error) bool {
	var p *plain
	return errors.As(err, &p)
}

// EffectsOf returns the effects of err, see [With]; the zero Effects if it has none.
func EffectsOf(err error) Effects {
	if l, ok := errors.AsType[*leading](err); ok {
		return l.to
	}
	return Effects{}
}

// With returns err with effects, such as an [Effects].Await: a gate has refused a call until a person decides on it.
// The model need not be called before that.
func With(err error, to Effects) error { return &leading{err, to} }

type leading struct {
	error
	to Effects
}

func (l *leading) Unwrap() error { return l.error }

// success returns the result for a tool's output.
func success(out Output) (Result, error) {
	text, err := out.Text()
	if err != nil {
		return Result{}, err
	}
	parts, lines := bounded(out.Parts)
	if lines != "" {
		text = strings.TrimPrefix(cut(text, MaxContent-len(lines)-1)+"\n"+lines, "\n")
	}
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	return Result{Content: cut(text, MaxContent), Value: out.Value, Parts: parts, Effects: out.Effects}, nil
}

// failure returns the result for an error. Without a code it is unavailable: the tool did not do its work, and the
// model can only try again.
func failure(err error) Result {
	code := team.CodeOf(err)
	if code == "" {
		code = team.Unavailable
	}
	effects := EffectsOf(err)
	if p, ok := errors.AsType[*plain](err); ok {
		return Result{Content: cut(strings.ToValidUTF8(p.text, string(utf8.RuneError)), MaxContent), IsError: true, Code: code, Effects: effects}
	}
	text, encodeErr := codec.Plain(struct {
		Error  string    `json:"error"`
		Code   team.Code `json:"code"`
		Status string    `json:"status"`
		Hint   string    `json:"hint,omitempty"`
	}{cut(err.Error(), maxError), code, "error", shorten(team.ModelHintOf(err), 1000)})
	if encodeErr != nil { // four strings always encode
		panic(encodeErr)
	}
	return Result{Content: string(text), IsError: true, Code: code, Effects: effects}
}

// cut removes the middle of s so that at most limit bytes are left, the line that states it included. The two ends are
// most useful: a build log ends with the error, a file begins with its purpose.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const room = 64 // for the line between
	head := runeBoundary(s, (limit-room)/2)
	tail := runeBoundary(s, len(s)-(limit-room)/2)
	return fmt.Sprintf("%s\n[... %d bytes cut ...]\n%s", s[:head], tail-head, s[tail:])
}

// shorten cuts s to at most limit bytes and a mark.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:runeBoundary(s, limit)] + "..."
}

// runeBoundary returns the last index at or before i that does not split a
// character of s.
func runeBoundary(s string, i int) int {
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}
