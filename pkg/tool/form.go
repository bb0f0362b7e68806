package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"agentteam/pkg/team"
)

// Form is another way to call a tool: a name with arguments of its own names. What runs,
// who may run it and what comes of it are the tool's.
type Form struct {
	Name        string       // it may be the tool's own, whose arguments then have more names
	Dialect     team.Dialect // the words of its description, results and errors
	Description string       // for the model; "" is the tool's own in the words of the dialect

	// Names are what the tool's arguments are called here, by the tool's names; "list.field"
	// is a field of the objects in a list. The model is told the first name. The others, and
	// the tool's own, are taken as well.
	Names    map[string][]string
	Own      []Argument // which the tool does not have, or describes in another way
	Hidden   []string   // by their names here: taken, but the model is not told of them
	Optional []string   // by their names here: the tool requires them, but Calls can do without

	// Unfold may change arguments as the model gave them, before anything looks at them.
	Unfold func(given map[string]any)

	// Calls turns arguments, by the tool's names and by those of Own, into the calls of the
	// tool that do what they say, one after another. The result is the last call's.
	// Default: one call.
	Calls func(ctx context.Context, given map[string]any) ([]map[string]any, error)

	Show func(content string) string // what the model sees of a result, made of what the tool shows
}

// Speak returns tools, which answer to forms, by the names of the tools, as well. It panics
// if a form is not of one of them.
func Speak(tools []Tool, forms map[string][]Form) []Tool {
	speaking, left := slices.Clone(tools), maps.Clone(forms)
	for i, t := range tools {
		speaking[i] = t.in(forms[t.Name]...)
		delete(left, t.Name)
	}
	for name := range left {
		panic(fmt.Sprintf("there is no tool %s", name))
	}
	return speaking
}

// Argument is one that only a form has.
type Argument struct {
	Name        string
	Type        string // in JSON schema; "array" is of strings
	Description string
	Enum        []string // what the model is offered; see [Enum]
	Required    bool
}

// in returns t, which answers to forms as well. It panics if a form names an argument that
// t does not have.
func (t Tool) in(forms ...Form) Tool {
	t.forms = slices.Clone(t.forms)
	for _, f := range forms {
		t.forms = append(t.forms, t.form(f))
		// The form takes what the alias did.
		t.Aliases = slices.DeleteFunc(slices.Clone(t.Aliases), func(a string) bool { return a == f.Name })
	}
	return t
}

// form is t as it is called by f.
func (t Tool) form(f Form) Tool {
	whole := t.whole.CloneSchemas()
	for _, native := range slices.Sorted(maps.Keys(f.Names)) {
		renameArgument(t.Name, whole, native, f.Names[native][0])
	}
	for _, a := range f.Own {
		own := &jsonschema.Schema{Type: a.Type, Description: a.Description}
		if a.Type == "array" {
			own.Items = &jsonschema.Schema{Type: "string"}
		}
		if whole.Properties[a.Name] == nil {
			whole.PropertyOrder = append(whole.PropertyOrder, a.Name)
		}
		whole.Properties[a.Name] = own
		if a.Required {
			whole.Required = append(whole.Required, a.Name)
		}
	}
	for _, name := range f.Optional {
		dropRequired(whole, name)
	}
	enums := map[string][]any{}
	for native, values := range t.enums {
		enums[f.primary(native)] = values
	}
	for _, a := range f.Own {
		if delete(enums, a.Name); a.Enum != nil {
			enums[a.Name] = anyOf(a.Enum)
		}
	}
	hidden := slices.Clone(f.Hidden)
	for _, h := range t.hidden {
		name := f.primary(h)
		if own := slices.ContainsFunc(f.Own, func(a Argument) bool { return a.Name == name }); !own && !slices.Contains(hidden, name) {
			hidden = append(hidden, name)
		}
	}
	check := newChecker(f.Name, whole)
	r := Tool{Name: f.Name, Description: f.Description, schema: shownSchema(f.Name, whole, hidden, enums), show: f.Show}
	if r.Description == "" {
		r.Description = f.Dialect.Say(t.Description)
	}
	r.run = func(ctx context.Context, arguments string, gate Gate) (any, error) {
		return f.call(ctx, t, check, arguments, gate)
	}
	return r
}

