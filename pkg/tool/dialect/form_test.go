package dialect_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
	"agentteam/pkg/tool/dialect"
)

type none struct{}

func returns(name string) tool.Tool {
	return tool.New(name, "about "+name, func(context.Context, none) (tool.Output, error) { return tool.Output{}, nil })
}

func newSet(t *testing.T, tools ...tool.Tool) *tool.Set {
	t.Helper()
	s, err := tool.NewSet(nil, tools...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type moveArgs struct {
	FileName string     `json:"file_name" jsonschema:"what to move"`
	Places   []placeArg `json:"places,omitempty"`
	Secret   bool       `json:"secret,omitempty"`
}

type placeArg struct {
	At string `json:"at"`
}

// A form has its own names, in its schema, its calls, its errors and its results; the tool's
// own names are taken as well, and each call of the tool is checked.
func TestForm(t *testing.T) {
	var ran []string
	move := tool.New("move_file", "Move a file; see look_up.", func(_ context.Context, in moveArgs) (tool.Output, error) {
		ran = append(ran, fmt.Sprint(in))
		if in.FileName == "gone" {
			return tool.Output{}, team.Errorf(team.NotFound, "file_name: gone").WithHint("move_file takes what is there")
		}
		return tool.Output{Value: map[string]any{"file_name": in.FileName, "n": len(ran)}}, nil
	}, tool.Hidden("secret"), tool.Traits{Writes: true})
	tools := dialect.Translate([]tool.Tool{move}, map[string][]dialect.Form{"move_file": {{
		Name: "Move", Names: map[string][]string{"file_name": {"file", "path"}, "places.at": {"where"}},
		Own:      []dialect.Argument{{Name: "twice", Type: "boolean", Description: "do it two times", Required: true}},
		Optional: []string{"places.where"},
		Unfold: func(given map[string]any) {
			if name, ok := given["file"].([]any); ok {
				given["file"] = name[0]
			}
		},
		Calls: func(_ context.Context, given map[string]any) ([]map[string]any, error) {
			twice := given["twice"] == true
			if delete(given, "twice"); twice {
				return []map[string]any{{"file_name": "first"}, given}, nil
			}
			return []map[string]any{given}, nil
		},
		Show: dialect.Renamed(map[string]string{"file_name": "file"}),
	}}})
	s := newSet(t, tools...)
	if !s.Traits("Move").Writes || !tools[0].Answers("Move") || tools[0].Answers("Mv") {
		t.Error("the form is not of its tool")
	}
	for _, tt := range []struct {
		arguments, ran, shows string
		code                  team.Code
	}{
		{`{"file":"a","twice":false}`, "[{a [] false}]", `{"file":"a","n":1}`, ""},
		{`{"path":"a","twice":false,"places":[{"where":"b"},{"at":"c"},{}],"secret":true}`, "", "at", team.InvalidArgument}, // the tool's own check
		{`{"file_name":"a","twice":false,"places":[{"where":"b"},{"at":"c"}],"secret":true}`, "[{a [{b} {c}] true}]", `"n":1`, ""},
		{`{"file":["a"],"twice":true}`, "[{first [] false} {a [] false}]", `{"file":"a","n":2}`, ""},
		{`{"file":"gone","twice":true}`, "[{first [] false} {gone [] false}]", "a part of what was asked for is done; then: file: gone", team.NotFound},
		{`{}`, "", "file, twice: missing", team.InvalidArgument},
		{`{"file":"a","path":"b","twice":false}`, "", "file and path are names of one argument", team.InvalidArgument},
		{`{"file":"a","twice":"no"}`, "", "twice: ", team.InvalidArgument},
		{`{"file":"a","twice":false,"target":"x"}`, "", "target: there is no such argument", team.InvalidArgument},
	} {
		ran = nil
		r := s.Run(t.Context(), tool.Call{Name: "Move", Arguments: tt.arguments})
		if got := fmt.Sprint(ran); r.Code != tt.code || !strings.Contains(r.Content, tt.shows) || got != tt.ran && (tt.ran != "" || len(ran) > 0) {
			t.Errorf("%s: %s %s, ran %s", tt.arguments, r.Code, r.Content, got)
		}
	}
	ran = nil
	if r := s.Run(t.Context(), tool.Call{Name: "move_file", Arguments: `{"file":"a","twice":false}`}); r.Code != team.InvalidArgument {
		t.Errorf("the tool takes the names of its form: %s", r.Content)
	}
}

// A gate sees each call of the tool, by the tool's names, and what it refuses is not run.
func TestGateOfForm(t *testing.T) {
	tools := dialect.Translate([]tool.Tool{tool.New("move_file", "", func(context.Context, moveArgs) (tool.Output, error) { return tool.Output{}, nil },
		tool.Traits{Stored: []string{"file_name"}})}, map[string][]dialect.Form{"move_file": {{Name: "Move", Names: map[string][]string{"file_name": {"file"}},
		Calls: func(_ context.Context, given map[string]any) ([]map[string]any, error) {
			return []map[string]any{{"file_name": "first"}, given}, nil
		}}}})
	asked := ""
	set := newSet(t, tools...).Behind(func(_ context.Context, r tool.Request) error {
		asked += fmt.Sprintf("%s=%s%s%v ", r.Called, r.Tool, r.Arguments, r.Traits.Stored)
		if strings.Contains(string(r.Arguments), "second") {
			return tool.With(team.Errorf(team.PermissionDenied, "not file_name second"), tool.Effects{Await: &team.Await{Plan: "asked"}})
		}
		return nil
	})
	r := set.Run(t.Context(), tool.Call{Name: "Move", Arguments: `{"file":"second"}`})
	if r.Code != team.PermissionDenied || !strings.Contains(r.Content, "a part of what was asked for is done; then: not file second") {
		t.Error(r.Content)
	}
	if r.Effects.Await == nil || r.Effects.Await.Plan != "asked" {
		t.Errorf("the agent waits for %v, not for what the gate asked", r.Effects.Await)
	}
	if want := `Move=move_file{"file_name":"first"}[file_name] Move=move_file{"file_name":"second"}[file_name] `; asked != want {
		t.Errorf("asked about %s, want %s", asked, want)
	}
	if got := set.Traits("Move").Stored; fmt.Sprint(got) != "[file file_name]" {
		t.Errorf("the arguments in store are %v", got)
	}
}

// The model is told of each tool in one dialect, and may call it in all.
func TestSpeaking(t *testing.T) {
	read := tool.New("read_file", "See write_file.", func(context.Context, moveArgs) (tool.Output, error) { return tool.Output{Value: "ok"}, nil })
	claim := returns("claim_task")
	s := newSet(t, append(dialect.Translate([]tool.Tool{read, claim}, map[string][]dialect.Form{
		"read_file": {{Name: "Read", Dialect: team.Claude, Names: map[string][]string{"file_name": {"file_path"}}}},
	}), returns("TeamCollect"), returns("own_thing"))...)
	told := func(s *tool.Set) (all string) {
		for _, spec := range s.Specs() {
			all += fmt.Sprintf("%s (%s) ", spec.Name, spec.Description)
			if strings.HasPrefix(strings.ToLower(spec.Name), "read") {
				all += string(spec.Schema) + " "
			}
		}
		return all
	}
	native, claude := told(s.Speaking(team.Native)), told(s.Speaking(team.Claude))
	for _, want := range []string{"read_file (See write_file.)", `"file_name"`, "own_thing"} {
		if !strings.Contains(native, want) || strings.Contains(native, "TeamCollect") || strings.Contains(native, "claim_task") {
			t.Errorf("native: %s, want %s", native, want)
		}
	}
	for _, want := range []string{"Read (See Write.)", `"required":["file_path"]`, "TeamCollect", "own_thing"} {
		if !strings.Contains(claude, want) || strings.Contains(claude, "claim_task") {
			t.Errorf("claude: %s, want %s", claude, want)
		}
	}
	for call, arguments := range map[string]string{"read_file": `{"file_name":"a"}`, "Read": `{"file_path":"a"}`} {
		for _, s := range []*tool.Set{s, s.Speaking(team.Claude)} {
			if r := s.Run(t.Context(), tool.Call{Name: call, Arguments: arguments}); r.IsError {
				t.Errorf("%s: %s", call, r.Content)
			}
		}
	}
	if r := s.Speaking(team.Claude).Run(t.Context(), tool.Call{Name: "x"}); r.Code != team.NotFound || !strings.Contains(r.Content, `"tools: Read, TeamCollect, own_thing"`) {
		t.Error(r.Content)
	}
}
