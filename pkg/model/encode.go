package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"agentteam/pkg/team"
)

// encoding is how one request is encoded: the profile, and a wire.
type encoding struct {
	*spoken
	model    string
	origin   string // of answers whose Extra goes back
	limits   Limits
	marks    cacheMarks
	load     func(Image) ([]byte, error) // nil: images are told of in text
	wire     wireFormat
	pictures int // bytes of images that were written; they are no text
}

// wireFormat writes a request in one protocol.
type wireFormat interface {
	// path is where requests go, after the base URL.
	path() string
	// head returns the body up to and including the bracket that opens the messages.
	head(e *encoding, req Request) []byte
	// message appends the wire messages that the run ms is made of, each with a comma
	// after it, and returns the role of the last; prev is the role before.
	message(e *encoding, b []byte, ms []*Message, prev string, mark bool) ([]byte, string)
	// tail returns what follows the messages: the closing bracket and the limit.
	tail(e *encoding, limit int) []byte
}

// encoding returns how req is encoded.
func (d *dialect) encoding(req Request) *encoding {
	e := &encoding{spoken: d.spoken(), model: cmp.Or(req.Model, d.model)}
	e.origin = d.origin(e.model)
	e.limits = d.limitsOf(e.model)
	e.marks = e.marksFor(e.model)
	if e.Images {
		e.load = req.Image
	}
	e.wire = wireFormats[e.wireFor(e.model)]
	return e
}

var wireFormats = map[protocol]wireFormat{chat: chatWire{}, responses: responsesWire{}}

// body returns the whole body of req. What two requests have in common is encoded alike, so that
// the prompt of the later one begins with that of the earlier, which endpoints cache; a cache
// mark is no part of that.
func (e *encoding) body(req Request) ([]byte, error) {
	var runs [][]*Message
	size := 0 // about
	for at := 0; at < len(req.Messages); {
		n := e.run(req.Messages[at:])
		runs = append(runs, req.Messages[at:at+n])
		at += n
	}
	for i, m := range req.Messages {
		if err := checkMessage(i, m); err != nil {
			return nil, err
		}
		size += len(m.Content) + 256
	}
	marked := e.marked(runs)
	b, prev := slices.Grow(e.wire.head(e, req), size+size/8), ""
	for i, run := range runs {
		b, prev = e.wire.message(e, b, run, prev, slices.Contains(marked, i))
	}
	b = bytes.TrimSuffix(b, []byte(",")) // behind the last message
	return append(b, e.wire.tail(e, e.limit(req, len(b)-e.pictures))...), nil
}

// marked returns which of the runs get cache marks: the last two that are not the
// assistant's. So the endpoint finds the first of them where the last request had its last.
func (e *encoding) marked(runs [][]*Message) (marked []int) {
	input := func(m *Message) bool { return m.Role != "assistant" }
	for i := len(runs) - 1; i >= 0 && len(marked) < 2 && e.marks == onBlocks; i-- {
		first := runs[i][0]
		if first.Role == "tool" || first.Role == "user" || e.joins(first) && slices.ContainsFunc(runs[i], input) {
			marked = append(marked, i)
		}
	}
	return marked
}

// run returns how many of ms, at least one, are encoded together: users in a row,
// where the endpoint wants them as one, with the empty turns between them that are
// left out.
func (e *encoding) run(ms []*Message) int {
	n := 1
	for n < len(ms) && e.joins(ms[0]) && e.joins(ms[n]) {
		n++
	}
	return n
}

func (e *encoding) joins(m *Message) bool {
	asUser := m.Role == "user" || m.Role == "system" && e.SystemRole == "user"
	return e.MergeUsers && (asUser || e.leavesOut(m))
}

func (e *encoding) leavesOut(m *Message) bool {
	return m.Role == "assistant" && e.EmptyTurn == "" && len(m.ToolCalls) == 0 && e.text(m) == ""
}

// checkMessage returns why the i-th message cannot be encoded.
func checkMessage(i int, m *Message) error {
	switch {
	case m.Role == "system" && i > 0:
		// The chat templates of several open models refuse it.
		return team.Errorf(team.InvalidArgument, "message %d of the conversation is a system message; only the first may be", i)
	case m.Role != "system" && m.Role != "user" && m.Role != "assistant" && m.Role != "tool":
		return team.Errorf(team.InvalidArgument, "message %d of the conversation has the role %q", i, m.Role)
	}
	return nil
}

