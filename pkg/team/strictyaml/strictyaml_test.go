package strictyaml_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"agentteam/pkg/team"
	"agentteam/pkg/team/strictyaml"
)

// recipe is a small format that uses all of the package.
type recipe struct {
	Title  string            `yaml:"title" required:"what it is called" minLength:"1"`
	Steps  []step            `yaml:"steps" minItems:"1"`
	Serves int               `yaml:"serves" minimum:"1" maximum:"12"`
	Price  *float64          `yaml:"price" minimum:"0"`
	Rest   time.Duration     `yaml:"rest"`
	Boil   time.Duration     `yaml:"boil" minimum:"1s" maximum:"1h"`
	Vegan  bool              `yaml:"vegan"`
	Pot    pot               `yaml:"pot"`
	Spices map[string]string `yaml:"spices"`
	Notes  any               `yaml:"notes"`
	Later  strictyaml.Node   `yaml:"later"`
	Tags   words             `yaml:"tags"`
	Self   int               // is not decoded
}

type step struct {
	Do   string `yaml:"do" required:"what is to be done"`
	With string `yaml:"with"`
}

func (s *step) UnmarshalText(text []byte) error {
	s.Do = string(text)
	return nil
}

func (r recipe) Validate() error {
	for i, s := range r.Steps {
		if s.With == "hands" {
			return strictyaml.At(team.Errorf(team.NotFound, "there is no soap").WithHint("buy some"), "steps", i, "with")
		}
	}
	if r.Spices["salt"] == "much" {
		return strictyaml.At(errors.New("too salty"), "spices", strictyaml.Key("salt"))
	}
	return nil
}

type pot string

func (pot) Values() []string { return []string{"pan", "wok"} }

type words []string

func (w *words) UnmarshalText(text []byte) error {
	if *w = strings.Fields(string(text)); len(*w) == 0 {
		return errors.New("want words")
	}
	return nil
}

func read(src string, more ...func(*strictyaml.Format)) (got recipe, err error) {
	f := strictyaml.Format{File: "r.yaml", Kind: "recipe"}
	for _, change := range more {
		change(&f)
	}
	_, err = f.Decode([]byte(src), &got)
	return got, err
}