// call runs the tool as the form's arguments ask for.
func (f Form) call(ctx context.Context, t Tool, check *checker, arguments string, gate Gate) (value any, err error) {
	given, err := parse(arguments)
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
	if err := check.validate(given); err != nil {
		return nil, err
	}
	for _, native := range slices.Backward(slices.Sorted(maps.Keys(f.Names))) { // fields before their list
		from := f.primary(native)
		_ = eachObject(given, native, func(o map[string]any, name string) error { return gather(o, []string{name, last(from)}) })
	}
	calls := []map[string]any{given}
	if f.Calls != nil {
		if calls, err = f.Calls(ctx, given); err != nil {
			return nil, err
		}
	}
	for i, c := range calls {
		text, err := json.Marshal(c)
		if err != nil {
			return nil, team.Errorf(team.InvalidArgument, "arguments: %w", err)
		}
		if value, err = t.run(ctx, string(text), gate); err != nil {
			return nil, f.inItsWords(err, i > 0)
		}
	}
	return value, nil
}

// primary is what the model is told for one of the tool's arguments.
func (f Form) primary(native string) string {
	if names := f.Names[native]; len(names) > 0 {
		if list, _, nested := strings.Cut(native, "."); nested {
			return list + "." + names[0]
		}
		return names[0]
	}
	return native
}

// inItsWords is an error of the tool in the words of the form; partly: of a call after others
// that were done. What a command has printed stays as it is.
func (f Form) inItsWords(err error, partly bool) error {
	var p *plain
	if errors.As(err, &p) {
		return err
	}
	text := f.say(err.Error())
	if partly {
		text = "a part of what was asked for is done; then: " + text
	}
	return team.Errorf(cmp.Or(team.CodeOf(err), team.Unavailable), "%s", text).WithHint("%s", f.say(team.ModelHintOf(err)))
}

// argumentWord is the name of an argument as errors have it: of two words, or before a
// colon at the beginning.
var argumentWord = regexp.MustCompile(`^[a-z_]+(?:\[\d+\])?:|\b[a-z]+(?:_[a-z]+)+\b`)

func (f Form) say(text string) string {
	return argumentWord.ReplaceAllStringFunc(f.Dialect.Say(text), func(word string) string {
		name := strings.TrimSuffix(word, ":")
		return f.primary(name) + word[len(name):]
	})
}

// eachObject calls do with the objects that have the argument: given itself, or for
// "list.field" the objects of that list.
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

// gather puts the value that o has under one of the names under the first. Error:
// InvalidArgument if it has several.
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

// renameArgument gives an argument of a schema another name in its place.
func renameArgument(tool string, in *jsonschema.Schema, native, name string) {
	in, native = container(tool, in, native)
	in.PropertyOrder, in.Required = slices.Clone(in.PropertyOrder), slices.Clone(in.Required)
	field := in.Properties[native]
	delete(in.Properties, native)
	in.Properties[name] = field
	for _, names := range [][]string{in.PropertyOrder, in.Required} {
		if i := slices.Index(names, native); i >= 0 {
			names[i] = name
		}
	}
}

func dropRequired(in *jsonschema.Schema, name string) {
	in, name = container("", in, name)
	in.Required = slices.DeleteFunc(slices.Clone(in.Required), func(n string) bool { return n == name })
}

// container is the schema of the objects that have an argument, and its name there.
func container(tool string, in *jsonschema.Schema, name string) (*jsonschema.Schema, string) {
	if list, field, nested := strings.Cut(name, "."); nested {
		if in = in.Properties[list]; in != nil {
			in = in.Items
		}
		name = field
	}
	if in == nil || in.Properties[name] == nil {
		panic(fmt.Sprintf("tool %s: there is no argument %s", tool, name))
	}
	return in, name
}

// Renamed is a [Form.Show] that gives the fields of a JSON object other names, in their
// order. A text that is no object stays.
func Renamed(names map[string]string) func(string) string {
	return func(content string) string { return renameFields(content, names) }
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
