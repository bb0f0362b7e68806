// Package dialect adapts tools to the calls of other programs: other names of the tool and its arguments, and calls
// that do several things. A [Form] describes such a call, and [Translate] adds it to its tool as a [tool.Variant].
//
// It runs no tool and checks no permissions: a form produces the arguments of the tool's own calls, which package tool
// checks and runs. Packages tool/workspace and tool/teamtool define the forms.
package dialect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"agentteam/pkg/team"
	"agentteam/pkg/tool"
)

// Form is another way to call a tool: a name with its own names of the arguments. The tool decides what runs, who may
// run it and the result.
type Form struct {
	Name        string       // it may be the tool's own, whose arguments then have more names
	Dialect     team.Dialect // the words of its description, results and errors
	Description string       // for the model; "" is the tool's own in the words of the dialect

	// Names are what the tool's arguments are called here, by the tool's names; "list.field"
	// is a field of the objects in a list. The model sees the first name. The others, and
	// the tool's own, are taken as well.
	Names    map[string][]string
	Own      []Argument // which the tool does not have, or describes in another way
	Hidden   []string   // by their names here: taken, but the model does not see them
	Optional []string   // by their names here: the tool requires them, but Calls can do without

	When func(given map[string]any) bool // see [tool.Variant]

	// Unfold may change arguments as the model gave them, before anything looks at them.
	Unfold func(given map[string]any)

	// Calls turns arguments, by the tool's names and by those of Own, into the calls of the
	// tool that do what they say, one after another. The result is the last call's.
	// Default: one call.
	Calls func(ctx context.Context, given map[string]any) ([]map[string]any, error)

	Show func(content string) string // what the model sees of a result, made of what the tool shows
}

// Translate returns tools with the forms in forms, by the names of the tools. It panics if a form is for another tool,
// or names an argument that its tool does not have.
func Translate(tools []tool.Tool, forms map[string][]Form) []tool.Tool {
	speaking, left := slices.Clone(tools), maps.Clone(forms)
	for i, t := range tools {
		var variants []tool.Variant
		for _, f := range forms[t.Name] {
			v, err := f.of(t)
			if err != nil {
				panic(fmt.Sprintf("tool %s, form %s: %v", t.Name, f.Name, err))
			}
			variants = append(variants, v)
		}
		speaking[i] = t.With(variants...)
		delete(left, t.Name)
	}
	for name := range left {
		panic(fmt.Sprintf("there is no tool %s", name))
	}
	return speaking
}

// Argument is an argument that only a form has.
type Argument struct {
	Name        string
	Type        string // in JSON schema; "array" is of strings
	Description string
	Enum        []string // what the model is offered; see [tool.Enum]
	Required    bool
}

// of returns the form as a variant of t. Error: InvalidArgument if it names an argument that t does not have.
func (f Form) of(t tool.Tool) (tool.Variant, error) {
	takes := t.Arguments()
	offered := takes.Offered
	takes.Offered = map[string][]string{}
	for native, values := range offered {
		takes.Offered[f.primary(native)] = values
	}
	for _, native := range slices.Sorted(maps.Keys(f.Names)) {
		if err := rename(takes, native, f.Names[native][0]); err != nil {
			return tool.Variant{}, err
		}
	}
	for _, a := range f.Own {
		a.addTo(takes)
	}
	for _, name := range f.Optional {
		object, field, err := takes.Object(name)
		if err != nil {
			return tool.Variant{}, err
		}
		object.Required = slices.DeleteFunc(slices.Clone(object.Required), func(n string) bool { return n == field })
	}
	natively := takes.Hidden
	takes.Hidden = slices.Clone(f.Hidden)
	for _, native := range natively {
		name := f.primary(native)
		if own := slices.ContainsFunc(f.Own, func(a Argument) bool { return a.Name == name }); !own && !slices.Contains(takes.Hidden, name) {
			takes.Hidden = append(takes.Hidden, name)
		}
	}
	shown, err := takes.ModelSchema()
	if err != nil {
		return tool.Variant{}, err
	}
	check, err := takes.Checker()
	if err != nil {
		return tool.Variant{}, err
	}
	v := tool.Variant{Name: f.Name, Description: cmp.Or(f.Description, f.Dialect.Say(t.Description)), Schema: shown, Traits: f.traits(t.Traits), When: f.When}
	v.Run = func(ctx context.Context, arguments string, call func(map[string]any) (tool.Output, error)) (tool.Output, error) {
		calls, err := f.calls(ctx, check, arguments)
		if err != nil {
			return tool.Output{}, err
		}
		var out tool.Output
		for i, c := range calls {
			if out, err = call(c); err != nil {
				return tool.Output{}, f.inItsWords(err, i > 0)
			}
		}
		return f.shown(out)
	}
	return v, nil
}

// traits returns the tool's traits with the form's names of its arguments.
func (f Form) traits(t tool.Traits) tool.Traits {
	also := func(native []string) (all []string) {
		for _, n := range native {
			all = append(append(all, f.Names[n]...), n)
		}
		return all
	}
	t.Stored, t.Reads = also(t.Stored), also(t.Reads)
	return t
}

// shown returns the tool's output as the form shows it to the model.
func (f Form) shown(out tool.Output) (tool.Output, error) {
	if f.Show == nil {
		return out, nil
	}
	text, err := out.Text()
	out.Brief = f.Show(text)
	return out, err
}

// addTo adds a to the arguments, or replaces its description.
func (a Argument) addTo(takes tool.Arguments) {
	s := takes.Schema
	own := &jsonschema.Schema{Type: a.Type, Description: a.Description}
	if a.Type == "array" {
		own.Items = &jsonschema.Schema{Type: "string"}
	}
	if s.Properties[a.Name] == nil {
		s.PropertyOrder = append(s.PropertyOrder, a.Name)
	}
	s.Properties[a.Name] = own
	if a.Required {
		s.Required = append(s.Required, a.Name)
	}
	if delete(takes.Offered, a.Name); a.Enum != nil {
		takes.Offered[a.Name] = a.Enum
	}
}

