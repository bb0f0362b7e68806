package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// callList joins the tool calls of one turn from their pieces.
type callList struct {
	known offered
	list  []*toolCall
}

type toolCall struct {
	choice number  // of the answer's choices
	index  *number // the endpoint's number for it; nil if it sends none
	id     string
	name   string
	args   strings.Builder
	depth  nesting // of args
	extra  chunks
}

// callDelta is the part of a chunk about one call.
type callDelta struct {
	choice number
	index  *number
	id     string
	name   string
	args   string
}

// add adds one piece of a tool call of a choice.
func (cs *callList) add(choice number, d fields) error {
	var index *number
	var id, kind word
	var fn struct {
		Name      word            `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := errors.Join(d.take("index", &index), d.take("id", &id), d.take("type", &kind), d.take("function", &fn)); err != nil {
		return err
	}
	p := callDelta{choice: choice, index: index, id: string(id), name: string(fn.Name), args: argumentText(fn.Arguments)}
	c := cs.find(p)
	if c == nil {
		c = &toolCall{choice: choice, index: index, extra: chunks{}}
		cs.list = append(cs.list, c)
	}
	c.id = cmp.Or(c.id, p.id)
	c.name = cs.grown(c.name, p.name)
	c.args.WriteString(p.args)
	c.depth.take(p.args)
	c.extra.add(d)
	return nil
}

// find returns the call of a piece: by its number, else its id, else the last one; nil if the piece begins another.
func (cs *callList) find(p callDelta) *toolCall {
	for _, c := range slices.Backward(cs.list) {
		switch {
		case p.choice != c.choice:
		case p.index != nil && c.index != nil && *c.index == *p.index:
			// Some endpoints number every call 0.
			if !cs.begins(p, c) {
				return c
			}
		case p.index == nil && p.id != "" && p.id == c.id:
			return c
		}
	}
	if p.index != nil || p.id != "" || len(cs.list) == 0 {
		return nil
	}
	last := cs.list[len(cs.list)-1]
	switch {
	case p.choice != last.choice, cs.begins(p, last):
		return nil
	case p.name == "", cs.known[last.name+p.name]:
		return last
	case last.args.Len() > 0 && p.name != last.name, last.args.Len() == 0 && cs.known[last.name]:
		return nil
	}
	return last
}

// begins reports whether p begins another call than c; the two have the same number, or none.
func (cs *callList) begins(p callDelta, c *toolCall) bool {
	if p.id != "" && c.id != "" {
		return p.id != c.id && p.name != ""
	}
	other := p.name != "" && p.name != c.name && !cs.known[c.name+p.name]
	switch {
	case other && cs.known[c.name] && cs.known[p.name]:
		return true
	case !c.depth.whole():
		return false
	case other:
		return true
	}
	// An empty object may be a placeholder for the real arguments. Without a name a piece may repeat the same arguments.
	return p.name != "" && strings.HasPrefix(strings.TrimSpace(p.args), "{") && strings.TrimSpace(c.args.String()) != "{}"
}

// grown returns a call's name after one more piece of it: each piece has the next part of the name, the whole name, or
// the name so far.
func (cs *callList) grown(name, more string) string {
	switch {
	case cs.known[name+more]:
		return name + more
	case cs.known[name], more == name:
		return name
	case cs.known[more] && strings.HasPrefix(more, name):
		return more
	}
	return name + more
}

// has reports whether a choice has calls.
func (cs *callList) has(choice number) bool {
	return slices.ContainsFunc(cs.list, func(c *toolCall) bool { return c.choice == choice })
}

// whole reports whether each call has a name and valid JSON.
func (cs *callList) whole() bool {
	return !slices.ContainsFunc(cs.list, func(c *toolCall) bool { return c.name == "" || !json.Valid([]byte(c.arguments())) })
}

// calls returns the calls of all choices, without repetitions between choices.
func (cs *callList) calls(ids heldIDs) (calls []ToolCall) {
	for i, c := range cs.list {
		if !slices.ContainsFunc(cs.list[:i], func(o *toolCall) bool {
			return o.choice != c.choice && o.name == c.name && o.arguments() == c.arguments()
		}) {
			calls = append(calls, ToolCall{ID: ids.own(c.id), Name: c.name, Arguments: c.arguments(), Extra: c.extra.join()})
		}
	}
	return calls
}

func (cs *callList) size() (n int) {
	for _, c := range cs.list {
		n += len(c.name) + c.args.Len()
	}
	return n
}

// arguments returns the model's arguments, repaired if that is unambiguous.
func (c *toolCall) arguments() string {
	args := strings.TrimSpace(c.args.String())
	if args == "" || args == "null" {
		return "{}"
	}
	args, _ = repairArguments(args)
	return args
}

// argumentText returns the text of the arguments, a JSON string with JSON in it; some endpoints send the object itself.
func argumentText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// nesting follows the braces of a JSON text that arrives in pieces, so that its end is found without a second reading.
type nesting struct {
	depth    int
	begun    bool
	inString bool
	escaped  bool
}

func (n *nesting) take(s string) {
	for i := range len(s) {
		switch b := s[i]; {
		case n.escaped:
			n.escaped = false
		case n.inString:
			n.escaped = b == '\\'
			n.inString = b != '"'
		case b == '"':
			n.inString = true
		case b == '{' || b == '[':
			n.depth++
			n.begun = true
		case b == '}' || b == ']':
			n.depth--
		}
	}
}

// whole reports whether an object has begun and ended.
func (n *nesting) whole() bool { return n.begun && n.depth <= 0 && !n.inString }
