package model

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"agentteam/pkg/team"
)

// encoding is the encoding of one request: the profile, and a wire.
type encoding struct {
	*endpointSettings
	slots
	model    string
	effort   string // as [Request].Effort
	origin   string // of answers whose Extra goes back
	limits   Limits
	marks    cacheMarks
	load     func(Image) ([]byte, error) // nil: images are told of in text
	wire     wireFormat
	pictures int  // bytes of images that were written; they are no text
	unseen   bool // an image could not be loaded

	begun   *beginnings
	earlier *beginning // as which this request begins
}

// effortField is the effort of thinking in chat completions.
const effortField = "reasoning_effort"

// wireFormat encodes a request for one protocol.
type wireFormat interface {
	// path returns the path of requests after the base URL.
	path() string
	// write returns the call with its body. It encodes the runs; the JSON of those before end may be reused in later
	// requests.
	write(e *encoding, req Request, runs []run, end int) (call, error)
}

// run are messages that are encoded together.
type run struct {
	ms   []*Message
	mark bool // what is encoded of them ends in a cache mark
}

// encoding returns the encoding of req.
func (d *dialect) encoding(req Request) *encoding {
	e := &encoding{endpointSettings: d.settings(req.unlearnt), model: cmp.Or(req.Model, d.model), effort: req.Effort, begun: &d.begun}
	e.origin = d.origin(e.model)
	e.limits = d.limitsOf(e.model)
	e.marks = e.marksFor(e.model)
	if e.Images {
		e.load = req.Image
	}
	e.wire = wireFormats[e.wireFor(e.model)]
	return e
}

var wireFormats = map[protocol]wireFormat{chat: chatWire{}, responses: responsesWire{}, messages: messagesWire{}}

// call returns the request for the next turn. Encoding is deterministic, so consecutive requests share a prefix that
// endpoints can cache; cache marks are not part of that prefix.
func (e *encoding) call(req Request) (call, error) {
	for i, m := range req.Messages {
		if err := checkMessage(i, m); err != nil {
			return call{}, err
		}
	}
	var runs []run
	for at := 0; at < len(req.Messages); {
		n := e.run(req.Messages[at:])
		runs = append(runs, run{ms: req.Messages[at : at+n]})
		at += n
	}
	e.mark(runs)
	end := slices.IndexFunc(runs, func(r run) bool { return r.mark })
	if end < 0 {
		end = max(len(runs)-1, 0) // which may grow
	}
	e.earlier = e.begun.of(e.wording(""), req.Messages)
	skip := 0
	for n := 0; n < len(e.earlier.messages); skip++ {
		n += len(runs[skip].ms)
	}
	if skip > end { // it has no mark where this request has one
		e.earlier, skip = &beginning{by: e.earlier.by}, 0
	}
	e.pictures = e.earlier.pictures
	return e.wire.write(e, req, runs[skip:], end-skip)
}

// wording returns the inputs of the JSON of messages behind the content with the digest before.
func (e *encoding) wording(before string) wording {
	return wording{endpointSettings: e.endpointSettings, model: e.model, images: e.load != nil, before: before}
}

// keep stores the JSON of the runs, body, for further requests that begin with them.
func (e *encoding) keep(runs []run, b beginning) {
	if e.unseen {
		return
	}
	b.by, b.messages = e.earlier.by, slices.Clone(e.earlier.messages)
	for _, r := range runs {
		b.messages = append(b.messages, r.ms...)
	}
	e.begun.keep(&b, e.earlier)
}

// mark marks the last two runs that are not the assistant's. So the endpoint finds the first mark where the last
// request had its last.
func (e *encoding) mark(runs []run) {
	input := func(m *Message) bool { return m.Role != "assistant" }
	for i, marked := len(runs)-1, 0; i >= 0 && marked < 2 && e.marks == onBlocks; i-- {
		first := runs[i].ms[0]
		if first.Role == "tool" || first.Role == "user" || e.joins(first) && slices.ContainsFunc(runs[i].ms, input) {
			runs[i].mark = true
			marked++
		}
	}
}

// run returns how many of ms, at least one, are encoded together: consecutive users, where the endpoint wants one
// message, with the empty turns between them, which are left out.
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

// checkMessage returns an error if the i-th message cannot be encoded.
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

// tokensIn estimates the tokens of n bytes of text: four bytes each, close enough for English and code and, at three
// bytes a character, for Chinese.
func tokensIn(n int) int { return (n + 3) / 4 }

// text returns the content of m as text, with references in place of images; "" for white space, which endpoints refuse
// like an empty text.
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

// contentPart is a text or an image of a message from people or tools.
type contentPart struct {
	text  string
	image string // a data URL; "": text
}

// parts returns the content of the messages, with adjacent texts joined. A text replaces an image that cannot be
// loaded.
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
					e.unseen = true
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

// arguments returns the arguments of a call as JSON text. It quotes anything but a JSON object: vLLM, Ollama,
// Anthropic, Gemini and others parse the arguments of earlier turns and would refuse this conversation for good. The
// model still sees its own text.
func arguments(c ToolCall) string {
	args := strings.TrimSpace(c.Arguments)
	switch {
	case args == "":
		return "{}"
	case args[0] == '{' && json.Valid([]byte(args)):
		return sendable(c.Arguments)
	}
	return string(append(appendText([]byte(`{"malformed_arguments":`), c.Arguments), '}'))
}

// escapes matches the escapes in JSON: NUL, whole pairs of surrogates, lone surrogates, and the beginning of any other.
var escapes = regexp.MustCompile(`\\u0000|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]..|\\.`)

// sendable returns JSON without the escapes of NUL in its strings, as [appendText] omits the character, and with U+FFFD
// for lone surrogates, which are invalid: Anthropic refuses the whole request.
func sendable(text string) string {
	if !strings.Contains(text, `\u0000`) && !strings.Contains(text, `\ud`) && !strings.Contains(text, `\uD`) {
		return text
	}
	return escapes.ReplaceAllStringFunc(text, func(escape string) string {
		switch {
		case escape == `\u0000`:
			return ""
		case len(escape) == len(`\ud83d`): // a pair has two of them
			return `\ufffd`
		}
		return escape
	})
}

// extras returns the fields of an earlier answer that go back to the called model, by name.
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

// extra returns the extra fields of the body that the settings and the request set.
func (e *encoding) extra() fields {
	extra := maps.Clone(fields(e.Extra))
	if e.effort != "" {
		extra[effortField] = appendText(nil, e.effort)
	}
	return extra
}

// ours reports whether the body has the field as we write it: the settings do not replace it and the endpoint does not
// refuse it.
func (e *encoding) ours(field string, extra fields) bool {
	_, replaced := extra[field]
	return !replaced && !slices.Contains(e.Drop, field)
}
