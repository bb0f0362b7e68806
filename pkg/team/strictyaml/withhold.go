package strictyaml

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Withhold returns n, which is to be decoded into a t, without the keys that an untrusted file may not set, and passes
// each of them to waits: its path below n ("" is n itself) and its value, in one line of YAML. ok is false if nothing
// is left.
//
// The tag `harmless` exempts a field: "any" is any value; "a|b" are these values, "none" also an empty list; "most=10"
// is a number up to 10. A key without the tag waits, so that a new key waits until its declaration states otherwise.
// tag is the tag of n itself. Decode reports errors.
func (n Node) Withhold(t reflect.Type, tag string, waits func(path, value string)) (left Node, ok bool) {
	root, ok := withhold(n.yaml, t, tag, "", waits)
	n.yaml = root
	return n, ok
}

func withhold(n *yaml.Node, t reflect.Type, tag, path string, waits func(path, value string)) (left *yaml.Node, ok bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case tag != "" && harmless(n, tag), n.Tag == "!!null":
		return n, true
	case tag == "" && n.Kind == yaml.MappingNode && divides(t):
	default:
		waits(path, line(n))
		return n, false
	}
	of := *n
	of.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		field, its, known := memberOf(t, key.Value)
		if known {
			value, known = withhold(value, field, its, strings.TrimPrefix(path+"."+key.Value, "."), waits)
			if !known {
				continue
			}
		}
		of.Content = append(of.Content, key, value)
	}
	return &of, len(of.Content) > 0 || len(n.Content) == 0
}

// memberOf returns the type and the tag of the value under a key in a mapping of type t.
func memberOf(t reflect.Type, key string) (of reflect.Type, tag string, known bool) {
	if t.Kind() == reflect.Map {
		return t.Elem(), "", true
	}
	for _, s := range slotsOf(reflect.New(t).Elem()) {
		if s.key == key {
			return s.value.Type(), s.tag.Get("harmless"), true
		}
	}
	return nil, "", false
}

// divides reports whether some keys of a mapping of type t may count while others wait.
func divides(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Map:
		return divides(t.Elem())
	case reflect.Struct:
		return slices.ContainsFunc(slotsOf(reflect.New(t).Elem()), func(s slot) bool {
			return s.tag.Get("harmless") != "" || divides(s.value.Type())
		})
	}
	return false
}

func harmless(n *yaml.Node, tag string) bool {
	if tag == "any" {
		return true
	}
	if most, ok := strings.CutPrefix(tag, "most="); ok {
		limit, err := strconv.Atoi(most)
		value, verr := strconv.Atoi(n.Value)
		return err == nil && verr == nil && n.Kind == yaml.ScalarNode && value <= limit
	}
	words := strings.Split(tag, "|")
	switch n.Kind {
	case yaml.ScalarNode:
		return slices.Contains(words, n.Value)
	case yaml.SequenceNode:
		return len(n.Content) == 0 && slices.Contains(words, "none")
	}
	return false
}

// line returns a value as one line of YAML.
func line(n *yaml.Node) string {
	flow := *n
	flow.Style = yaml.FlowStyle
	flow.HeadComment, flow.LineComment, flow.FootComment = "", "", ""
	text, err := yaml.Marshal(&flow)
	if err != nil || n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return strings.TrimSpace(string(text))
}

// Harmless lists the keys below a mapping of type t that may count in an untrusted file, as pairs of path and tag. An
// entry of a map is "*".
func Harmless(t reflect.Type) (keys [][2]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	below := func(name string, t reflect.Type) {
		for _, k := range Harmless(t) {
			keys = append(keys, [2]string{name + "." + k[0], k[1]})
		}
	}
	switch t.Kind() {
	case reflect.Map:
		below("*", t.Elem())
	case reflect.Struct:
		for _, s := range slotsOf(reflect.New(t).Elem()) {
			if tag := s.tag.Get("harmless"); tag != "" {
				keys = append(keys, [2]string{s.key, tag})
				continue
			}
			below(s.key, s.value.Type())
		}
	}
	return keys
}
