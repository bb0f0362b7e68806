package tool_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

type arguments struct {
	Title    string         `json:"title" jsonschema:"what to do"`
	Priority int            `json:"priority,omitempty"`
	Needs    []string       `json:"needs,omitempty"`
	Assignee *string        `json:"assignee,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
	Steps    []step         `json:"steps,omitempty"`
}

type step struct {
	Do string `json:"do"`
}

// received runs a call of these arguments and returns what the tool was given.
func received(t *testing.T, text string) (got *arguments, r tool.Result) {
	s := newSet(t, tool.New("create", "", func(_ context.Context, in arguments) (tool.Output, error) {
		got = &in
		return tool.Output{Value: "done"}, nil
	}))
	return got, s.Run(t.Context(), tool.Call{Name: "create", Arguments: text})
}

func TestArguments(t *testing.T) {
	nobody := ""
	for text, want := range map[string]arguments{
		`{"title":"迁移 API 🚀 <b>"}`:                                   {Title: "迁移 API 🚀 <b>"},
		`{"title":"a","priority":2.0,"needs":["T-1"]}`:               {Title: "a", Priority: 2, Needs: []string{"T-1"}},
		`{"title":"a","priority":null,"needs":null,"assignee":null}`: {Title: "a"},
		`{"title":"a","assignee":""}`:                                {Title: "a", Assignee: &nobody},
		`{"title":"a","model":"","color":null,"priority":""}`:        {Title: "a"},
		`{"title":"a","steps":[{"do":"x","how":"","by":null}]}`:      {Title: "a", Steps: []step{{Do: "x"}}},
		` {"title":"a","metadata":{"k":null,"l":""}} `:               {Title: "a", Metadata: map[string]any{"k": nil, "l": ""}},
		`{"title":"` + strings.Repeat("长", 64<<10/3) + `"}`:          {Title: strings.Repeat("长", 64<<10/3)},
		// What is encoded once too often.
		`{"title":"[1]","priority":"2","needs":"[\"T-1\"]","steps":["{\"do\":\"[2]\",\"by\":null}"],"metadata":"{\"k\":\"1\"}"}`: {
			Title: "[1]", Priority: 2, Needs: []string{"T-1"}, Steps: []step{{Do: "[2]"}}, Metadata: map[string]any{"k": "1"}},
		`"{\"title\":\"a\"}"`: {Title: "a"},
	} {
		got, r := received(t, text)
		if r.IsError || !reflect.DeepEqual(*got, want) {
			t.Errorf("%.80s: got %+v, %s", text, got, r.Content)
		}
	}
}

func TestArgumentsRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:                            "title: missing",
		`null`:                        "title: missing",
		`{"title":null}`:              "title: missing",
		`{"title":"a","model":"big"}`: "model: there is no such argument",
		`{"title":"a","steps":[{"how":"x","do":"y"}]}`: `steps: validating /items: unexpected additional properties ["how"]`,
		`{"title":"a","Priority":1}`:                   "Priority: there is no such argument",
		`{"title":"a","priority":"high"}`:              `priority: type: high has type "string", want "integer"`,
		`{"title":"a","priority":1.5}`:                 `priority: type: 1.5 has type "number", want "integer"`,
		`{"title":"a","priority":1e30}`:                "priority: number 1e+30 does not fit, want int",
		`{"title":["a"]}`:                              `title: type: [a] has type "array", want "string"`,
		`{"title":"a","needs":["b",3]}`:                `needs: validating /items: type: 3 has type "integer", want "string"`,
		`{"title":"a","priority":"1.5"}`:               `priority: type: 1.5 has type "string", want "integer"`,
		`{"title":"a","needs":"T-1"}`:                  `needs: type: T-1 has type "string", want "array"`,
		`"[1]"`:                                        "the arguments are a JSON string, want an object",
		`["a"]`:                                        "the arguments are a JSON array, want an object",
		`{"title":"a"`:                                 "the arguments are not valid JSON, byte 12 of 12: unexpected end of JSON input",
		`{"title":"a",}`:                               "the arguments are not valid JSON, byte 14 of 14: invalid character '}' looking for beginning of object key string",
		`{"title":"a"} {"title":"b"}`:                  "the arguments are not valid JSON, byte 15 of 27: invalid character '{' after top-level value",
	} {
		got, r := received(t, text)
		if message, _ := failed(t, r, team.InvalidArgument); message != want || got != nil {
			t.Errorf("%s: error %q, want %q; ran: %v", text, message, want, got != nil)
		}
	}
	_, r := received(t, `{"tilte":"a"}`)
	if _, hint := failed(t, r, team.InvalidArgument); hint != "arguments: title, priority?, needs?, assignee?, metadata?, steps?" {
		t.Errorf("hint %q", hint)
	}
	_, r = received(t, `{"title":"a","priority":"`+strings.Repeat("x", 64<<10)+`"}`)
	if message, _ := failed(t, r, team.InvalidArgument); len(message) > 500 {
		t.Errorf("an error quotes %d bytes of the argument", len(message))
	}
}

func TestSchema(t *testing.T) {
	s := newSet(t, tool.New("create", "makes a task", func(context.Context, arguments) (tool.Output, error) { return tool.Output{}, nil }), returns("list", nil, nil),
		tool.New("show", "", func(context.Context, step) (tool.Output, error) { return tool.Output{}, nil }, tool.Hidden("do")))
	specs := s.Specs()
	var got, want any
	if err := json.Unmarshal(specs[0].Schema, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"type":"object","required":["title"],"additionalProperties":false,"properties":{
		"title":{"type":"string","description":"what to do"}, "priority":{"type":"integer"},
		"needs":{"type":"array","items":{"type":"string"}}, "assignee":{"type":"string"},
		"metadata":{"type":"object","additionalProperties":true},
		"steps":{"type":"array","items":{"type":"object","required":["do"],"additionalProperties":false,"properties":{"do":{"type":"string"}}}}}}`), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("schema %s", specs[0].Schema)
	}
	for _, spec := range specs[1:] { // several endpoints refuse an object schema without, and a key that comes twice
		if got := string(spec.Schema); strings.Count(got, `"properties":{}`) != 1 {
			t.Errorf("schema of %s, of which the model sees no argument: %s", spec.Name, got)
		}
	}
}

