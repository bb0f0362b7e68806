package model

import (
	"encoding/json"
	"slices"
)

var noArguments = json.RawMessage(`{"type":"object","properties":{}}`)

// schema returns the schema of a tool's arguments as the endpoint takes it; nil is
// to be left out. A schema that is no JSON object is sent as it is.
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
	s = e.cleaned(s)
	if e.SchemaFull && bareObject(s) {
		return nil
	}
	raw, _ = json.Marshal(s) // it was JSON; keys come out sorted, so always alike
	return raw
}

// cleaned returns the schema s, and those in it, without what the endpoint refuses.
func (e *encoding) cleaned(s map[string]any) map[string]any {
	clean := map[string]any{}
	for k, v := range s {
		switch v := v.(type) {
		case map[string]any:
			clean[k] = v
			if k == "properties" || k == "$defs" || k == "definitions" || k == "patternProperties" {
				clean[k] = e.each(v)
			} else if k == "items" || k == "additionalProperties" || k == "not" {
				clean[k] = e.cleaned(v)
			}
		case []any:
			clean[k] = v
			if k == "anyOf" || k == "oneOf" || k == "allOf" || k == "prefixItems" {
				clean[k] = e.all(v)
			}
		default:
			clean[k] = v
		}
	}
	for _, k := range e.SchemaDrop {
		delete(clean, k)
	}
	if e.SchemaOneType {
		oneType(clean)
	}
	if e.SchemaFull {
		withoutBare(clean)
	}
	return clean
}

func (e *encoding) each(named map[string]any) map[string]any {
	clean := make(map[string]any, len(named))
	for name, v := range named {
		if s, ok := v.(map[string]any); ok {
			clean[name] = e.cleaned(s)
			continue
		}
		clean[name] = v
	}
	return clean
}

func (e *encoding) all(list []any) []any {
	clean := slices.Clone(list)
	for i, v := range clean {
		if s, ok := v.(map[string]any); ok {
			clean[i] = e.cleaned(s)
		}
	}
	return clean
}

// oneType makes a list of types the one that is not null, and says so in the word
// that OpenAPI has for it.
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

// withoutBare takes the properties of s out that are objects without properties.
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

// bareObject reports whether s is an object of which no property is known.
func bareObject(s map[string]any) bool {
	properties, _ := s["properties"].(map[string]any)
	return s["type"] == "object" && len(properties) == 0
}
