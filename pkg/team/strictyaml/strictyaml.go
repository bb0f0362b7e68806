// Package strictyaml decodes hand-written YAML into Go structs and refuses anything unexpected: an unknown or repeated
// key, a value of the wrong type, a missing key or value. Errors have file, line and column, and suggest the probable
// spelling. It reports the first error of a file, or all ([Format].All); errors of a Validate method come after those
// inside its value.
//
// A format is a struct with tags:
//
//	yaml:"NAME"        the field's key; fields without this tag are not decoded
//	yaml:",inline"     the keys of the field, a struct, are keys beside it
//	required:"TEXT"    the key is required; TEXT describes it
//	minLength:"1"      a string may not be blank
//	minItems:"1"       a list may not be empty
//	minimum, maximum   limits of a number or a duration, such as minimum:"1ms"
//
// Fields are strings, numbers, booleans, [time.Duration], structs, lists, maps with string keys, pointers to these, and
// any for a JSON value. A field of type [Node] keeps its value undecoded. A type adds rules by these methods, whose
// errors get the place of the value and may have a code and a hint of package team:
//
//	UnmarshalText([]byte) error  decodes a single value; a struct, list or map that has it
//	                             can be written short, as a string
//	Values() []string            the allowed strings
//	Validate() error             checks the value once it is decoded; with [At], a part of it
//
// It contains no formats; the packages that read such files define them.
package strictyaml

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"agentteam/pkg/team"
)

// Format holds the settings for all values of a file.
type Format struct {
	File   string // stands for the file in errors
	Kind   string // what such a file is, such as "plan"
	Skip   int    // lines of the file that come before its YAML
	All    bool   // each fault is reported, joined as by [errors.Join] and divided by [Faults]
	Quoted bool   // a text that YAML would read as something else, such as 1.10, needs quotes

	// Unknown makes the format open to keys of other programs: it is given the fault of
	// each unknown key, which is left out, and a key without a value is as one that is not
	// there. If nil, both are refused.
	Unknown func(error)

	// Waits has a file that no person has trusted decoded without the keys that do not count, and is given each of
	// them; see [Node.Withhold]. nil: all keys count.
	Waits func(path, value string)

	// Faulty is given the fault of the value of a key of the root. If it returns nil, the key is
	// left out; else that is the fault. If it is nil, each fault counts.
	Faulty func(key string, fault error) error
}

// Faults returns the errors that err joins, those of one file together and in the order of their places; errors without
// a place come first.
func Faults(err error) (all []error) {
	if err == nil {
		return nil
	}
	many, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(many.Unwrap()...).Error() != err.Error() { // it only carries them
		return []error{err}
	}
	for _, e := range many.Unwrap() {
		all = append(all, Faults(e)...)
	}
	slices.SortStableFunc(all, func(a, b error) int {
		p, q := PlaceOf(a), PlaceOf(b)
		return cmp.Or(strings.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
	})
	return all
}

// Fault is an error at a place of a file.
type Fault struct {
	File         string
	Line, Column int // from 1
	Err          error
}

func (f *Fault) Error() string { return fmt.Sprintf("%s:%d:%d: %v", f.File, f.Line, f.Column, f.Err) }

// Unwrap returns the wrapped error.
func (f *Fault) Unwrap() error { return f.Err }

// PlaceOf returns the first fault that err contains; the zero Fault if it has no place.
func PlaceOf(err error) Fault {
	if f, ok := errors.AsType[*Fault](err); ok {
		return *f
	}
	return Fault{}
}

// Node is a value of a file, with its place.
type Node struct {
	format    *Format
	key, yaml *yaml.Node
	path      string // by which errors name it; "" is the root
}

// Decode decodes src, at most one YAML document, into the value that into points to, and returns its root. An empty
// document is an empty mapping. Errors: those of [Node.Decode]; InvalidArgument, with its place, for malformed YAML.
func (f Format) Decode(src []byte, into any) (Node, error) {
	root, fault := document(src)
	n := Node{format: &f, yaml: root}
	if fault != "" {
		return n, n.errorf("%s", fault)
	}
	if f.Waits != nil {
		n, _ = n.Withhold(reflect.TypeOf(into).Elem(), "", f.Waits)
	}
	return n, n.Decode(into)
}

// document returns the root of src, or the place and the text of the error.
func document(src []byte) (root *yaml.Node, fault string) {
	var doc, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(src))
	err := dec.Decode(&doc)
	if err == nil {
		err = dec.Decode(&more)
	}
	switch {
	case err == nil:
		return &more, "there may be one document only; another one begins here"
	case !errors.Is(err, io.EOF):
		return broken(src, err)
	case doc.Content == nil || doc.Content[0].Tag == "!!null":
		return &yaml.Node{Kind: yaml.MappingNode}, ""
	}
	return doc.Content[0], ""
}

