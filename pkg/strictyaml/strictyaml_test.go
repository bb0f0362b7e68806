package strictyaml_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"go.yaml.in/yaml/v4"

	"agentteam/pkg/strictyaml"
	"agentteam/pkg/team"
)

// recipe is a small format that uses all of a Reader.
type recipe struct {
	title string
	steps []string
	notes any
}

func read(src string) (got recipe, err error) {
	r := strictyaml.Reader{File: "r.yaml", Files: "recipes"}
	root := r.Document([]byte(src))
	if root == nil {
		return got, r.Err()
	}
	r.Object(root, "a recipe", map[string]func(*yaml.Node){
		"title": func(v *yaml.Node) { got.title = r.Text(v, "title") },
		"steps": func(v *yaml.Node) {
			for _, step := range r.Items(v, "steps") {
				got.steps = append(got.steps, r.Text(step, "a step"))
			}
		},
		"notes": func(v *yaml.Node) {
			got.notes = r.Value(v, func(text *yaml.Node) any { return "<" + r.Text(text, "a note") + ">" })
		},
	})
	return got, r.Err()
}

func TestReader(t *testing.T) {
	got, err := read("title: 1.10\nsteps: [boil, '']\nnotes: {a: [1, 0.5, true, ~, x], b: {}, c: [], d: 2026-01-01}\n")
	want := recipe{"1.10", []string{"boil", ""}, map[string]any{
		"a": []any{1, 0.5, true, nil, "<x>"}, "b": map[string]any{}, "c": []any{}, "d": "<2026-01-01>"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read = %+v, %v\nwant %+v", got, err, want)
	}
}

// Every fault is told with its place and what is allowed there, and of several the
// first.
func TestReaderRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ src, want string }{
		"no YAML":          {"title: x\nsteps:\n  - [\n", "r.yaml:4:1: did not find expected node content"},
		"out of line":      {"title: x\nsteps:\n  - boil\n pour: cup\n", "r.yaml:4:2: did not find expected key"},
		"out of its list":  {"steps:\n  - [boil, stir]\n   - pour\ntitle: x\n", "r.yaml:3:4: did not find expected '-' indicator"},
		"no colon":         {"title: x\nsteps\nnotes: x\n", "r.yaml:2:1: could not find expected ':'"},
		"no closing quote": {"title: x\nsteps:\n  - \"boil\n  - stir\n", "r.yaml:3:5: found unexpected end of stream"},
		"tab":              {"title: x\nsteps:\n\t- boil\n", "r.yaml:3:1: found character that cannot start any token"},
		"second colon":     {"title: tea: green\n", "r.yaml:1:11: mapping values are not allowed in this context"},
		"nothing to alias": {"title: x\nsteps: [*a]\n", "r.yaml:2:9: unknown anchor 'a' referenced"},
		"two documents":    {"title: x\n---\ntitle: y\n", "r.yaml:2:1: recipes are one document each; another one begins here"},
		"second broken":    {"title: x\n---\n[\n", "r.yaml:4:1: did not find expected node content"},
		"no YAML, no line": {"title: \x01", "r.yaml:1:1: control characters are not allowed (value: 1)"},
		"no mapping":       {"- x", "r.yaml:1:1: a recipe must be a mapping with the keys notes, steps, title"},
		"unknown key":      {"title: x\nstep: []", `r.yaml:2:1: unknown key "step" in a recipe; allowed: notes, steps, title`},
		"key twice":        {"title: x\ntitle: y", `r.yaml:2:1: the key "title" comes twice`},
		"key no text":      {"? [a]\n: x", "r.yaml:1:3: a key must be plain text"},
		"merge":            {"title: x\n<<: {}", "r.yaml:2:1: a key must be plain text"},
		"no list":          {"steps: x", "r.yaml:1:8: steps must be a list with at least one entry"},
		"empty list":       {"steps: []", "r.yaml:1:8: steps must be a list with at least one entry"},
		"text a list":      {"steps: [[x]]", "r.yaml:1:9: a step must be a text"},
		"text null":        {"title: ~", "r.yaml:1:8: title must be a text"},
		"alias":            {"title: &a x\nsteps: [*a]", "r.yaml:2:9: aliases are not understood in recipes"},
		"alias of itself":  {"notes: &a [*a]", "r.yaml:1:12: aliases are not understood in recipes"},
		"inner key twice":  {"notes: [{a: 1, a: 2}]", `r.yaml:1:16: the key "a" comes twice`},
		"not for JSON":     {"notes: [.inf]", "r.yaml:1:9: .inf has no place in JSON"},
		"no number":        {"notes: [!!int x]", `r.yaml:1:9: "x" cannot be read as !!int`},
		"two faults":       {"title: []\nsteps: []", "r.yaml:1:8: title must be a text"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(tt.src)
			if !errors.Is(err, team.InvalidArgument) || err.Error() != tt.want {
				t.Errorf("read: %v (%s)\nwant  %s", err, team.CodeOf(err), tt.want)
			}
		})
	}
}

// Whoever knows more than the shape says what is wrong in its own words.
func TestRefuse(t *testing.T) {
	r := strictyaml.Reader{File: "r.yaml"}
	r.Refuse(strictyaml.Start, nil)
	if r.Err() != nil {
		t.Errorf("nothing was wrong, yet Err = %v", r.Err())
	}
	r.Refuse(&yaml.Node{}, team.Errorf(team.NotFound, "no such pot").WithHint("use the pan"))
	r.Fail(&yaml.Node{Line: 7, Column: 3}, "no such pan")
	err := r.Err()
	if err == nil || err.Error() != "r.yaml:1:1: no such pot" || team.CodeOf(err) != team.NotFound || team.HintOf(err) != "use the pan" {
		t.Errorf("Err = %v (%s, hint %q), want the first fault with its code and hint, at a place that exists", err, team.CodeOf(err), team.HintOf(err))
	}
}

func ExampleReader() {
	r := strictyaml.Reader{File: "tea.yaml", Files: "recipes"}
	root := r.Document([]byte("title: Tea\nsteps:\n- boil\n- pour: cup\n"))
	if root == nil {
		fmt.Println(r.Err())
		return
	}
	var title string
	r.Object(root, "a recipe", map[string]func(*yaml.Node){
		"title": func(v *yaml.Node) { title = r.Text(v, "title") },
		"steps": func(v *yaml.Node) {
			for _, step := range r.Items(v, "steps") {
				r.Text(step, "a step")
			}
		},
	})
	fmt.Println(title)
	fmt.Println(r.Err())
	// Output:
	// Tea
	// tea.yaml:4:3: a step must be a text
}
