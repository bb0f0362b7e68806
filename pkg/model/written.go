package model

import (
	"cmp"
	"encoding/json"
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// written is a call that a model wrote as text, in the form of its family.
type written struct {
	name, args string
	from, to   int  // where it stands
	whole      bool // and nothing stands behind it
	fenced     bool // in a block of code
}

// Parts of the forms: marks around calls in the prompts of a family, the beginning of a call, and its name.
const (
	mark     = `(?:</?[^<>\n]+>|\[/?[A-Z_]{3,}\]|` + "```" + `\w*)\s*`
	start    = `(?:(?m:^)[ \t]*|` + mark + `)(?:` + mark + `)*`
	toolName = `([\w.:/-]+)`
	ofTag    = `(?:[^<>\s]*[:｜|])?` // before the name of a tag
)

// The forms: an object of JSON, a name before such an object, a tag with the name, a name before keys and values. The
// last two, whose arguments are not parsed: a call as in a program, and a tag of the tool's name.
var (
	jsonCall = regexp.MustCompile(start + `\[?\s*\{`)
	wordCall = regexp.MustCompile(start + `(?:(?i:action|tool|call)[ \t]*:[ \t]*|[^\n{}]*\bto=)?` + toolName +
		`(?:[^{}]*<\|message\|>|(?:\s|:|` + mark + `|(?i:action input|arguments|args|input|parameters|json)\b)*)\{`)
	tagCall  = regexp.MustCompile(start + `<` + ofTag + `(?:function=|invoke name=")` + toolName + `"?>`)
	keyCall  = regexp.MustCompile(start + toolName + `\s*<arg_key>`)
	codeCall = regexp.MustCompile(start + `\[?(?:print\()?` + toolName + `\(\s*(?:\w+\s*=|\))`)
	elemCall = regexp.MustCompile(`(?m:^)[ \t]*<` + toolName + `>\s*<\w+>`)
	tagEnd   = regexp.MustCompile(`</` + ofTag + `(?:function|invoke|tool_call)>`)
	argument = regexp.MustCompile(`(?s)<` + ofTag + `parameter(?:=| name=")([\w.-]+)"?[^<>]*>\n?(.*?)\n?</` + ofTag + `parameter>|` +
		`<arg_key>([\w.-]+)</arg_key>\s*<arg_value>\n?(.*?)\n?</arg_value>`)
	nameIn = regexp.MustCompile(`^[^{]*\{[^{]*"(?:name|tool|tool_name|function)"\s*:\s*"([^"]+)"`)
	argsIn = regexp.MustCompile(`"(?:arguments|parameters|input)"\s*:`)
	behind = regexp.MustCompile(`^(?:` + mark + `|[\s\]])*$`)
)

// mostRead bounds how often the text may be parsed for objects, which may be nested.
const mostRead = 4

// written returns the calls of offered tools in a text, in their order.
func (cs offered) written(text string) (all []written) {
	named := func(name string) bool { return strings.Contains(text, name) }
	if !slices.ContainsFunc(slices.Collect(maps.Keys(cs)), named) {
		return nil // the forms are slow on a long text
	}
	room := mostRead * len(text)
	objects := func(form *regexp.Regexp, call func(at []int, marks string, w written)) {
		for _, at := range slices.Backward(form.FindAllStringSubmatchIndex(text, -1)) { // a call stands at the end
			if room -= len(text) - at[1]; room >= 0 {
				w := object(text, at[1]-1)
				w.from = at[0]
				call(at, text[at[0]:at[1]], w)
			}
		}
	}
	objects(jsonCall, func(at []int, marks string, w written) {
		w.fenced = strings.Contains(marks, "```")
		if bare := at[0] > 0 && strings.Trim(marks, " \t\r\n[{") == ""; !bare || argsIn.MatchString(text[at[1]-1:w.to]) { // else it is any object
			all = append(all, w)
		}
	})
	objects(wordCall, func(at []int, marks string, w written) {
		w.name, w.args = strings.TrimRight(text[at[2]:at[3]], ":"), text[at[1]-1:w.to]
		w.fenced = strings.Contains(marks, "```") && !strings.Contains(marks, "<")
		all = append(all, w)
	})
	for _, form := range []*regexp.Regexp{tagCall, keyCall} {
		for _, at := range form.FindAllStringSubmatchIndex(text, -1) {
			w := tagged(text, at[3])
			w.from, w.name = at[0], text[at[2]:at[3]]
			all = append(all, w)
		}
	}
	for _, form := range []*regexp.Regexp{codeCall, elemCall} {
		for _, at := range form.FindAllStringSubmatchIndex(text, -1) {
			all = append(all, written{name: text[at[2]:at[3]], from: at[0], to: len(text)})
		}
	}
	slices.SortStableFunc(all, func(a, b written) int { return a.from - b.from })
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

// mostName bounds the part of a cut object that is searched for its name, in bytes.
const mostName = 300

// object parses a call that is a JSON object, which begins at i.
func object(text string, i int) written {
	var raw json.RawMessage
	dec := json.NewDecoder(strings.NewReader(text[i:]))
	if dec.Decode(&raw) != nil {
		w := written{to: len(text)}
		if m := nameIn.FindStringSubmatch(text[i:min(len(text), i+mostName)]); m != nil {
			w.name = m[1]
		}
		return w
	}
	var o struct {
		Name, Tool                             string
		ToolName                               string `json:"tool_name"`
		Function, Arguments, Parameters, Input json.RawMessage
	}
	_ = json.Unmarshal(raw, &o)                     // what has no such fields names no tool
	if json.Unmarshal(o.Function, &o.Name) != nil { // {"function": {"name": ..., "arguments": ...}}
		_ = json.Unmarshal(o.Function, &o)
	}
	return written{name: cmp.Or(o.Name, o.Tool, o.ToolName), args: argumentText(slices.Concat(o.Arguments, o.Parameters, o.Input)), to: i + int(dec.InputOffset()), whole: true}
}

// tagged parses a call whose name ends at i.
func tagged(text string, i int) written {
	end := tagEnd.FindStringIndex(text[i:])
	if end == nil {
		return written{to: len(text)}
	}
	w := written{args: strings.TrimSpace(strings.TrimLeft(text[i:i+end[0]], `">`)), to: i + end[1], whole: true}
	if !strings.HasPrefix(w.args, "{") {
		given := map[string]string{}
		for _, a := range argument.FindAllStringSubmatch(w.args, -1) {
			given[a[1]+a[3]] = a[2] + a[4]
		}
		data, _ := json.Marshal(given) // texts always encode
		w.args = string(data)
	}
	return w
}

// takeWritten turns a call that the model wrote as its text into a call, if it is the only one in the answer and not a
// quotation; for any other the reply names the tool.
func (r *Reply) takeWritten(req Request, known offered) {
	text := r.Message.Content
	all := known.written(cmp.Or(text, r.Message.Thinking()))
	if len(all) == 0 || text == "" && len(r.Message.ToolCalls) > 0 {
		return
	}
	w := all[0]
	r.Written, r.Fenced = w.name, w.fenced
	if req.Quoted || text == "" || len(all)+len(r.Message.ToolCalls) > 1 || !w.whole || w.fenced || r.FinishReason != "stop" || r.Message.Extra[answerBlocks] != nil || repeats(text[w.from:], w.args, req.Messages) {
		return
	}
	r.Message.Content = strings.TrimSpace(text[:w.from])
	r.Message.ToolCalls = []ToolCall{{ID: idsIn(req).own(""), Name: w.name, Arguments: w.args}}
	r.FinishReason, r.Written = "tool_calls", ""
}

// unquoted removes the escapes of a text in JSON.
var unquoted = strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\\`, `\`)

// quotedName finds the names of calls wherever they stand in a text: in an object of JSON, in a tag, or
// before a brace or a key. Calls of the forms that are never made are none.
var quotedName = regexp.MustCompile(`"(?:name|tool|tool_name|function)"\s*:\s*"([^"]+)"|<` + ofTag + `(?:function=|invoke name=")([\w.:/-]+)|` +
	`\b([\w.-]+)(?:\s*<arg_key>|(?:\s|:|` + mark + `|(?i:action input|arguments|args|input|parameters|json)\b)*\{|[^{}\n]*<\|message\|>)`)

// Quotes reports whether a message may show the model a call of an offered tool. It prefers false positives, since a quoted call
// must not be made.
func (r Request) Quotes(m *Message) bool {
	if m.Role == "assistant" {
		return false
	}
	known := namesOf(r)
	for _, names := range quotedName.FindAllStringSubmatch(unquoted.Replace(html.UnescapeString(given(m))), -1) {
		if known[known.plain(cmp.Or(names[1], names[2], names[3]))] {
			return true
		}
	}
	return false
}

// given returns the text of a message with that of its parts.
func given(m *Message) string {
	text := m.Content
	for _, p := range m.Parts {
		text += "\n" + p.Text
	}
	return text
}

// repeats reports whether the text of a call, or its arguments, occur in the input: a file or a mail may contain one.
func repeats(text, args string, all []*Message) bool {
	text, args = squeezed(text), squeezed(args)
	if len(args) < len("{a:b}") {
		args = text
	}
	return slices.ContainsFunc(all, func(m *Message) bool {
		was := squeezed(given(m))
		return m.Role != "assistant" && (strings.Contains(was, args) || strings.Contains(was, text))
	})
}

// squeezed returns a text without the changes that JSON, mail and tools make.
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

// decorated matches a name as models of some families write it, with the marks of their prompts.
var decorated = regexp.MustCompile("^[\\s\"'`]*(?:(?:functions?|tools?|default_api)(?:[./:]|__?))?([\\w-]+?)(?::\\d+|\\(\\)|<[|｜].*)?[\\s\"'`]*$")

// plain returns the offered tool that name decorates, else name.
func (cs offered) plain(name string) string {
	if m := decorated.FindStringSubmatch(name); !cs[name] && m != nil && cs[m[1]] {
		return m[1]
	}
	return name
}
