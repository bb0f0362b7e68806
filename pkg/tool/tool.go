package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// Tool is one thing that a model may call. The zero Tool is not usable; [New]
// makes one.
type Tool struct {
	Name        string   // what the model is told
	Aliases     []string // what the model may also call it; not told
	Description string   // for the model: what it does, when to use it, what comes back
	Writes      bool     // writes files or executes
	ReadOnly    bool     // changes nothing that anybody can see, so it may be run again
	Yields      bool     // may be cut off in the middle; what it has done by then can be seen
	Bulky       bool     // its results are long, and soon of no use

	stored []string // arguments whose values can be found where the tool has put them

	whole  *jsonschema.Schema  // of all arguments that it takes
	hidden []string            // those that the model is not told of
	enums  map[string][]any    // what it is offered for some of them
	untold bool                // the model is not told of the tool
	schema json.RawMessage     // of the others
	forms  []Tool              // the other ways to call it
	show   func(string) string // of a form: see [Form.Show]
	run    func(ctx context.Context, arguments string, gate Gate) (any, error)

	ungated func(in any) bool // of valid arguments; nil: never
}

// Answers reports whether t is called by name, in any dialect.
func (t Tool) Answers(name string) bool {
	return name == t.Name || slices.Contains(t.Aliases, name) || slices.ContainsFunc(t.forms, func(f Tool) bool { return f.Name == name })
}

// Gate is asked before a call of a tool runs that may change something; its error refuses
// the call. The call's arguments are valid. See [Set.Behind].
type Gate func(ctx context.Context, tool string) error

// Option sets what most tools do without.
type Option func(*Tool)

// Alias adds names that the tool answers to as well.
func Alias(names ...string) Option {
	return func(t *Tool) { t.Aliases = append(t.Aliases, names...) }
}

// Writes marks a tool that writes files or executes.
func Writes() Option {
	return func(t *Tool) { t.Writes = true }
}

// ReadOnly marks a tool that changes nothing that anybody can see.
func ReadOnly() Option {
	return func(t *Tool) { t.ReadOnly = true }
}

// Yields marks a tool whose calls may be cut off in the middle, since they can take long.
func Yields() Option {
	return func(t *Tool) { t.Yields = true }
}

// Bulky marks a tool whose results are long and soon of no use: a conversation may leave out
// old ones. So it may the values of the arguments in stored, which the tool writes to where
// they can be read again. Every form of the tool calls these by the same names.
func Bulky(stored ...string) Option {
	return func(t *Tool) {
		for _, name := range stored {
			t.argument(name)
		}
		t.Bulky, t.stored = true, stored
	}
}

// Ungated marks a tool that no gate stops although it changes something: an agent that may
// do nothing else must be able to talk and to give its work back.
func Ungated() Option {
	return func(t *Tool) { t.ungated = func(any) bool { return true } }
}

// UngatedIf is [Ungated] for those calls only whose arguments, the tool's own struct, are so.
func UngatedIf[In any](so func(in In) bool) Option {
	return func(t *Tool) { t.ungated = func(in any) bool { return so(in.(In)) } }
}

// Enum offers the model these values for an argument, a text. Another one is taken all the
// same: the tool knows what else it can do with it, or says so in better words than a schema.
func Enum(argument string, values ...string) Option {
	return func(t *Tool) {
		t.argument(argument)
		if t.enums == nil {
			t.enums = map[string][]any{}
		}
		t.enums[argument] = anyOf(values)
	}
}

func anyOf(values []string) (list []any) {
	for _, v := range values {
		list = append(list, v)
	}
	return list
}

// Untold leaves the tool out of what the model is told. It answers all the same.
func Untold() Option {
	return func(t *Tool) { t.untold = true }
}

// Describe sets what the model is told of an argument, where that depends on who calls.
func Describe(argument, text string) Option {
	return func(t *Tool) { t.argument(argument).Description = text }
}

// Hidden leaves arguments of the struct out of what the model is told. One that it gives
// all the same is taken, so that the tool can say why it is refused. The name "list.field"
// is a field of the objects in a list.
func Hidden(arguments ...string) Option {
	return func(t *Tool) { t.hidden = append(t.hidden, arguments...) }
}

// gated reports whether a gate is asked about a call with these arguments.
func (t *Tool) gated(in any) bool {
	return !t.ReadOnly && (t.ungated == nil || !t.ungated(in))
}

// argument is the schema of one, which must be there.
func (t *Tool) argument(name string) *jsonschema.Schema {
	field := t.whole.Properties[name]
	if field == nil {
		panic(fmt.Sprintf("tool %s: there is no argument %s", t.Name, name))
	}
	return field
}

// hide takes an argument out of a schema.
func hide(tool string, in *jsonschema.Schema, name string) {
	in, name = container(tool, in, name)
	delete(in.Properties, name)
	in.PropertyOrder = slices.DeleteFunc(slices.Clone(in.PropertyOrder), func(n string) bool { return n == name })
}

// New makes a tool of a function. In is a struct; its `json` tags name the
// arguments (omitempty or omitzero makes one optional), its `jsonschema` tags
// describe them to the model. Nothing but these arguments is accepted.
//
// A string that run returns reaches the model as it is, any other value as JSON, its
// own or that of its [Briefer].
// An error should carry a [team.Code]; one without is told as unavailable. run
// must end soon after its context does, and must be safe for concurrent use if
// the set's user calls concurrently.
//
// New panics if In has no JSON schema, or an option names an argument that it does not
// have: that is a broken program, not bad input.
func New[In any](name, description string, run func(ctx context.Context, in In) (any, error), opts ...Option) Tool {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	withoutNull(schema)
	t := Tool{Name: name, Description: description, whole: schema}
	for _, opt := range opts {
		opt(&t)
	}
	check := newChecker(name, schema)
	t.schema = shownSchema(name, schema, t.hidden, t.enums)
	t.run = func(ctx context.Context, arguments string, gate Gate) (any, error) {
		var in In
		if err := check.decode(arguments, &in); err != nil {
			return nil, err
		}
		if gate != nil && t.gated(in) {
			if err := gate(ctx, name); err != nil {
				return nil, err
			}
		}
		return run(ctx, in)
	}
	t.gated(*new(In)) // an option for another struct fails here
	return t
}

// shownSchema is the schema of arguments as the model is told it: without the hidden ones,
// and with what it is offered.
func shownSchema(tool string, whole *jsonschema.Schema, hidden []string, enums map[string][]any) json.RawMessage {
	shown := whole.CloneSchemas()
	for name, values := range enums {
		if shown.Properties[name] != nil {
			shown.Properties[name].Enum = values
		}
	}
	for _, h := range hidden {
		hide(tool, shown, h)
	}
	text, err := json.Marshal(shown)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", tool, err))
	}
	if len(shown.Properties) == 0 {
		// Left out by the library, and OpenAI refuses an object schema without.
		text = append(text[:len(text)-1], `,"properties":{}}`...)
	}
	return text
}

// withoutNull removes "null" from the types that inference gives to slices and
// pointers. A type that is a list is refused by several model endpoints, and a
// null argument is dropped before validation anyway.
func withoutNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if types := slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" }); len(types) == 1 {
		s.Type, s.Types = types[0], nil
	}
	withoutNull(s.Items)
	withoutNull(s.AdditionalProperties)
	for _, p := range s.Properties {
		withoutNull(p)
	}
}
