// Package wire is the JSON of what the board lives on: stored records, beats and
// offers. Records are written by programs of different ages, so the fields of one
// that this program does not know are kept and written back.
//
// The JSON is that of encoding/json with the tags of package team, but made and
// read in half the time: every task goes this way eight times, and a leader that
// takes over reads the whole board. What is not on that way uses encoding/json.
package wire

import (
	stdjson "encoding/json"
	"maps"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"agentteam/pkg/team"
)

// The library that this is becomes encoding/json/v2. By itself it writes nil slices and
// maps as empty ones, reads omitempty otherwise, writes the keys of a map in any order,
// and refuses text that is not UTF-8 and objects that have a name twice: what somebody
// has once put into a task's metadata must not make the task unreadable.
var (
	lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	writing = json.JoinOptions(lenient, jsonv1.OmitEmptyWithLegacySemantics(true), json.FormatNilSliceAsNull(true),
		json.FormatNilMapAsNull(true), json.Deterministic(true))
	strict = json.JoinOptions(lenient, json.RejectUnknownMembers(true))
)

// Marshal returns v as JSON.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, writing) }

// Unmarshal reads data, one JSON value and nothing after it, into v, a pointer.
// Unlike that of encoding/json it takes field names as they are written.
func Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v, lenient) }

// Decode reads a stored record into v, a pointer to a struct, and returns the fields
// that the struct does not have; nil if there are none.
func Decode(data []byte, v any) (team.Extra, error) {
	// Hardly any record holds unknown fields, and to find that out while it is decoded
	// costs half of decoding it twice.
	if json.Unmarshal(data, v, strict) == nil {
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
	return append(append(data[:len(data)-1], ','), more[1:]...), nil
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
