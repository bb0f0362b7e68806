package tool

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"agentteam/pkg/team"
)

// Arguments are the arguments of a tool.
type Arguments struct {
	Schema  *jsonschema.Schema  // of the object that they are
	Hidden  []string            // the model does not see these; "list.field" is a field of the objects in a list
	Offered map[string][]string // the values that the model is offered for some of them
}

func (a Arguments) clone() Arguments {
	return Arguments{a.Schema.CloneSchemas(), slices.Clone(a.Hidden), maps.Clone(a.Offered)}
}

// Object returns the schema of the object that has an argument, and the argument's name there: for "list.field" the
// schema of the objects in a list. Error: InvalidArgument if there is no such argument.
func (a Arguments) Object(argument string) (object *jsonschema.Schema, name string, err error) {
	object, name = a.Schema, argument
	if list, field, nested := strings.Cut(argument, "."); nested {
		if object = object.Properties[list]; object != nil {
			object = object.Items
		}
		name = field
	}
	if object == nil || object.Properties[name] == nil {
		return nil, "", team.Errorf(team.InvalidArgument, "there is no argument %s", argument)
	}
	return object, name, nil
}

func (a Arguments) has(arguments ...string) error {
	for _, name := range arguments {
		if _, _, err := a.Object(name); err != nil {
			return err
		}
	}
	return nil
}

// ModelSchema returns the JSON schema that the model sees: without hidden arguments, with offered values. Error:
// InvalidArgument if it hides an unknown argument.
func (a Arguments) ModelSchema() (json.RawMessage, error) {
	shown := a.clone()
	for name, values := range shown.Offered {
		if field := shown.Schema.Properties[name]; field != nil {
			field.Enum = nil
			for _, v := range values {
				field.Enum = append(field.Enum, v)
			}
		}
	}
	for _, hidden := range shown.Hidden {
		object, name, err := shown.Object(hidden)
		if err != nil {
			return nil, err
		}
		delete(object.Properties, name)
		object.PropertyOrder = slices.DeleteFunc(slices.Clone(object.PropertyOrder), func(n string) bool { return n == name })
	}
	if shown.Schema.Properties == nil { // left out by the library, and OpenAI refuses an object schema without
		shown.Schema.Properties = map[string]*jsonschema.Schema{}
	}
	text, err := json.Marshal(shown.Schema)
	if err != nil {
		return nil, team.Errorf(team.InvalidArgument, "its schema: %w", err)
	}
	return text, nil
}

// withoutNull removes "null" from the types that inference gives to slices and pointers. Several model endpoints refuse
// a list as a type, and null arguments are dropped before validation.
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

// Checker checks the arguments of calls. It checks each argument separately first, so that an error names it: a model
// corrects "limit: ..." immediately and guesses at "validating root: ...".
type Checker struct {
	schema *jsonschema.Schema
	fields map[string]*jsonschema.Resolved // of the arguments that refer to nothing outside themselves
	whole  *jsonschema.Resolved
}

// Checker returns the checker of a. Error: InvalidArgument if its schema is malformed or has external references.
func (a Arguments) Checker() (*Checker, error) {
	c := &Checker{schema: a.Schema, fields: map[string]*jsonschema.Resolved{}}
	var err error
	if c.whole, err = a.Schema.Resolve(nil); err != nil {
		return nil, team.Errorf(team.InvalidArgument, "its schema: %w", err)
	}
	for name, field := range a.Schema.Properties {
		if resolved, err := field.Resolve(nil); err == nil {
			c.fields[name] = resolved
		}
	}
	return c, nil
}

// decode fills in, a pointer to the tool's struct, with valid arguments, and returns them as JSON.
func decode(given map[string]any, in any) (json.RawMessage, error) {
	text, err := json.Marshal(given)
	if err != nil {
		return nil, team.Errorf(team.InvalidArgument, "arguments: %w", err)
	}
	if err := json.Unmarshal(text, in); err != nil {
		if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, team.Errorf(team.InvalidArgument, "%s: %s does not fit, want %s", mismatch.Field, mismatch.Value, mismatch.Type)
		}
		return nil, team.Errorf(team.InvalidArgument, "arguments: %w", err)
	}
	return text, nil
}

// Parse parses the arguments of a call. An empty text means no arguments: models write that. Errors: InvalidArgument
// unless it is a JSON object.
func Parse(arguments string) (map[string]any, error) {
	if strings.TrimSpace(arguments) == "" {
		return map[string]any{}, nil
	}
	var given map[string]any
	var inText string
	if json.Unmarshal([]byte(arguments), &inText) == nil && strings.HasPrefix(strings.TrimSpace(inText), "{") {
		arguments = inText
	}
	err := json.Unmarshal([]byte(arguments), &given)
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return nil, team.Errorf(team.InvalidArgument, "the arguments are not valid JSON, byte %d of %d: %s", syntax.Offset, len(arguments), syntax).
			WithHint("send the whole call again")
	case errors.As(err, &mismatch):
		return nil, team.Errorf(team.InvalidArgument, "the arguments are a JSON %s, want an object", mismatch.Value)
	case err != nil:
		return nil, team.Errorf(team.InvalidArgument, "the arguments are not valid JSON: %w", err)
	case given == nil: // the text "null"
		given = map[string]any{}
	}
	return given, nil
}

