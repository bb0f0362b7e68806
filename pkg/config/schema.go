package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"agentteam/pkg/team/strictyaml"
)

// Schema returns the JSON Schema of team.yaml, for editors. It covers the keys, the types of values and the allowed
// words; a file that it accepts may still be refused.
func Schema() []byte {
	s := &jsonschema.Schema{Schema: "https://json-schema.org/draft/2020-12/schema", Title: "team.yaml", Description: "The settings of agentteam, and the team that they make.",
		Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: strictyaml.Nothing()}
	for _, row := range settings(new(Config), "") {
		if !row.secret {
			s.Properties[row.name] = row.schema()
			s.PropertyOrder = append(s.PropertyOrder, row.name)
		}
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err.Error()) // it is made of texts and numbers
	}
	return append(data, '\n')
}

// schema returns the schema of the value of s. A key without a value counts as missing.
func (s setting) schema() *jsonschema.Schema {
	none := &jsonschema.Schema{Type: "null"}
	if s.section != nil {
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{strictyaml.SchemaOf(reflect.TypeOf(s.section).Elem()), none}}
	}
	single := &jsonschema.Schema{Types: []string{"string", "number", "boolean", "null"}, Description: s.allowed}
	if words, ok := strings.CutPrefix(s.allowed, oneOfThese(nil)); ok {
		for word := range strings.SplitSeq(words, ", ") {
			single.Enum = append(single.Enum, word)
		}
		single.Enum = append(slices.Clip(single.Enum), nil)
	}
	return single
}