func TestArgumentOptions(t *testing.T) {
	run := func(_ context.Context, in arguments) (tool.Output, error) { return tool.Output{Value: in.Title}, nil }
	set := newSet(t,
		tool.New("few", "", run, tool.Enum("title", "red", "blue"), tool.Describe("title", "its colour")),
		tool.New("fewer", "", run, tool.Hidden("needs"), tool.Hidden("assignee")),
		tool.New("none", "", run, tool.Unlisted()),
	)
	for _, tt := range []struct{ tool, arguments, want string }{
		{"few", `{"title":"red"}`, "red"},
		{"few", `{"title":"green"}`, "green"}, // offered is not enforced
		{"fewer", `{"title":"a","needs":["b"],"assignee":"c"}`, "a"},
		{"fewer", `{"title":"a","neds":["b"]}`, "neds: there is no such argument"},
		{"none", `{"title":"a"}`, "a"},
	} {
		if r := set.Run(t.Context(), tool.Call{Name: tt.tool, Arguments: tt.arguments}); !strings.Contains(r.Content, tt.want) {
			t.Errorf("%s %s: %s, want %s", tt.tool, tt.arguments, r.Content, tt.want)
		}
	}
	specs := set.Specs()
	if !strings.Contains(string(specs[0].Schema), `"enum":["red","blue"]`) || !strings.Contains(string(specs[0].Schema), `"description":"its colour"`) {
		t.Errorf("the model is told %s", specs[0].Schema)
	}
	if s := string(specs[1].Schema); strings.Contains(s, "needs") || strings.Contains(s, "assignee") || len(specs) != 2 {
		t.Errorf("the model is told of %d tools: %s", len(specs), s)
	}
	defer func() {
		if recover() == nil {
			t.Error("an option for an argument that is not there passes")
		}
	}()
	tool.New("broken", "", run, tool.Hidden("colour"))
}