// broken returns the place and the text of err, the error of decoding src.
func broken(src []byte, err error) (*yaml.Node, string) {
	at, what := &yaml.Node{Line: 1, Column: 1}, strings.TrimPrefix(err.Error(), "yaml: ")
	if load, ok := errors.AsType[*yaml.LoadError](err); ok {
		mark := load.Mark
		if load.Stage == yaml.ScannerStage && load.ContextMark.Line > 0 { // where the text begins that has no end
			mark = load.ContextMark
		}
		if what = load.Message; mark.Line > 0 {
			return &yaml.Node{Line: mark.Line, Column: mark.Column}, what
		}
	}
	for rest := src; len(rest) > 0; { // the reader does not report where such bytes are
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			return at, "this is not UTF-8"
		case unicode.IsControl(r) && !strings.ContainsRune("\n\r\t\u0085", r):
			return at, fmt.Sprintf("here is the control character %U; remove it", r)
		case r == '\n':
			at.Line, at.Column = at.Line+1, 0
		}
		at.Column, rest = at.Column+1, rest[size:]
	}
	return &yaml.Node{Line: 1, Column: 1}, what
}

// partError is an error about a part of a value.
type partError struct {
	error
	path []any
}

// Key is the element of a path that stands for a key, not for its value.
type Key string

// At returns err as an error about a part of the value that a Validate method checks. The path consists of keys,
// positions in lists counted from 0, and optionally a [Key] at its end.
func At(err error, path ...any) error { return partError{err, path} }

// At returns err with the place of n, or of the part of n that path leads to; nil for nil. If path leads nowhere, the
// last part that exists counts. An error without a code becomes InvalidArgument.
func (n Node) At(err error, path ...any) error {
	if err == nil {
		return nil
	}
	if part, ok := errors.AsType[partError](err); ok {
		err, path = part.error, append(path, part.path...)
	}
	at, _ := n.find(path)
	if team.CodeOf(err) == "" {
		err = team.Errorf(team.InvalidArgument, "%w", err)
	}
	return &Fault{n.format.File, max(at.Line, 1) + n.format.Skip, max(at.Column, 1), err}
}

// find follows path as far as it exists, and reports whether that is all of it.
func (n Node) find(path []any) (at *yaml.Node, all bool) {
	at = n.yaml
	for _, p := range path {
		next := part(at, p)
		if next == at {
			return at, false
		}
		at = next
	}
	return at, true
}

// part returns the part of n for an element of a path; n if there is none.
func part(n *yaml.Node, of any) *yaml.Node {
	if i, ok := of.(int); ok && n.Kind == yaml.SequenceNode && i < len(n.Content) {
		return n.Content[i]
	}
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		switch name := n.Content[i].Value; of {
		case name:
			return n.Content[i+1]
		case Key(name):
			return n.Content[i]
		}
	}
	return n
}

// AtKey returns err with the place of the key of n, or of n if it has none.
func (n Node) AtKey(err error) error {
	return Node{format: n.format, yaml: cmp.Or(n.key, n.yaml)}.At(err)
}

func (n Node) errorf(format string, args ...any) error { return n.At(fmt.Errorf(format, args...)) }

// Origin returns the place of the key of n, or of n if it has none, such as "team.yaml:3".
func (n Node) Origin() string {
	return fmt.Sprintf("%s:%d", n.format.File, cmp.Or(n.key, n.yaml).Line+n.format.Skip)
}

func (n Node) name() string { return cmp.Or(n.path, "the "+n.format.Kind) }

// Has reports whether n has the part that path leads to.
func (n Node) Has(path ...any) bool {
	_, all := n.find(path)
	return all
}

// IsNull reports whether n is a key without a value.
func (n Node) IsNull() bool { return n.yaml.Tag == "!!null" }

// Entries returns the entries of n in the order of the file; none if n is not a mapping.
func (n Node) Entries() iter.Seq2[string, Node] {
	return func(yield func(string, Node) bool) {
		for i := 0; n.yaml.Kind == yaml.MappingNode && i < len(n.yaml.Content); i += 2 {
			key := n.yaml.Content[i]
			if !yield(key.Value, Node{n.format, key, n.yaml.Content[i+1], strings.TrimPrefix(n.path+"."+key.Value, ".")}) {
				return
			}
		}
	}
}

// UnknownKeyError is the error of a key that the value may not have.
type UnknownKeyError struct{ Key, where string }

func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("unknown key %.80q in %s", e.Key, e.where)
}

// UnknownKey returns the error for a key of what that is not among the allowed ones.
func UnknownKey(key, what string, allowed []string) error {
	return &UnknownKeyError{key, what + "; " + among(key, allowed)}
}

// among returns the probably meant text, else all allowed ones.
func among(text string, allowed []string) string {
	if like := team.Similar(text, allowed); like != "" {
		return "did you mean " + like + "?"
	}
	return "allowed: " + strings.Join(allowed, ", ")
}