// Check checks arguments against the schema. Before, it removes null and "", which models write for "not given", where
// the schema does not allow them, and decodes a value that is encoded twice; it guesses nothing else. Errors:
// InvalidArgument.
func (c *Checker) Check(given map[string]any) error {
	undress(c.schema, given)
	dropEmpty(c.schema, given)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if c.schema.Properties[name] == nil && closed(c.schema) {
			return team.Errorf(team.InvalidArgument, "%s: there is no such argument", shorten(name, 80)).WithHint("%s", c.usage())
		}
		if field := c.fields[name]; field != nil {
			if err := field.Validate(given[name]); err != nil {
				return team.Errorf(team.InvalidArgument, "%s: %s", name, invalid(err))
			}
		}
	}
	var missing []string
	for _, name := range c.schema.Required {
		if _, ok := given[name]; !ok {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return Missing(missing...).WithHint("%s", c.usage())
	}
	if err := c.whole.Validate(given); err != nil {
		return team.Errorf(team.InvalidArgument, "%s", invalid(err)).WithHint("%s", c.usage())
	}
	return nil
}

// invalid returns an error of validation for a model. The library reports "validating root: type: ..." and quotes the
// value, which may be a whole file.
func invalid(err error) string {
	return shorten(strings.TrimPrefix(err.Error(), "validating root: "), 300)
}

// dropEmpty removes empty values from an object, and from the objects in its lists: null where it is not allowed, and
// "" where the schema has no such argument, or an optional one that is not a string. Where any name is allowed, values
// of unknown names are data and stay.
func dropEmpty(s *jsonschema.Schema, value any) {
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			if s != nil {
				dropEmpty(s.Items, e)
			}
		}
	case map[string]any:
		if s == nil {
			return
		}
		maps.DeleteFunc(v, func(name string, e any) bool {
			field := s.Properties[name]
			if field == nil {
				return closed(s) && (e == nil || e == "")
			}
			return e == nil && !admits(field, "null") || e == "" && !admits(field, "string") && !slices.Contains(s.Required, name)
		})
		for name, e := range v {
			dropEmpty(s.Properties[name], e)
		}
	}
}

// undress returns value with each string decoded where the schema wants another type, if it is JSON of that type. It
// changes objects and lists in place.
func undress(s *jsonschema.Schema, value any) any {
	if s == nil {
		return value
	}
	if text, ok := value.(string); ok && !admits(s, "string") {
		var v any
		if json.Unmarshal([]byte(text), &v) == nil && v != nil && admits(s, kindOf(v)) {
			value = v
		}
	}
	switch v := value.(type) {
	case []any:
		for i, e := range v {
			v[i] = undress(s.Items, e)
		}
	case map[string]any:
		for name, e := range v {
			v[name] = undress(s.Properties[name], e)
		}
	}
	return value
}

// kindOf returns the JSON type of a value; a whole number is an integer, which a schema for numbers accepts too.
func kindOf(value any) string {
	switch v := value.(type) {
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case bool:
		return "boolean"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	}
	return "string"
}

// admits reports whether a schema may allow values of a JSON type.
func admits(s *jsonschema.Schema, kind string) bool {
	if s.Type != "" || s.Types != nil {
		return s.Type == kind || slices.Contains(s.Types, kind) || kind == "integer" && s.Type == "number"
	}
	alternatives := slices.Concat(s.AnyOf, s.OneOf)
	return alternatives == nil || slices.ContainsFunc(alternatives, func(a *jsonschema.Schema) bool { return admits(a, kind) })
}

// closed reports whether a schema allows only its own names.
func closed(s *jsonschema.Schema) bool {
	return s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil && s.PatternProperties == nil
}

// Missing returns the error for arguments that a call lacks.
func Missing(names ...string) *team.Error {
	return team.Errorf(team.InvalidArgument, "%s: missing", strings.Join(names, ", "))
}

// usage lists the arguments, optional ones with a question mark.
func (c *Checker) usage() string {
	if len(c.schema.PropertyOrder) == 0 {
		return "it takes no arguments"
	}
	list := slices.Clone(c.schema.PropertyOrder)
	for i, name := range list {
		if !slices.Contains(c.schema.Required, name) {
			list[i] += "?"
		}
	}
	return "arguments: " + strings.Join(list, ", ")
}
