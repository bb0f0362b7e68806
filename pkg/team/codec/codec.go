// Package codec encodes and decodes the JSON of stored records, heartbeats and offers. Programs of different
// versions write records, so Decode and Encode keep the fields that this program does not know.
//
// The JSON is that of encoding/json with the tags of package team, in a fifth of the time: each task is
// encoded or decoded eight times, and a new leader reads the whole board. Other JSON uses encoding/json.
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

// lenient matches field names exactly; strict also refuses unknown fields. Decoded strings share the memory
// of the input: a record is read once and kept whole.
const (
	lenient = json.DontMatchCaseInsensitiveStructFields | json.DontCopyString | json.DontCopyRawMessage
	strict  = lenient | json.DisallowUnknownFields
)

// maxDepth bounds nesting, as in encoding/json. The library recurses for each level, and a stack overflow
// ends the process.
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

// omitsZero reports whether a type has a field with omitzero, which the fast library ignores: it would write
// zero values. Such records are seldom written.
func omitsZero(t reflect.Type) bool {
	if is, ok := omitting.Load(t); ok {
		return is.(bool)
	}
	is := hasOmitZero(t, map[reflect.Type]bool{})
	omitting.Store(t, is)
	return is
}

// hasOmitZero is omitsZero for the types that are not in looked.
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

// Plain returns v as encoding/json writes it, with <, > and & unescaped: models and people read them better.
func Plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := stdjson.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Unmarshal decodes data, one JSON value and nothing after it, into v, a pointer. Unlike encoding/json it
// matches field names exactly, and the strings of v share the memory of data: the caller must not change data
// afterwards, and clones a string that has to outlive the rest.
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

// hasLongNumber reports whether data has so many digits in a row that 64 bits may not hold them: the library
// does not notice every overflow.
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

// Decode decodes a stored record into v, a pointer to a struct, and returns the fields that the struct does
// not have; nil if there are none. Both share the memory of data, as with [Unmarshal].
func Decode(data []byte, v any) (team.Extra, error) {
	// Hardly any record has unknown fields, and finding them while decoding costs half as much as decoding
	// twice.
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

// Encode returns the stored form of a record, with the fields that Decode returned.
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

// fieldNames returns the JSON names of a struct's fields.
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
