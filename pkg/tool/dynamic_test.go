package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// echo is a dynamic tool that answers with its arguments.
func echo(_ context.Context, arguments json.RawMessage) (tool.Output, error) {
	return tool.Output{Value: string(arguments)}, nil
}

// A tool of a schema that is known at run time is checked as any other, and gets what the
// model wrote.
func TestDynamic(t *testing.T) {
	for _, tt := range []struct{ schema, arguments, want string }{
		{`{"type":"object","properties":{"id":{"type":"integer"},"note":{"type":"string"}},"required":["id"]}`, `{"id":1234567890123456789}`, `{"id":1234567890123456789}`},
		{`{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`, `{"id":"one"}`, `id: type: one has type \"string\", want \"integer\"`},
		{`{"type":"object","properties":{"id":{"type":"integer"},"a":{}},"required":["id"]}`, ``, `id: missing`},
		{`{"type":"object","properties":{"id":{"type":"integer"}}}`, `{"id":null,"more":null,"rest":""}`, `{"more":null,"rest":""}`},
		{`{"type":"object","properties":{"id":{"type":"integer"}},"additionalProperties":false}`, `{"more":1}`, `more: there is no such argument`},
		{`{"type":"object","patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}`, `{"x-a":"b"}`, `{"x-a":"b"}`},
		{`{"properties":{"at":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"at":null}`, `{"at":null}`},
		{`{"properties":{"at":{"type":["string","null"]}}}`, `{"at":""}`, `{"at":""}`},
		{`{"$defs":{"p":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"]}},"properties":{"p":{"$ref":"#/$defs/p"}}}`, `{"p":{"x":1.50}}`, `{"p":{"x":1.50}}`},
		{`{"$defs":{"p":{"type":"object","required":["x"]}},"properties":{"p":{"$ref":"#/$defs/p"}}}`, `{"p":{}}`, `p`},
		{`{"properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"c":1}`, `anyOf`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"n":{"minimum":3}}}`, `{"n":2}`, `n: minimum`},
		{`true`, `{"any":["thing"]}`, `{"any":["thing"]}`},
	} {
		d, err := tool.Dynamic("far", "about it", json.RawMessage(tt.schema), echo, tool.Traits{ReadOnly: true})
		if err != nil {
			t.Errorf("%s: %v", tt.schema, err)
			continue
		}
		set := newSet(t, d)
		if r := set.Run(t.Context(), tool.Call{Name: "far", Arguments: tt.arguments}); !strings.Contains(r.Content, tt.want) || r.IsError == strings.HasPrefix(tt.want, "{") {
			t.Errorf("%s of %s: %s, want %s", tt.arguments, tt.schema, r.Content, tt.want)
		}
		if !set.Traits("far").Yields || !json.Valid(set.Specs()[0].Schema) || !strings.Contains(string(set.Specs()[0].Schema), `"type":"object"`) || !strings.Contains(string(set.Specs()[0].Schema), `"properties":`) {
			t.Errorf("the model is told %s", set.Specs()[0].Schema)
		}
	}
}

// Its gates see the arguments, too.
func TestGateOfDynamic(t *testing.T) {
	d, err := tool.Dynamic("far", "", json.RawMessage(`{"type":"object"}`), echo,
		tool.UngatedIf(func(arguments json.RawMessage) bool { return string(arguments) == `{"ask":1}` }))
	if err != nil {
		t.Fatal(err)
	}
	set := newSet(t, d).Behind(func(_ context.Context, r tool.Request) error {
		if r.Changes() {
			return team.Errorf(team.PermissionDenied, "not %s", r.Arguments)
		}
		return nil
	})
	if r := set.Run(t.Context(), tool.Call{Name: "far", Arguments: `{"ask":1}`}); r.IsError {
		t.Error(r.Content)
	}
	if r := set.Run(t.Context(), tool.Call{Name: "far", Arguments: `{"do": 1}`}); r.Code != team.PermissionDenied || !strings.Contains(r.Content, `not {\"do\":1}`) {
		t.Error(r.Content)
	}
}

// A schema from elsewhere that is of no use is an error that names the tool.
func TestDynamicRefuses(t *testing.T) {
	for _, schema := range []string{
		``, `{`, `null`, `[]`, `"object"`, `{"type":"array"}`, `{"type":["object","null"]}`, `{"properties":{"a":{"type":7}}}`, `{"properties":{"a":{"pattern":"("}}}`,
		`{"properties":{"a":{"$ref":"#/$defs/gone"}}}`, `{"properties":{"a":{"$ref":"https://elsewhere.example/x.json"}}}`, `{"properties":{"a":{"type":"string","required":true}}}`,
	} {
		if _, err := tool.Dynamic("far", "", json.RawMessage(schema), echo); !errors.Is(err, team.InvalidArgument) || !strings.Contains(err.Error(), "tool far: ") {
			t.Errorf("%s: %v", schema, err)
		}
	}
	for name, opt := range map[string]tool.Option{"hidden": tool.Hidden("a"), "offered": tool.Enum("a", "b"), "stored": tool.Traits{Stored: []string{"a"}}, "described": tool.Describe("a", "b")} {
		if _, err := tool.Dynamic("far", "", json.RawMessage(`{"properties":{"b":{}}}`), echo, opt); !errors.Is(err, team.InvalidArgument) || !strings.Contains(err.Error(), "no argument a") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
