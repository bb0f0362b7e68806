// Package strictyaml reads YAML that people write by hand, and tells them the place
// of what is wrong in it: an unknown key, a key that comes twice or a value of the
// wrong shape is a fault with line and column, never silently left out.
//
// It knows no format. What keys there are and what they mean is for whoever embeds a
// [Reader] (packages plan and rehearsal).
package strictyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"agentteam/pkg/team"
)

// Reader reads the nodes of one file and keeps the first fault that is found. After
// that it goes on with zero values, so callers need not look at each step whether
// there was one. It is not safe for concurrent use.
type Reader struct {
	File  string // stands for the file in errors
	Files string // what files of this format are called, such as "plans"
	err   error
}

// Start is the place of what is wrong with a file as a whole. It must not be changed.
var Start = &yaml.Node{Line: 1, Column: 1}

// Err returns the first fault, or nil. It begins with file:line:column and is
// [team.InvalidArgument], unless [Reader.Refuse] was given another.
func (r *Reader) Err() error { return r.err }

// Fail notes what is wrong at a place.
func (r *Reader) Fail(at *yaml.Node, format string, args ...any) {
	r.Refuse(at, team.Errorf(team.InvalidArgument, format, args...))
}

// Refuse notes err, if there is one, as what is wrong at a place.
func (r *Reader) Refuse(at *yaml.Node, err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("%s:%d:%d: %w", r.File, max(at.Line, 1), max(at.Column, 1), err)
	}
}

// Document returns the root of src, which must be one YAML document. It is nil after
// a fault, and if there is no document at all, which is for the caller to judge.
func (r *Reader) Document(src []byte) *yaml.Node {
	var doc, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(src))
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		err = dec.Decode(&more)
		switch {
		case errors.Is(err, io.EOF):
			return doc.Content[0]
		case err == nil:
			r.Fail(&more, "%s are one document each; another one begins here", r.Files)
			return nil
		}
	}
	at, what := Start, strings.TrimPrefix(err.Error(), "yaml: ")
	var broken *yaml.LoadError
	if errors.As(err, &broken) {
		mark := broken.Mark
		if broken.Stage == yaml.ScannerStage && broken.ContextMark.Line > 0 { // where the text begins that has no end
			mark = broken.ContextMark
		}
		if what = broken.Message; mark.Line > 0 {
			at = &yaml.Node{Line: mark.Line, Column: mark.Column}
		}
	}
	r.Fail(at, "%s", what)
	return nil
}

// Object calls the function of each key that n, a mapping, has. A key without a
// function is a fault. what names n in errors, with its article.
func (r *Reader) Object(n *yaml.Node, what string, keys map[string]func(*yaml.Node)) {
	allowed := strings.Join(slices.Sorted(maps.Keys(keys)), ", ")
	if n.Kind != yaml.MappingNode {
		noun := "keys"
		if len(keys) == 1 {
			noun = "key"
		}
		r.Fail(n, "%s must be a mapping with the %s %s", what, noun, allowed)
		return
	}
	r.pairs(n, func(key, v *yaml.Node) {
		if read, ok := keys[key.Value]; ok {
			read(v)
		} else {
			r.Fail(key, "unknown key %q in %s; allowed: %s", key.Value, what, allowed)
		}
	})
}

// Entries calls read for each entry of n, a mapping whose keys are the writer's own,
// in the order of the file. A key that comes twice is a fault. what names n in errors,
// with its article.
func (r *Reader) Entries(n *yaml.Node, what string, read func(key, v *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.Fail(n, "%s must be a mapping", what)
		return
	}
	r.pairs(n, read)
}

// pairs calls read for each entry of a mapping and refuses a key that comes twice.
func (r *Reader) pairs(n *yaml.Node, read func(key, v *yaml.Node)) {
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
			r.Fail(key, "a key must be plain text")
		case seen[key.Value]:
			r.Fail(key, "the key %q comes twice", key.Value)
		}
		seen[key.Value] = true
		read(key, v)
	}
}

// Items returns the entries of n, a list that must have some.
func (r *Reader) Items(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.Fail(n, "%s must be a list with at least one entry", what)
		return nil
	}
	return n.Content
}

// Text returns n, a single value, as it is written: also that of a number or of true
// and false, but not of null.
func (r *Reader) Text(n *yaml.Node, what string) string {
	switch {
	case n.Kind == yaml.AliasNode:
		r.Fail(n, "aliases are not understood in %s", r.Files)
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		r.Fail(n, "%s must be a text", what)
	}
	return n.Value
}

// Value returns n, of any shape, as package json would: map[string]any, []any, and
// numbers, booleans and nil. Texts, and all that JSON does not know, such as dates,
// are read by text. What JSON cannot hold, such as .inf, is a fault.
func (r *Reader) Value(n *yaml.Node, text func(*yaml.Node) any) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		r.pairs(n, func(key, v *yaml.Node) { m[key.Value] = r.Value(v, text) })
		return m
	case yaml.SequenceNode:
		l := []any{}
		for _, item := range n.Content {
			l = append(l, r.Value(item, text))
		}
		return l
	}
	var v any
	switch n.Tag {
	case "!!int", "!!float", "!!bool", "!!null":
		if err := n.Decode(&v); err != nil {
			r.Fail(n, "%q cannot be read as %s", n.Value, n.Tag)
		}
		if _, err := json.Marshal(v); err != nil {
			r.Fail(n, "%s has no place in JSON", n.Value)
			return nil
		}
		return v
	}
	return text(n)
}
