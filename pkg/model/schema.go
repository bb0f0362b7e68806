package model

import (
	"encoding/json"
	"slices"
)

var noArguments = json.RawMessage(`{"type":"object","properties":{}}`)

// schema returns the schema of a tool's arguments in the form that the endpoint takes; nil is left out. It leaves a
// schema unchanged that is not a JSON object.
func (e *encoding) schema(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		raw = noArguments // null is refused
	}
	if len(e.SchemaDrop) == 0 && !e.SchemaOneType && !e.SchemaFull {
		return raw
	}
	var s map[string]any
	if json.Unmarshal(raw, &s) != nil {
		return raw
	}
	e.clean(s)
	if e.SchemaFull && bareObject(s) {
		return nil
	}
	raw, _ = json.Marshal(s) // it was JSON; keys come out sorted, so always alike
	return raw
}

// clean removes from the schema s, and those in it, everything that the endpoint refuses. It leaves other values: true
// and false are schemas too.
func (e *encoding) clean(schema any) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	for k, v := range s {
		switch k {
		case "items", "additionalProperties", "not":
			e.clean(v)
		case "properties", "$defs", "definitions", "patternProperties":
			named, _ := v.(map[string]any)
			for _, inner := range named {
				e.clean(inner)
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			list, _ := v.([]any)
			for _, inner := range list {
				e.clean(inner)
			}
		}
	}
	for _, k := range e.SchemaDrop {
		delete(s, k)
	}
	if e.SchemaOneType {
		oneType(s)
	}
	if e.SchemaFull {
		withoutBare(s)
	}
}

// oneType replaces a list of types with the one that is not null, and marks null with OpenAPI's nullable.
func oneType(s map[string]any) {
	types, ok := s["type"].([]any)
	if !ok {
		return
	}
	if slices.Contains(types, any("null")) {
		s["nullable"] = true
	}
	i := slices.IndexFunc(types, func(t any) bool { return t != "null" })
	if i < 0 {
		i = 0
	}
	s["type"] = types[i]
}

// withoutBare removes the properties of s that are objects without properties.
func withoutBare(s map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	gone := []string{}
	for name, v := range properties {
		if p, ok := v.(map[string]any); ok && bareObject(p) {
			gone = append(gone, name)
			delete(properties, name)
		}
	}
	required, _ := s["required"].([]any)
	required = slices.DeleteFunc(slices.Clone(required), func(name any) bool {
		text, ok := name.(string)
		return ok && slices.Contains(gone, text)
	})
	if _, has := s["required"]; has {
		s["required"] = required
	}
	if len(required) == 0 {
		delete(s, "required")
	}
}

// bareObject reports whether s is an object without known properties.
func bareObject(s map[string]any) bool {
	properties, _ := s["properties"].(map[string]any)
	return s["type"] == "object" && len(properties) == 0
}
