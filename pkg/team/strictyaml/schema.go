package strictyaml

import (
	"cmp"
	"encoding"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// SchemaOf returns the JSON Schema of type t, for editors. It covers the tags and the allowed strings, not the rules of
// methods. It panics where Decode does.
func SchemaOf(t reflect.Type) *jsonschema.Schema {
	if t.Kind() == reflect.Pointer {
		return SchemaOf(t.Elem())
	}
	s := whole(t)
	if _, short := reflect.New(t).Interface().(encoding.TextUnmarshaler); short && s.Type != "string" {
		if s.Properties == nil && s.Items == nil && s.AdditionalProperties == nil {
			return anyText()
		}
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, anyText()}}
	}
	return s
}

// anyText returns the schema of a single value, whose type YAML infers.
func anyText() *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}}
}

// whole returns the schema of a value that is not in its short form.
func whole(t reflect.Type) *jsonschema.Schema {
	switch k := t.Kind(); {
	case t == reflect.TypeFor[Node](), k == reflect.Interface:
		return new(jsonschema.Schema)
	case t == reflect.TypeFor[time.Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: `^([0-9.]+(ns|us|µs|ms|s|m|h))+$`}
	case k == reflect.String:
		s := &jsonschema.Schema{Type: "string"}
		if enum, ok := reflect.Zero(t).Interface().(interface{ Values() []string }); ok {
			s.Enum = anyOf(enum.Values())
		}
		return s
	case k == reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case k == reflect.Float64, k == reflect.Float32:
		return &jsonschema.Schema{Type: "number"}
	case k == reflect.Map:
		return &jsonschema.Schema{Type: "object", AdditionalProperties: SchemaOf(t.Elem())}
	case k == reflect.Slice:
		return &jsonschema.Schema{Type: "array", Items: SchemaOf(t.Elem())}
	case k == reflect.Struct:
		return mapping(t)
	}
	return &jsonschema.Schema{Type: "integer"}
}

// mapping returns the schema of a struct.
func mapping(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object"}
	for f := range t.Fields() {
		key, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if option == "inline" {
			s = joined(s, mapping(f.Type))
		}
		if key == "" {
			continue
		}
		if s.Properties == nil {
			s.Properties = map[string]*jsonschema.Schema{}
			s.AdditionalProperties = Nothing()
		}
		p := SchemaOf(f.Type)
		bound(p, f.Tag)
		if what := f.Tag.Get("required"); what != "" {
			s.Required, p.Description = append(s.Required, key), what
		}
		s.Properties[key] = p
	}
	return s
}

// joined returns the schema with the keys of both.
func joined(s, inline *jsonschema.Schema) *jsonschema.Schema {
	if s.Properties == nil {
		return inline
	}
	maps.Copy(s.Properties, inline.Properties)
	s.Required = append(s.Required, inline.Required...)
	return s
}

// Nothing returns the schema that no value fulfils.
func Nothing() *jsonschema.Schema { return &jsonschema.Schema{Not: new(jsonschema.Schema)} }

// bound sets the limits of a tag in p.
func bound(p *jsonschema.Schema, tag reflect.StructTag) {
	if p.Type == "integer" || p.Type == "number" {
		p.Minimum, p.Maximum = limit(tag.Get("minimum")), limit(tag.Get("maximum"))
	}
	if tag.Get("minLength") != "" && p.Type == "string" && p.Enum == nil {
		p.MinLength = new(1)
	}
	if tag.Get("minItems") != "" && p.Type == "array" {
		p.MinItems = new(1)
	}
}

func limit(text string) *float64 {
	x, err := strconv.ParseFloat(cmp.Or(text, "-"), 64)
	if err != nil {
		return nil
	}
	return &x
}

func anyOf(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}
