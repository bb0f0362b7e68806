package strictyaml

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"agentteam/pkg/team"
)

var (
	nodeType     = reflect.TypeFor[Node]()
	durationType = reflect.TypeFor[time.Duration]()
)

// Decode decodes n into the value that into points to. Fields without a key in the file stay unchanged. Errors begin
// with file:line:column and are InvalidArgument, or have the code that a type's own method returned. Decode panics if
// YAML cannot be decoded into the type of into.
func (n Node) Decode(into any) error { return n.decode(reflect.ValueOf(into).Elem(), "") }

// decode decodes n into v, which is addressable; tag is the tag of its field.
func (n Node) decode(v reflect.Value, tag reflect.StructTag) error {
	switch {
	case v.Type() == nodeType:
		v.Set(reflect.ValueOf(n))
		return nil
	case n.yaml.Kind == yaml.AliasNode:
		return n.errorf("a YAML alias such as *x is not understood in a %s", n.format.Kind)
	case v.Kind() == reflect.Interface:
		value, err := n.json()
		if value != nil {
			v.Set(reflect.ValueOf(value))
		}
		return err
	case n.IsNull() && n.format.Unknown != nil:
		return nil
	case n.IsNull():
		return n.absent("has no value", tag)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if err := n.fill(v, tag); err != nil {
		return err
	}
	if checked, ok := v.Addr().Interface().(interface{ Validate() error }); ok {
		return n.At(checked.Validate())
	}
	return nil
}

// absent returns the error for a key without a valid value.
func (n Node) absent(how string, tag reflect.StructTag) error {
	if what := tag.Get("required"); what != "" {
		return n.errorf("%s %s: it is %s", n.name(), how, what)
	}
	return n.errorf("%s %s; give it one or leave it out", n.name(), how)
}

func (n Node) fill(v reflect.Value, tag reflect.StructTag) error {
	single := !slices.Contains([]reflect.Kind{reflect.Struct, reflect.Map, reflect.Slice}, v.Kind())
	if short, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok && (single || n.yaml.Kind == yaml.ScalarNode) {
		text, err := n.text(v.Kind() == reflect.String, tag)
		if err == nil {
			err = n.about(short.UnmarshalText([]byte(text)))
		}
		return err
	}
	switch v.Kind() {
	case reflect.Struct:
		return n.object(v)
	case reflect.Map:
		return n.entries(v)
	case reflect.Slice:
		return n.list(v, tag)
	case reflect.String:
		text, err := n.text(true, tag)
		v.SetString(text)
		if enum, ok := v.Interface().(interface{ Values() []string }); ok && err == nil && !slices.Contains(enum.Values(), text) {
			return n.about(fmt.Errorf("%.80q is not known; %s", text, among(text, enum.Values())))
		}
		return err
	case reflect.Bool:
		if n.yaml.Kind != yaml.ScalarNode || n.yaml.Decode(v.Addr().Interface()) != nil {
			return n.errorf("%s must be true or false", n.name())
		}
		return nil
	}
	return n.number(v, tag)
}

// about returns err, about a single value, with its place and key.
func (n Node) about(err error) error {
	if err == nil {
		return nil
	}
	return n.At(fmt.Errorf("%s: %w", n.name(), err))
}

// text returns a single value as it is written in the file.
func (n Node) text(quoted bool, tag reflect.StructTag) (string, error) {
	switch {
	case n.yaml.Kind != yaml.ScalarNode:
		return "", n.errorf("%s must be a text", n.name())
	case quoted && n.format.Quoted && n.yaml.Tag != "!!str":
		return "", n.errorf("%s must be a text; put %s in quotes", n.name(), n.yaml.Value)
	case tag.Get("minLength") != "" && strings.TrimSpace(n.yaml.Value) == "":
		return "", n.absent("is empty", tag)
	}
	return n.yaml.Value, nil
}

// number decodes a number or a duration.
func (n Node) number(v reflect.Value, tag reflect.StructTag) error {
	x, err := setNumber(v, n.yaml.Value)
	low, high := tag.Get("minimum"), tag.Get("maximum")
	least, most := math.Inf(-1), math.Inf(1)
	if v.Type() == durationType {
		least = 1
	}
	if low != "" {
		least, _ = setNumber(reflect.New(v.Type()).Elem(), low)
	}
	if high != "" {
		most, _ = setNumber(reflect.New(v.Type()).Elem(), high)
	}
	if n.yaml.Kind == yaml.ScalarNode && err == nil && least <= x && x <= most {
		return nil
	}
	allowed := "a number"
	switch {
	case v.Type() == durationType:
		allowed = "a duration such as 500ms or 2m"
	case v.CanInt():
		allowed = "a whole number"
	}
	switch {
	case high != "":
		allowed += " from " + low + " to " + high
	case low != "":
		allowed += ", " + low + " or more"
	}
	if n.yaml.Kind != yaml.ScalarNode {
		return n.errorf("%s must be %s", n.name(), allowed)
	}
	return n.errorf("%s: %.80q is not %s", n.name(), n.yaml.Value, allowed)
}

// setNumber sets v to the number or duration in text, and returns it.
func setNumber(v reflect.Value, text string) (float64, error) {
	switch {
	case v.Type() == durationType:
		d, err := time.ParseDuration(text)
		v.SetInt(int64(d))
		return float64(d), err
	case v.CanInt():
		i, err := strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(i)
		return float64(i), err
	}
	f, err := strconv.ParseFloat(text, v.Type().Bits())
	v.SetFloat(f)
	if math.IsInf(f, 0) || math.IsNaN(f) {
		err = errors.New("no number")
	}
	return f, err
}

// pairs calls read for each entry of n, a mapping. A repeated key is an error.
func (n Node) pairs(keys string, read func(key string, value Node) error) error {
	if n.yaml.Kind != yaml.MappingNode {
		return n.errorf("%s must be a mapping%s", n.name(), keys)
	}
	var faults error
	seen := map[string]bool{}
	for name, value := range n.Entries() {
		var err error
		switch key := value.key; {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
			err = value.AtKey(errors.New("a key must be plain text"))
		case seen[name]:
			err = value.AtKey(fmt.Errorf("the key %q comes twice", name))
		default:
			err = read(name, value)
		}
		seen[name] = true
		if faults = n.and(faults, err); faults != nil && !n.format.All {
			break
		}
	}
	return faults
}

// and returns the faults so far with one more, as the format reports them.
func (n Node) and(faults, more error) error {
	if faults == nil || more == nil || !n.format.All {
		return cmp.Or(faults, more)
	}
	return errors.Join(faults, more)
}

// slot is a field of a struct with its key.
type slot struct {
	key   string
	value reflect.Value
	tag   reflect.StructTag
}

// slotsOf returns the fields of v that have keys, and those of its inline fields.
func slotsOf(v reflect.Value) (slots []slot) {
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		switch key, option, _ := strings.Cut(tag.Get("yaml"), ","); {
		case option == "inline":
			slots = append(slots, slotsOf(v.Field(i))...)
		case key != "":
			slots = append(slots, slot{key, v.Field(i), tag})
		}
	}
	return slots
}

