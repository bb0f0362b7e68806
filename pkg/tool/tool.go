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
	Writes      bool     // writes files or executes, so gates look before it runs

	arguments *jsonschema.Schema // while New makes it
	schema    json.RawMessage
	run       func(ctx context.Context, arguments string) (any, error)
}

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

// Enum narrows an argument, a text, to these values.
func Enum(argument string, values []string) Option {
	return func(t *Tool) {
		field := t.argument(argument)
		field.Enum = nil
		for _, v := range values {
			field.Enum = append(field.Enum, v)
		}
	}
}

// Without leaves out an argument of the struct: the model is not told of it and may not
// give it.
func Without(argument string) Option {
	return func(t *Tool) {
		t.argument(argument)
		delete(t.arguments.Properties, argument)
		is := func(name string) bool { return name == argument }
		t.arguments.PropertyOrder = slices.DeleteFunc(t.arguments.PropertyOrder, is)
		t.arguments.Required = slices.DeleteFunc(t.arguments.Required, is)
	}
}

// argument is the schema of one, which must be there.
func (t *Tool) argument(name string) *jsonschema.Schema {
	field := t.arguments.Properties[name]
	if field == nil {
		panic(fmt.Sprintf("tool %s: there is no argument %s", t.Name, name))
	}
	return field
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
	t := Tool{Name: name, Description: description, arguments: schema}
	for _, opt := range opts {
		opt(&t)
	}
	t.arguments = nil
	check := newChecker(name, schema)
	text, err := json.Marshal(schema)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	if len(schema.Properties) == 0 {
		// Left out by the library, and OpenAI refuses an object schema without.
		text = append(text[:len(text)-1], `,"properties":{}}`...)
	}
	t.schema = text
	t.run = func(ctx context.Context, arguments string) (any, error) {
		var in In
		if err := check.decode(arguments, &in); err != nil {
			return nil, err
		}
		return run(ctx, in)
	}
	return t
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
