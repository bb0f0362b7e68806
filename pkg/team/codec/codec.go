// Package codec is the JSON of what the board lives on: stored records, beats and
// offers. Records are written by programs of different ages, so the fields of one
// that this program does not know are kept and written back.
//
// The JSON is that of encoding/json with the tags of package team, but made and
// read in a fifth of the time: every task goes this way eight times, and a leader
// that takes over reads the whole board. What is not on that way uses encoding/json.
package codec

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"

	"github.com/segmentio/encoding/json"

	"agentteam/pkg/team"
)

// lenient takes field names as they are written; strict also refuses those that are unknown.
// Both leave texts where they are, in what was read: a record is read once and kept whole.
const (
	lenient = json.DontMatchCaseInsensitiveStructFields | json.DontCopyString | json.DontCopyRawMessage
	strict  = lenient | json.DisallowUnknownFields
)

// maxDepth is how deep values may be nested, as in encoding/json. The library calls
// itself for each level, and a stack that overflows takes the process with it.
const maxDepth = 10_000

// Marshal returns v as JSON. It refuses what [Unmarshal] would.
func Marshal(v any) ([]byte, error) {
	if omitsZero(reflect.TypeOf(v)) {
		data, err := Plain(v)
		if err != nil {
			return nil, err
		}
		return data, checkDepth(data)
	}
	data, err := json.Append(make([]byte, 0, 1024), v, json.SortMapKeys) // most records have less
	if err != nil {
		return nil, err
	}
	return data, checkDepth(data)
}

// omitting holds what omitsZero has found of each type that was marshalled.
var omitting sync.Map // reflect.Type -> bool

// omitsZero reports whether a type has a field with omitzero, which the fast library does not
// know: it would write what is not set. Records of that kind are seldom written.
func omitsZero(t reflect.Type) bool {
	if is, ok := omitting.Load(t); ok {
		return is.(bool)
	}
	is := hasOmitZero(t, map[reflect.Type]bool{})
	omitting.Store(t, is)
	return is
}

// hasOmitZero is omitsZero without those types that are looked at already.
func hasOmitZero(t reflect.Type, looked map[reflect.Type]bool) bool {
	if t == nil || looked[t] {
		return false
	}
	looked[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return hasOmitZero(t.Elem(), looked)
	case reflect.Struct:
		for f := range t.Fields() {
			if _, options, _ := strings.Cut(f.Tag.Get("json"), ","); strings.Contains(options, "omitzero") || hasOmitZero(f.Type, looked) {
				return true
			}
		}
	}
	return false
}

// Plain returns v as encoding/json writes it, with <, > and & as they are: models and people
// read them better than their escapes.
func Plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := stdjson.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Unmarshal reads data, one JSON value and nothing after it, into v, a pointer. Unlike
// that of encoding/json it takes field names as they are written, and the texts of v are
// pieces of data: it must not be changed afterwards, and whoever keeps one of them for
// longer than the rest clones it, or keeps all of data with it.
func Unmarshal(data []byte, v any) error { return parse(data, v, lenient) }

func parse(data []byte, v any, flags json.ParseFlags) error {
	if err := checkDepth(data); err != nil {
		return err
	}
	if hasLongNumber(data) {
		if err := stdjson.Unmarshal(data, reflect.New(reflect.TypeOf(v).Elem()).Interface()); err != nil {
			return err
		}
	}
	rest, err := json.Parse(data, v, flags)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("something follows the JSON: %.20q", rest)
	}
	return err
}

func checkDepth(data []byte) error {
	if len(data) > maxDepth && bytes.Count(data, []byte{'{'})+bytes.Count(data, []byte{'['}) > maxDepth && !stdjson.Valid(data) {
		return errors.New("this is no JSON, or it is nested too deep")
	}
	return nil
}

// hasLongNumber reports whether so many digits stand in a row somewhere that no 64 bits
// may hold them: the library does not notice every overflow.
func hasLongNumber(data []byte) bool {
	const digits = 19 // of the largest int64
	digit := func(i int) bool { return '0' <= data[i] && data[i] <= '9' }
	for i := digits - 1; i < len(data); i += digits { // every such row has one of these
		if !digit(i) {
			continue
		}
		first, last := i, i
		for first > 0 && digit(first-1) {
			first--
		}
		for last+1 < len(data) && digit(last+1) {
			last++
		}
		if last-first+1 >= digits {
			return true
		}
	}
	return false
}

// Decode reads a stored record into v, a pointer to a struct, and returns the fields
// that the struct does not have; nil if there are none. The texts of both are pieces of
// data, as with [Unmarshal].
func Decode(data []byte, v any) (team.Extra, error) {
	// Hardly any record holds unknown fields, and to find that out while it is decoded
	// costs half of decoding it twice.
	if parse(data, v, strict) == nil {
		return nil, nil
	}
	reflect.ValueOf(v).Elem().SetZero()
	if err := Unmarshal(data, v); err != nil {
		return nil, err
	}
	var all team.Extra
	if err := Unmarshal(data, &all); err != nil {
		return nil, err
	}
	known := fieldNames(reflect.TypeOf(v).Elem())
	maps.DeleteFunc(all, func(name string, _ stdjson.RawMessage) bool { return known[name] })
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// Encode returns a record as it is stored, with the fields that Decode has kept.
func Encode(v any, kept team.Extra) ([]byte, error) {
	data, err := Marshal(v)
	if err != nil || len(kept) == 0 {
		return data, err
	}
	more, err := Marshal(kept)
	if err != nil {
		return nil, err
	}
	data = append(append(data[:len(data)-1], ','), more[1:]...)
	return data, checkDepth(data)
}

var fieldCache sync.Map // reflect.Type of a record -> map[string]bool

// fieldNames are the JSON names of a struct's fields.
func fieldNames(t reflect.Type) map[string]bool {
	if names, ok := fieldCache.Load(t); ok {
		return names.(map[string]bool)
	}
	names := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) { // those of embedded structs too
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names[name] = true
	}
	fieldCache.Store(t, names)
	return names
}
