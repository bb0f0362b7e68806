package team

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"sync"
)

// Extra holds the fields of a stored record that this program does not know.
// Records are written by programs of different ages: whoever reads one and writes
// it back must not drop what a newer program put there.
type Extra map[string]json.RawMessage

// Decode decodes a stored record into v, a pointer to a struct, and returns the
// fields that the struct does not have; nil if there are none.
func Decode(data []byte, v any) (Extra, error) {
	// Hardly any record holds unknown fields, and to find that out while it is decoded
	// costs half of decoding it twice.
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if strict.Decode(v) == nil && strict.InputOffset() == int64(len(data)) {
		return nil, nil
	}
	reflect.ValueOf(v).Elem().SetZero()
	if err := json.Unmarshal(data, v); err != nil {
		return nil, err
	}
	var all Extra
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	known := fieldNames(reflect.TypeOf(v).Elem())
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return known[name] })
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// Encode encodes a record for storing, with the fields that Decode has kept.
func Encode(v any, kept Extra) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil || len(kept) == 0 {
		return data, err
	}
	more, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{data[:len(data)-1], more[1:]}, []byte(",")), nil
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
