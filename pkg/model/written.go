package model

import (
	"cmp"
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strings"
)

// written is a call that a model wrote into its text, in the form of its family.
type written struct {
	name, args string
	from, to   int  // where it stands
	whole      bool // and nothing stands behind it
	fenced     bool // in a block of code
}

// The forms: an object of JSON behind a mark or at the beginning, a name before such an object, or a tag with the name.
var (
	jsonCall = regexp.MustCompile(`(?:\A|(?m:^)[ \t]*(?:<\|?[\w▁-]+\|?>\s*|<｜[^｜]+｜>\s*|\[TOOL_CALLS\]\s*|` + "```" + `\w*\s*)+)\s*\[?\s*\{`)
	wordCall = regexp.MustCompile(`(?:\bto=|<｜tool▁sep｜>)([\w.-]+)(?:[^{}]*<\|message\|>|\s*` + "```" + `json)\s*\{`)
	tagCall  = regexp.MustCompile(`(?m)^[ \t]*(?:<[\w:]+>\s*)*<(?:\w+:)?(?:function=|invoke name=")([\w.-]+)"?>`)
	tagEnd   = regexp.MustCompile(`</(?:\w+:)?(?:function|invoke)>`)
	argument = regexp.MustCompile(`(?s)<(?:\w+:)?parameter(?:=| name=")([\w.-]+)"?>\n?(.*?)\n?</(?:\w+:)?parameter>`)
	nameIn   = regexp.MustCompile(`"(?:name|tool|function)"\s*:\s*"([^"]+)"`)
	behind   = regexp.MustCompile("^(?:\\s|</?[\\w:]+>|<[|｜][^<>]*[|｜]>|\\]|```)*$")
)

// written returns the calls of offered tools in a text, in their order.
func (cs offered) written(text string) (all []written) {
	for _, at := range jsonCall.FindAllStringIndex(text, -1) {
		w := object(text, at[1]-1)
		w.from, w.fenced = at[0], strings.Contains(text[at[0]:at[1]], "```")
		all = append(all, w)
	}
	for _, at := range wordCall.FindAllStringSubmatchIndex(text, -1) {
		w := object(text, at[1]-1)
		w.from, w.name, w.args = at[0], text[at[2]:at[3]], text[at[1]-1:w.to]
		all = append(all, w)
	}
	for _, at := range tagCall.FindAllStringSubmatchIndex(text, -1) {
		w := tagged(text, at[1])
		w.from, w.name = at[0], text[at[2]:at[3]]
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b written) int { return a.from - b.from })
	end := 0
	return slices.Collect(func(yield func(written) bool) {
		for _, w := range all {
			if w.name = cs.plain(w.name); !cs[w.name] || w.from < end {
				continue
			}
			end = w.to
			w.whole = w.whole && strings.HasPrefix(w.args, "{") && json.Valid([]byte(w.args)) && behind.MatchString(text[w.to:])
			w.fenced = w.fenced || strings.Count(text[:w.from], "```")%2 == 1
			if !yield(w) {
				return
			}
		}
	})
}

// object reads a call that is an object of JSON, which begins at i.
func object(text string, i int) written {
	var raw json.RawMessage
	dec := json.NewDecoder(strings.NewReader(text[i:]))
	if dec.Decode(&raw) != nil {
		w := written{to: len(text)}
		if m := nameIn.FindStringSubmatch(text[i:]); m != nil {
			w.name = m[1]
		}
		return w
	}
	var o struct {
		Name, Tool                             string
		Function, Arguments, Parameters, Input json.RawMessage
	}
	_ = json.Unmarshal(raw, &o)                     // what has no such fields names no tool
	if json.Unmarshal(o.Function, &o.Name) != nil { // {"function": {"name": ..., "arguments": ...}}
		_ = json.Unmarshal(o.Function, &o)
	}
	return written{name: cmp.Or(o.Name, o.Tool), args: argumentText(slices.Concat(o.Arguments, o.Parameters, o.Input)), to: i + int(dec.InputOffset()), whole: true}
}

// tagged reads a call whose tag ends at i.
func tagged(text string, i int) written {
	end := tagEnd.FindStringIndex(text[i:])
	if end == nil {
		return written{to: len(text)}
	}
	w := written{args: strings.TrimSpace(text[i : i+end[0]]), to: i + end[1], whole: true}
	if !strings.HasPrefix(w.args, "{") {
		given := map[string]string{}
		for _, a := range argument.FindAllStringSubmatch(w.args, -1) {
			given[a[1]] = a[2]
		}
		data, _ := json.Marshal(given) // texts always encode
		w.args = string(data)
	}
	return w
}

// takeWritten makes a call of one that a model wrote as its text, if it is all that the answer asks for and nothing that the
// model only repeats; of another the reply states the name.
func (r *Reply) takeWritten(req Request, known offered) {
	text := r.Message.Content
	all := known.written(cmp.Or(text, r.Message.Thinking()))
	if len(all) == 0 || text == "" && len(r.Message.ToolCalls) > 0 {
		return
	}
	w := all[0]
	r.Written, r.Fenced = w.name, w.fenced
	if text == "" || len(all)+len(r.Message.ToolCalls) > 1 || !w.whole || w.fenced || r.FinishReason != "stop" || r.Message.Extra[answerBlocks] != nil || repeats(text[w.from:], w.args, req.Messages) {
		return
	}
	r.Message.Content = strings.TrimSpace(text[:w.from])
	r.Message.ToolCalls = []ToolCall{{ID: idsIn(req).own(""), Name: w.name, Arguments: w.args}}
	r.FinishReason, r.Written = "tool_calls", ""
}

// repeats reports whether the text of a call, or its arguments, stand in what the model was given: a file or a mail may hold one.
func repeats(text, args string, given []*Message) bool {
	text, args = squeezed(text), squeezed(args)
	if len(args) < len("{a:b}") {
		args = text
	}
	return slices.ContainsFunc(given, func(m *Message) bool {
		was := m.Content
		for _, p := range m.Parts {
			was += "\n" + p.Text
		}
		was = squeezed(was)
		return m.Role != "assistant" && (strings.Contains(was, args) || strings.Contains(was, text))
	})
}

// squeezed is a text without what JSON, mail and tools do to it.
func squeezed(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\r\n\"'\\", r) {
			return -1
		}
		return r
	}, html.UnescapeString(text))
}

// offered are the names of the tools that a model may call.
type offered map[string]bool

func namesOf(req Request) offered {
	known := make(offered, len(req.Tools))
	for _, t := range req.Tools {
		known[t.Name] = true
	}
	return known
}

// decorated is a name as models of some families write it, with what stands around it in their prompts.
var decorated = regexp.MustCompile(`^\s*(?:(?:functions?|tools?|default_api)[./:])?([\w-]+?)(?::\d+|\(\)|<[|｜].*)?\s*$`)

// plain is the name of the offered tool that name decorates; else it is name.
func (cs offered) plain(name string) string {
	if m := decorated.FindStringSubmatch(name); !cs[name] && m != nil && cs[m[1]] {
		return m[1]
	}
	return name
}