func TestDecode(t *testing.T) {
	got, err := read("title: 1.10\nsteps: [boil, '', {do: stir, with: spoon}]\nserves: 4\nprice: 0\nrest: 90s\nboil: 1h\nvegan: true\npot: wok\nspices: {salt: 2}\ntags: a b\n" +
		"notes: {a: [1, 0.5, true, ~, x], b: {}, c: [], d: 2026-01-01}\nlater: {a: 1}\n")
	later := map[string]int{}
	if err := got.Later.Decode(&later); err != nil || later["a"] != 1 || got.Later.Origin() != "r.yaml:12" || !got.Later.Has("a") || got.Later.Has("a", "b") {
		t.Errorf("later: %v, %v, from %s", later, err, got.Later.Origin())
	}
	got.Later = strictyaml.Node{}
	want := recipe{Title: "1.10", Steps: []step{{Do: "boil"}, {}, {"stir", "spoon"}}, Serves: 4, Price: new(float64), Rest: 90 * time.Second, Boil: time.Hour, Vegan: true, Pot: "wok",
		Spices: map[string]string{"salt": "2"}, Tags: words{"a", "b"},
		Notes: map[string]any{"a": []any{1, 0.5, true, nil, "x"}, "b": map[string]any{}, "c": []any{}, "d": "2026-01-01"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read = %+v, %v\nwant %+v", got, err, want)
	}
}

// Every fault is reported with its place and what is meant or allowed there, and of
// several the first.
func TestDecodeRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ src, want string }{
		"no YAML":           {"title: x\nsteps:\n  - [\n", "r.yaml:4:1: did not find expected node content"},
		"out of line":       {"title: x\nsteps:\n  - boil\n pour: cup\n", "r.yaml:4:2: did not find expected key"},
		"out of its list":   {"steps:\n  - [boil, stir]\n   - pour\ntitle: x\n", "r.yaml:3:4: did not find expected '-' indicator"},
		"no colon":          {"title: x\nsteps\nnotes: x\n", "r.yaml:2:1: could not find expected ':'"},
		"no closing quote":  {"title: x\nsteps:\n  - \"boil\n  - stir\n", "r.yaml:3:5: found unexpected end of stream"},
		"tab":               {"title: x\nsteps:\n\t- boil\n", "r.yaml:3:1: found character that cannot start any token"},
		"second colon":      {"title: tea: green\n", "r.yaml:1:11: mapping values are not allowed in this context"},
		"nothing to alias":  {"title: x\nsteps: [*a]\n", "r.yaml:2:9: unknown anchor 'a' referenced"},
		"two documents":     {"title: x\n---\ntitle: y\n", "r.yaml:2:1: there may be one document only; another one begins here"},
		"second broken":     {"title: x\n---\n[\n", "r.yaml:4:1: did not find expected node content"},
		"control character": {"title: 好\x01", "r.yaml:1:9: here is the control character U+0001; remove it"},
		"not UTF-8":         {"# 好\ntitle: \xff\n", "r.yaml:2:8: this is not UTF-8"},
		"no mapping":        {"x", "r.yaml:1:1: the recipe must be a mapping; keys: title, steps, serves, price, rest, boil, vegan, pot, spices, notes, later, tags"},
		"nothing":           {"# no\n", "r.yaml:1:1: the recipe lacks the key title: what it is called"},
		"null alone":        {"~", "r.yaml:1:1: the recipe lacks the key title: what it is called"},
		"key missing":       {"title: x\nsteps:\n- {with: y}\n", "r.yaml:3:3: an entry of steps lacks the key do: what is to be done"},
		"unknown key":       {"title: x\nstep: []", `r.yaml:2:1: unknown key "step" in the recipe; did you mean steps?`},
		"like no key":       {"title: x\nsteps: [{how: x}]", `r.yaml:2:10: unknown key "how" in an entry of steps; allowed: do, with`},
		"name of a field":   {"title: x\nSelf: 1", `r.yaml:2:1: unknown key "Self" in the recipe; allowed: title, steps, serves, price, rest, boil, vegan, pot, spices, notes, later, tags`},
		"key twice":         {"title: x\ntitle: y", `r.yaml:2:1: the key "title" comes twice`},
		"key no text":       {"? [a]\n: x", "r.yaml:1:3: a key must be plain text"},
		"merge":             {"title: x\n<<: {}", "r.yaml:2:1: a key must be plain text"},
		"no list":           {"steps: {}", "r.yaml:1:8: steps must be a list with at least one entry"},
		"no list, of any":   {"tags: {}", "r.yaml:1:7: tags must be a list"},
		"text for a list":   {"steps: x", "r.yaml:1:8: steps must be a list: [x]"},
		"empty list":        {"steps: []", "r.yaml:1:8: steps must be a list with at least one entry"},
		"text a list":       {"title: [x]", "r.yaml:1:8: title must be a text"},
		"text null":         {"title: ~", "r.yaml:1:8: title has no value: it is what it is called"},
		"text blank":        {"title: ' '", "r.yaml:1:8: title is empty: it is what it is called"},
		"null":              {"title: x\nvegan:\n", "r.yaml:2:7: vegan has no value; give it one or leave it out"},
		"null in a list":    {"steps: [~]", "r.yaml:1:9: an entry of steps has no value; give it one or leave it out"},
		"null in a mapping": {"spices: {a: }", "r.yaml:1:13: spices.a has no value; give it one or leave it out"},
		"alias":             {"title: &a x\nsteps: [*a]", "r.yaml:2:9: a YAML alias such as *x is not understood in a recipe"},
		"alias of itself":   {"notes: &a [*a]", "r.yaml:1:12: a YAML alias such as *x is not understood in a recipe"},
		"inner key twice":   {"notes: [{a: 1, a: 2}]", `r.yaml:1:16: the key "a" comes twice`},
		"not for JSON":      {"notes: [.inf]", "r.yaml:1:9: .inf has no place in JSON"},
		"no number":         {"notes: [!!int x]", `r.yaml:1:9: "x" cannot be read as !!int`},
		"number a text":     {"serves: four", `r.yaml:1:9: serves: "four" is not a whole number from 1 to 12`},
		"number too large":  {"serves: 13", `r.yaml:1:9: serves: "13" is not a whole number from 1 to 12`},
		"number a mapping":  {"serves: {a: 1}", "r.yaml:1:9: serves must be a whole number from 1 to 12"},
		"number infinite":   {"price: inf", `r.yaml:1:8: price: "inf" is not a number, 0 or more`},
		"number too small":  {"price: -1", `r.yaml:1:8: price: "-1" is not a number, 0 or more`},
		"no duration":       {"rest: 5", `r.yaml:1:7: rest: "5" is not a duration such as 500ms or 2m`},
		"back in time":      {"rest: -5s", `r.yaml:1:7: rest: "-5s" is not a duration such as 500ms or 2m`},
		"too long":          {"boil: 2h", `r.yaml:1:7: boil: "2h" is not a duration such as 500ms or 2m from 1s to 1h`},
		"no yes, no no":     {"vegan: perhaps", "r.yaml:1:8: vegan must be true or false"},
		"nearly allowed":    {"pot: pam", `r.yaml:1:6: pot: "pam" is not known; did you mean pan?`},
		"not allowed":       {"pot: 1", `r.yaml:1:6: pot: "1" is not known; allowed: pan, wok`},
		"type's own":        {"tags: ''", "r.yaml:1:7: tags: want words"},
		"check, at a key":   {"title: x\nspices: {salt: much}", "r.yaml:2:10: too salty"},
		"two faults":        {"title: []\nsteps: []", "r.yaml:1:8: title must be a text"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(tt.src)
			if !errors.Is(err, team.InvalidArgument) || err.Error() != tt.want {
				t.Errorf("read: %v (%s)\nwant  %s", err, team.CodeOf(err), tt.want)
			}
		})
	}
}

