package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"agentteam/pkg/team"
)

// checker validates the arguments of one tool. It looks at each argument by
// itself, so that an error names the argument: a model corrects "limit: ..." at
// once and guesses at "validating root: ...".
type checker struct {
	names    []string // in the struct's order
	required []string
	fields   map[string]*jsonschema.Resolved
	schema   *jsonschema.Schema
}

func newChecker(tool string, schema *jsonschema.Schema) *checker {
	c := &checker{names: schema.PropertyOrder, required: schema.Required, fields: map[string]*jsonschema.Resolved{}, schema: schema}
	for name, field := range schema.Properties {
		resolved, err := field.Resolve(nil)
		if err != nil {
			panic(fmt.Sprintf("tool %s: argument %s: %v", tool, name, err))
		}
		c.fields[name] = resolved
	}
	return c
}

// decode parses and validates arguments and fills in, a pointer to the tool's
// struct. Models write nothing for "no arguments", and null or "" for "not given", so
// these are taken that way; nothing else is guessed.
func (c *checker) decode(arguments string, in any) error {
	given, err := parse(arguments)
	if err != nil {
		return err
	}
	if err := c.validate(given); err != nil {
		return err
	}
	// Decoded from what was validated, not from the text: encoding/json ignores
	// case and would take for a field what validation knew under another name.
	text, err := json.Marshal(given)
	if err != nil {
		return team.Errorf(team.InvalidArgument, "arguments: %w", err)
	}
	if err := json.Unmarshal(text, in); err != nil {
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) {
			return team.Errorf(team.InvalidArgument, "%s: %s does not fit, want %s", mismatch.Field, mismatch.Value, mismatch.Type)
		}
		return team.Errorf(team.InvalidArgument, "arguments: %w", err)
	}
	return nil
}

func parse(arguments string) (map[string]any, error) {
	if strings.TrimSpace(arguments) == "" {
		return map[string]any{}, nil
	}
	var given map[string]any
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

// validate checks arguments, from which it takes what says nothing.
func (c *checker) validate(given map[string]any) error {
	dropEmpty(c.schema, given)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		field, known := c.fields[name]
		if !known {
			return team.Errorf(team.InvalidArgument, "%s: there is no such argument", shorten(name, 80)).WithHint("%s", c.usage())
		}
		if err := field.Validate(given[name]); err != nil {
			// The library says "validating root: type: ..." and quotes the value,
			// which may be a whole file.
			return team.Errorf(team.InvalidArgument, "%s: %s", name, shorten(strings.TrimPrefix(err.Error(), "validating root: "), 300))
		}
	}
	var missing []string
	for _, name := range c.required {
		if _, ok := given[name]; !ok {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return Missing(missing...).WithHint("%s", c.usage())
	}
	return nil
}

// dropEmpty takes out of an object, and of the objects in its lists, what a model wrote for
// an argument that it does not give: null, and "" where the schema has no such argument, or
// one that is optional and no text. Where any name is allowed, all is data.
func dropEmpty(s *jsonschema.Schema, value any) {
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			if s != nil {
				dropEmpty(s.Items, e)
			}
		}
	case map[string]any:
		if s == nil || len(s.Properties) == 0 && !closed(s) {
			return
		}
		maps.DeleteFunc(v, func(name string, e any) bool {
			field := s.Properties[name]
			nothing := field == nil || field.Type != "string" && !slices.Contains(s.Required, name)
			return e == nil || e == "" && nothing
		})
		for name, e := range v {
			dropEmpty(s.Properties[name], e)
		}
	}
}

// closed reports whether a schema allows no name but its own.
func closed(s *jsonschema.Schema) bool {
	return s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil
}

// Missing is the error for arguments that a call lacks.
func Missing(names ...string) *team.Error {
	return team.Errorf(team.InvalidArgument, "%s: missing", strings.Join(names, ", "))
}

// usage lists the arguments, the optional ones with a question mark.
func (c *checker) usage() string {
	if len(c.names) == 0 {
		return "it takes no arguments"
	}
	list := make([]string, len(c.names))
	for i, name := range c.names {
		list[i] = name
		if !slices.Contains(c.required, name) {
			list[i] += "?"
		}
	}
	return "arguments: " + strings.Join(list, ", ")
}