// calls returns the arguments of the tool's calls that do what the form's arguments ask for.
func (f Form) calls(ctx context.Context, check *tool.Checker, arguments string) ([]map[string]any, error) {
	given, err := tool.Parse(arguments)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(given, func(_ string, v any) bool { return v == nil }) // before a name counts as given
	if f.Unfold != nil {
		f.Unfold(given)
	}
	for _, native := range slices.Sorted(maps.Keys(f.Names)) {
		if err := eachObject(given, native, func(o map[string]any, name string) error {
			return gather(o, slices.Concat(f.Names[native], []string{name}))
		}); err != nil {
			return nil, err
		}
	}
	if err := check.Check(given); err != nil {
		return nil, err
	}
	for _, native := range slices.Backward(slices.Sorted(maps.Keys(f.Names))) { // fields before their list
		from := f.primary(native)
		_ = eachObject(given, native, func(o map[string]any, name string) error { return gather(o, []string{name, last(from)}) })
	}
	if f.Calls == nil {
		return []map[string]any{given}, nil
	}
	return f.Calls(ctx, given)
}

// primary returns the name that the model sees of one of the tool's arguments.
func (f Form) primary(native string) string {
	if names := f.Names[native]; len(names) > 0 {
		if list, _, nested := strings.Cut(native, "."); nested {
			return list + "." + names[0]
		}
		return names[0]
	}
	return native
}

// inItsWords returns an error of the tool in the words of the form; partly: earlier calls were done. The output of a
// command stays unchanged, and so do the error's effects.
func (f Form) inItsWords(err error, partly bool) error {
	if tool.IsPlain(err) {
		return err
	}
	text := f.say(err.Error())
	if partly {
		text = "a part of what was asked for is done; then: " + text
	}
	said := team.Errorf(cmp.Or(team.CodeOf(err), team.Unavailable), "%s", text).WithHint("%s", f.say(team.ModelHintOf(err)))
	return tool.With(said, tool.EffectsOf(err))
}

// argumentWord matches the name of an argument in errors: of two words, or before a colon at the beginning.
var argumentWord = regexp.MustCompile(`^[a-z_]+(?:\[\d+\])?:|\b[a-z]+(?:_[a-z]+)+\b`)

func (f Form) say(text string) string {
	return argumentWord.ReplaceAllStringFunc(f.Dialect.Say(text), func(word string) string {
		name := strings.TrimSuffix(word, ":")
		return f.primary(name) + word[len(name):]
	})
}

// eachObject calls do for each object that has the argument: given itself, or for "list.field" the objects of that
// list.
func eachObject(given map[string]any, argument string, do func(o map[string]any, name string) error) error {
	list, field, nested := strings.Cut(argument, ".")
	if !nested {
		return do(given, argument)
	}
	elements, _ := given[list].([]any) // of another type: the schema refuses it
	for _, e := range elements {
		if o, ok := e.(map[string]any); ok {
			if err := do(o, field); err != nil {
				return err
			}
		}
	}
	return nil
}

// gather moves the value of o under one of the names to the first name. Error: InvalidArgument if it has several.
func gather(o map[string]any, names []string) error {
	var at []string
	for _, n := range names {
		if _, ok := o[n]; ok && !slices.Contains(at, n) {
			at = append(at, n)
		}
	}
	if len(at) > 1 { // one of them may say nothing
		at = slices.DeleteFunc(at, func(n string) bool {
			empty := o[n] == "" || o[n] == nil
			if empty {
				delete(o, n)
			}
			return empty
		})
	}
	switch len(at) {
	case 0:
		return nil
	case 1:
		v := o[at[0]]
		delete(o, at[0])
		o[names[0]] = v
		return nil
	}
	return team.Errorf(team.InvalidArgument, "%s are names of one argument", strings.Join(at, " and ")).WithHint("give one of them")
}

func last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// rename replaces the name of an argument. Error: InvalidArgument if the argument does not exist.
func rename(takes tool.Arguments, native, name string) error {
	object, native, err := takes.Object(native)
	if err != nil {
		return err
	}
	object.PropertyOrder, object.Required = slices.Clone(object.PropertyOrder), slices.Clone(object.Required)
	field := object.Properties[native]
	delete(object.Properties, native)
	object.Properties[name] = field
	for _, names := range [][]string{object.PropertyOrder, object.Required} {
		if i := slices.Index(names, native); i >= 0 {
			names[i] = name
		}
	}
	return nil
}

// Renamed returns a [Form.Show] that renames the fields of a JSON object and keeps their order. It leaves any other
// text unchanged.
func Renamed(names map[string]string) func(string) string {
	return func(content string) string { return renameFields(content, names) }
}

// RenamedEach is [Renamed] for each object of a JSON list.
func RenamedEach(names map[string]string) func(string) string {
	return func(content string) string {
		var list []json.RawMessage
		if json.Unmarshal([]byte(content), &list) != nil {
			return content
		}
		texts := make([]string, len(list))
		for i, o := range list {
			texts[i] = renameFields(string(o), names)
		}
		return "[" + strings.Join(texts, ",") + "]"
	}
}

func renameFields(text string, names map[string]string) string {
	d := json.NewDecoder(strings.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return text
	}
	var b bytes.Buffer
	for b.WriteByte('{'); d.More(); {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return text
		}
		name, _ := key.(string)
		if other, ok := names[name]; ok {
			name = other
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", name, value)
	}
	b.WriteByte('}')
	return b.String()
}