// What a type finds wrong keeps its code and hint.
func TestValidate(t *testing.T) {
	_, err := read("title: x\nsteps: [boil, {do: stir, with: hands}]\n")
	if err == nil || err.Error() != "r.yaml:2:32: there is no soap" || team.CodeOf(err) != team.NotFound || team.HintOf(err) != "buy some" {
		t.Errorf("%v (%s, hint %q)", err, team.CodeOf(err), team.HintOf(err))
	}
}

func TestFormat(t *testing.T) {
	quoted := func(f *strictyaml.Format) { f.Quoted = true }
	for src, want := range map[string]string{
		"title: 1.10":            "r.yaml:1:8: title must be a text; put 1.10 in quotes",
		"notes: {a: 2026-01-01}": "r.yaml:1:12: notes.a must be a text; put 2026-01-01 in quotes",
		"title: '1.10'":          "",
	} {
		if _, err := read(src, quoted); err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("quoted %q: %v, want %s", src, err, want)
		}
	}
	var unknown []string
	open := func(f *strictyaml.Format) {
		f.Skip, f.Unknown = 2, func(err error) { unknown = append(unknown, err.Error()) }
	}
	got, err := read("color: red\ntitle: x\nsteps:\n- {do: y, titel: z}\nvegan:\n", open)
	want := []string{`r.yaml:3:1: unknown key "color" in the recipe; allowed: `, `r.yaml:6:11: unknown key "titel" in an entry of steps; allowed: do, with`}
	if err != nil || got.Title != "x" || len(unknown) != 2 || !strings.HasPrefix(unknown[0], want[0]) || unknown[1] != want[1] {
		t.Errorf("open: %+v, %v, %q", got, err, unknown)
	}
}

func ExampleFormat_Decode() {
	type tea struct {
		Title string   `yaml:"title" required:"what it is called"`
		Steps []string `yaml:"steps"`
	}
	f := strictyaml.Format{File: "tea.yaml", Kind: "recipe"}
	var t tea
	_, err := f.Decode([]byte("title: Tea\nsteps:\n- boil\n- pour\n"), &t)
	fmt.Println(t, err)
	_, err = f.Decode([]byte("title: Tea\nstops:\n- boil\n"), &t)
	fmt.Println(err)
	// Output:
	// {Tea [boil pour]} <nil>
	// tea.yaml:2:1: unknown key "stops" in the recipe; did you mean steps?
}

// A format reports all faults when it is to, in the order of their places, and keeps what is right.
// Faults of several files are not mixed.
func TestFaultsOfFiles(t *testing.T) {
	want := []string{"without a place", "a.yaml:2:1: x", "a.yaml:10:1: y", "b.yaml:1:9: x", "b.yaml:3:1: y"}
	var all []error
	at := func(file string, line, column int, text string) error {
		return &strictyaml.Fault{File: file, Line: line, Column: column, Err: errors.New(text)}
	}
	all = append(all, at("b.yaml", 3, 1, "y"), at("a.yaml", 10, 1, "y"), errors.New(want[0]), at("b.yaml", 1, 9, "x"), at("a.yaml", 2, 1, "x"))
	var got []string
	for _, fault := range strictyaml.Faults(errors.Join(all...)) {
		got = append(got, fault.Error())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAllFaults(t *testing.T) {
	var v struct {
		Name  string         `yaml:"name" required:"its name"`
		Count *int           `yaml:"count" minimum:"1"`
		List  []int          `yaml:"list"`
		Map   map[string]int `yaml:"map"`
	}
	const src = "count: 0\nlist: [1, x, 3, y]\nmap: {a: 1, b: c, a: 2}\nother: 1\n"
	_, err := strictyaml.Format{File: "f", Kind: "thing", All: true}.Decode([]byte(src), &v)
	var got []string
	for _, fault := range strictyaml.Faults(err) {
		got = append(got, fault.Error())
	}
	want := []string{"f:1:1: the thing lacks the key name: its name", `f:1:8: count: "0" is not a whole number, 1 or more`, `f:2:11: an entry of list: "x" is not a whole number`,
		`f:2:17: an entry of list: "y" is not a whole number`, `f:3:16: map.b: "c" is not a whole number`, `f:3:19: the key "a" comes twice`,
		`f:4:1: unknown key "other" in the thing; allowed: name, count, list, map`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if v.Count != nil || v.Map["a"] != 1 {
		t.Errorf("what is left is %+v", v)
	}
	if faults := strictyaml.Faults(nil); faults != nil {
		t.Errorf("of none: %v", faults)
	}
	alone := team.Errorf(team.NotFound, "no file: %w", errors.New("gone")) // it carries others, and is no list of them
	if faults := strictyaml.Faults(errors.Join(err, alone)); len(faults) != len(want)+1 || !slices.Contains(faults, error(alone)) {
		t.Errorf("with one that has no place: %q", faults)
	}
}