// limit returns the limit of the answer to a prompt of n bytes of text.
func (e *encoding) limit(req Request, n int) int {
	limit := cmp.Or(req.MaxTokens, e.limits.MaxOutput)
	if e.MostOutput > 0 {
		limit = min(limit, e.MostOutput)
	}
	if e.limits.Window > 0 {
		limit = min(limit, max(e.limits.Window-tokensIn(n), 256))
	}
	return limit
}

// tokensIn estimates how many tokens n bytes of text are: four bytes each, which is
// near enough for English and code and, at three bytes a character, for Chinese.
func tokensIn(n int) int { return (n + 3) / 4 }

// text returns the content of m as text, with the reference of an image in its
// place; white space alone is none, for it is refused like none.
func (e *encoding) text(m *Message) string {
	texts := []string{m.Content}
	for _, p := range m.Parts {
		if p.Image != nil {
			texts = append(texts, reference(*p.Image))
		} else {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(slices.DeleteFunc(texts, blank), "\n")
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func reference(i Image) string { return "(image " + i.Ref + ", which you cannot see)" }

// contentPart is a text or an image of a message that people or tools gave.
type contentPart struct {
	text  string
	image string // a data URL; "": text
}

// parts returns the content of the messages, texts in a row as one. An image that
// cannot be loaded is told of in text.
func (e *encoding) parts(ms []*Message) (ps []contentPart) {
	say := func(text, gap string) {
		if blank(text) {
			return
		}
		if last := len(ps) - 1; last >= 0 && ps[last].image == "" {
			ps[last].text += gap + text
			return
		}
		ps = append(ps, contentPart{text: text})
	}
	for _, m := range ms {
		if m.Role == "assistant" {
			continue // an empty turn between users, which is left out
		}
		say(m.Content, "\n\n")
		for _, p := range m.Parts {
			switch {
			case p.Image == nil:
				say(p.Text, "\n")
			case e.load == nil:
				say(reference(*p.Image), "\n")
			default:
				data, err := e.load(*p.Image)
				if err != nil {
					say(reference(*p.Image), "\n")
					continue
				}
				url := dataURL(p.Image.MediaType, data)
				e.pictures += len(url)
				ps = append(ps, contentPart{image: url})
			}
		}
	}
	return ps
}

// arguments returns the arguments of a call as JSON text. What is no JSON object is
// quoted: vLLM, Ollama, Anthropic, Gemini and others parse the arguments of earlier turns
// and would refuse this conversation for good. The model still sees what it wrote.
func arguments(c ToolCall) string {
	args := strings.TrimSpace(c.Arguments)
	switch {
	case args == "":
		return "{}"
	case args[0] == '{' && json.Valid([]byte(args)):
		return withoutNUL(c.Arguments)
	}
	o := openObject(nil)
	o.text("malformed_arguments", c.Arguments)
	return string(o.close())
}

// withoutNUL returns JSON without the escapes of NUL in its strings, as [appendText] leaves the
// character out.
func withoutNUL(text string) string {
	const escape = `\u0000`
	if !strings.Contains(text, escape) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], escape):
			i += len(escape) - 1
			continue
		case text[i] == '\\': // with what it escapes, which may be a backslash
			b.WriteByte(text[i])
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// extras returns the fields of an earlier answer that go back to the model that is
// asked, by name.
func (e *encoding) extras(m *Message, extra map[string]json.RawMessage) map[string]json.RawMessage {
	if m.Origin != "" && m.Origin != e.origin {
		return nil
	}
	back := map[string]json.RawMessage{}
	for k, v := range extra {
		if e.echoes(k) {
			back[k] = v
		}
	}
	return back
}

// bodyField is a field of a body, its value in JSON.
type bodyField struct{ name, value string }

// bodyFields writes ours, each unless extra replaces it, and then extra.
func (e *encoding) bodyFields(o *object, extra map[string]json.RawMessage, ours ...bodyField) {
	for _, f := range ours {
		if _, replaced := extra[f.name]; !replaced && !slices.Contains(e.Drop, f.name) {
			o.raw(f.name, []byte(f.value))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(extra)) {
		if !slices.Contains(e.Drop, k) {
			o.raw(k, extra[k])
		}
	}
}