// object decodes n into the fields of a struct.
func (n Node) object(v reflect.Value) error {
	slots := slotsOf(v)
	var allowed []string
	for _, s := range slots {
		allowed = append(allowed, s.key)
	}
	switch {
	case allowed == nil: // it has an UnmarshalText
		return n.errorf("%s must be a text", n.name())
	case n.yaml.Kind == yaml.SequenceNode && len(allowed) == 1:
		return n.At(team.Errorf(team.InvalidArgument, "%s must be a mapping with the key %s, and this is a list", n.name(), allowed[0]).
			WithHint("write `%s:` in a line before it", allowed[0]))
	}
	seen := make([]bool, len(slots))
	err := n.pairs("; keys: "+strings.Join(allowed, ", "), func(key string, value Node) error {
		i := slices.Index(allowed, key)
		if i < 0 {
			err := value.AtKey(UnknownKey(key, n.name(), allowed))
			if n.format.Unknown != nil {
				n.format.Unknown(err)
				err = nil
			}
			return err
		}
		seen[i], value.path = true, key
		err := value.decode(slots[i].value, slots[i].tag)
		faulty := err != nil && slots[i].value.Kind() != reflect.Map // of which each entry counts alone
		if err != nil && n.path == "" && n.format.Faulty != nil {
			err = n.format.Faulty(key, err)
		}
		if faulty { // also of a format that goes on
			slots[i].value.SetZero()
		}
		return err
	})
	for i, s := range slots {
		if what := s.tag.Get("required"); what != "" && !seen[i] {
			err = n.and(err, n.AtKey(fmt.Errorf("%s lacks the key %s: %s", n.name(), s.key, what)))
		}
	}
	return err
}

// entries decodes n into a map.
func (n Node) entries(v reflect.Value) error {
	v.Set(reflect.MakeMap(v.Type()))
	return n.pairs("", func(key string, value Node) error {
		item := reflect.New(v.Type().Elem()).Elem()
		err := value.decode(item, "")
		v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), item)
		return err
	})
}

// list decodes n into a slice.
func (n Node) list(v reflect.Value, tag reflect.StructTag) error {
	switch {
	case n.yaml.Kind == yaml.ScalarNode && n.yaml.Value != "":
		return n.errorf("%s must be a list: [%.80s]", n.name(), n.yaml.Value)
	case tag.Get("minItems") != "" && (n.yaml.Kind != yaml.SequenceNode || len(n.yaml.Content) == 0):
		return n.errorf("%s must be a list with at least one entry", n.name())
	case n.yaml.Kind != yaml.SequenceNode:
		return n.errorf("%s must be a list", n.name())
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.yaml.Content), len(n.yaml.Content)))
	var faults error
	for i, item := range n.yaml.Content {
		err := (Node{n.format, nil, item, "an entry of " + n.name()}).decode(v.Index(i), "")
		if faults = n.and(faults, err); faults != nil && !n.format.All {
			break
		}
	}
	return faults
}

// json returns n as encoding/json decodes it: map[string]any, []any, strings, numbers, true, false and nil. A value
// that JSON does not have, such as a date, becomes a string.
func (n Node) json() (any, error) {
	switch n.yaml.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		return m, n.Decode(&m)
	case yaml.SequenceNode:
		l := []any{}
		return l, n.Decode(&l)
	}
	switch n.yaml.Tag {
	case "!!int", "!!float", "!!bool", "!!null":
		var v any
		if err := n.yaml.Decode(&v); err != nil {
			return nil, n.errorf("%q cannot be read as %s", n.yaml.Value, n.yaml.Tag)
		}
		if _, err := json.Marshal(v); err != nil {
			return nil, n.errorf("%s has no place in JSON", n.yaml.Value)
		}
		return v, nil
	}
	return n.text(true, "")
}
