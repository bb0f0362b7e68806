package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"agentteam/pkg/team"
)

// Tool is a function that a model may call. The zero Tool is not usable; [New] makes one.
type Tool struct {
	Name        string   // by which the model calls it
	Aliases     []string // it answers to these, too; the model does not see them
	Description string   // for the model: what it does, when to use it, what comes back
	Traits      Traits

	arguments Arguments
	schema    json.RawMessage   // of the arguments, as the model sees it
	unlisted  bool              // the model does not see the tool
	variants  []Variant         // the other ways to call it
	ungated   func(in any) bool // of valid arguments; nil: never

	run func(ctx context.Context, arguments string, ask asks) (Output, error)
}

// Answers reports whether name is the name, an alias or a variant of t.
func (t Tool) Answers(name string) bool {
	return name == t.Name || slices.Contains(t.Aliases, name) || slices.ContainsFunc(t.variants, func(v Variant) bool { return v.Name == name })
}

// variant returns the variant of that name.
func (t Tool) variant(name string) (Variant, bool) {
	i := slices.IndexFunc(t.variants, func(v Variant) bool { return v.Name == name })
	if i < 0 {
		return Variant{}, false
	}
	return t.variants[i], true
}

// called returns the variant that name calls: the variant of that name, or for an alias of t the variant with t's own
// name.
func (t Tool) called(name string) (Variant, bool) {
	if v, ok := t.variant(name); ok {
		return v, true
	}
	return t.variant(t.Name)
}

// shares reports whether another tool may have a variant of that name.
func (t Tool) shares(name string) bool {
	v, ok := t.variant(name)
	return ok && v.When != nil && name != t.Name
}

// Arguments returns the arguments of t. The caller may change them.
func (t Tool) Arguments() Arguments { return t.arguments.clone() }

// Option is a setting that most tools do not need.
type Option interface{ apply(t *Tool) error }

type option func(t *Tool) error

func (o option) apply(t *Tool) error { return o(t) }

// Alias adds names of the tool.
func Alias(names ...string) Option {
	return option(func(t *Tool) error {
		t.Aliases = append(t.Aliases, names...)
		return nil
	})
}

// UngatedIf is [Traits].Ungated for the calls for whose arguments so is true: an agent that may do nothing else must be
// able to talk and to give its work back. In is the tool's own struct, or json.RawMessage for a tool of [Dynamic].
func UngatedIf[In any](so func(in In) bool) Option {
	return option(func(t *Tool) error {
		t.ungated = func(in any) bool { return so(in.(In)) }
		return nil
	})
}

// Enum offers the model these values for an argument, a string. Other values are accepted: the tool handles them, or
// refuses them with a better reason than a schema.
func Enum(argument string, values ...string) Option {
	return option(func(t *Tool) error {
		if t.arguments.Offered == nil {
			t.arguments.Offered = map[string][]string{}
		}
		t.arguments.Offered[argument] = values
		return t.arguments.has(argument)
	})
}

// Unlisted hides the tool from the model. It can still be called.
func Unlisted() Option {
	return option(func(t *Tool) error {
		t.unlisted = true
		return nil
	})
}

// Describe sets the description of an argument, if it depends on the caller.
func Describe(argument, text string) Option {
	return option(func(t *Tool) error {
		if err := t.arguments.has(argument); err != nil {
			return err
		}
		t.arguments.Schema.Properties[argument].Description = text
		return nil
	})
}

// Hidden hides arguments of the struct from the model. They are still accepted, so that the tool can explain a refusal.
// The name "list.field" is a field of the objects in a list.
func Hidden(arguments ...string) Option {
	return option(func(t *Tool) error {
		t.arguments.Hidden = append(t.arguments.Hidden, arguments...)
		return t.arguments.has(arguments...)
	})
}

// New returns a tool with the function run. In is a struct; its `json` tags name the arguments (omitempty or omitzero
// makes one optional), its `jsonschema` tags describe them to the model. Other arguments are refused.
//
// The output of run reaches the model as [Output] states. An error should carry a [team.Code]; without one it counts as
// unavailable. run must end soon after its context does, and must be safe for concurrent use if the set is used so.
//
// New panics if In has no JSON schema, or an option is for another struct or names an argument that In does not have: a
// broken program, not bad input.
func New[In any](name, description string, run func(ctx context.Context, in In) (Output, error), opts ...Option) Tool {
	schema, err := jsonschema.For[In](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[team.Priority](): {Types: []string{"integer", "string"}},
	}})
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	withoutNull(schema)
	t := &Tool{Name: name, Description: description, arguments: Arguments{Schema: schema}}
	for _, opt := range opts {
		if err == nil {
			err = opt.apply(t)
		}
	}
	if err == nil {
		t.schema, err = t.arguments.ModelSchema()
	}
	var check *Checker
	if err == nil {
		check, err = t.arguments.Checker()
	}
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	t.run = func(ctx context.Context, arguments string, ask asks) (Output, error) {
		given, err := Parse(arguments)
		if err == nil {
			err = check.Check(given)
		}
		if err != nil {
			return Output{}, err
		}
		// Decode the validated values, not the text: encoding/json ignores case, and would accept for a field what
		// validation saw under another name.
		var in In
		text, err := decode(given, &in)
		if err == nil {
			err = ask(ctx, text, t.traitsOf(in))
		}
		if err != nil {
			return Output{}, err
		}
		return run(ctx, in)
	}
	t.traitsOf(*new(In)) // an option for another struct fails here
	return *t
}

// traitsOf returns the traits of a call with these arguments.
func (t *Tool) traitsOf(in any) Traits {
	traits := t.Traits
	traits.Ungated = traits.Ungated || t.ungated != nil && t.ungated(in)
	return traits
}
