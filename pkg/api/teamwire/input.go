package teamwire

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// input has the fields of a request, from its body or its query. It collects their faults, so that a client gets all of
// them together. Fields that are not read are ignored.
type input struct {
	at    []any // where they stand: "body" or "query", and the fields around them
	body  map[string]json.RawMessage
	query url.Values
	wrong *invalid
}

func queryOf(r *http.Request) *input {
	return &input{at: []any{"query"}, query: r.URL.Query(), wrong: new(invalid)}
}

// bodyOf reads the body, a JSON object. Errors: invalid.
func bodyOf(r *http.Request) (*input, error) {
	in := &input{at: []any{"body"}, wrong: new(invalid)}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, invalid{{[]any{"body"}, "The body could not be read to its end", "body_incomplete"}}
	}
	var syntax *json.SyntaxError
	var wrongType *json.UnmarshalTypeError
	switch err := json.Unmarshal(data, &in.body); {
	case len(data) == 0:
		return nil, invalid{{[]any{"body"}, "Field required", "missing"}}
	case errors.As(err, &syntax):
		return nil, invalid{{[]any{"body", syntax.Offset}, "JSON decode error: " + syntax.Error(), "json_invalid"}}
	case errors.As(err, &wrongType), err == nil && in.body == nil:
		return nil, invalid{{[]any{"body"}, "Input should be a valid dictionary", "dict_type"}}
	case err != nil:
		return nil, invalid{{[]any{"body"}, "JSON decode error", "json_invalid"}}
	}
	return in, nil
}

// err returns the faults of the fields that were read, or nil.
func (in *input) err() error {
	if len(*in.wrong) == 0 {
		return nil
	}
	return *in.wrong
}

func (in *input) refuse(msg, kind string, at ...any) {
	*in.wrong = append(*in.wrong, fault{append(slices.Clone(in.at), at...), msg, kind})
}

func (in *input) pair() pair {
	return pair{in.text("user_id"), in.text("session_id")}
}

// text returns a required string.
func (in *input) text(name string) string {
	v, ok := in.given(name, false)
	if !ok {
		in.refuse("Field required", "missing", name)
	}
	return v
}

// textOr returns an optional string.
func (in *input) textOr(name, def string) string {
	if v, ok := in.given(name, false); ok {
		return v
	}
	return def
}

// nullable returns a string that may be missing or null; given reports whether it is neither.
func (in *input) nullable(name string) (v string, given bool) { return in.given(name, true) }

// given returns a string. A value of another type is refused, and counts as given so that it is not refused twice.
func (in *input) given(name string, null bool) (v string, given bool) {
	if in.query != nil {
		return in.query.Get(name), in.query.Has(name)
	}
	raw, ok := in.body[name]
	if !ok || null && string(raw) == "null" {
		return "", false
	}
	if raw[0] != '"' || json.Unmarshal(raw, &v) != nil {
		in.refuse("Input should be a valid string", "string_type", name)
	}
	return v, true
}

// number returns an optional whole number; the default is 0.
func (in *input) number(name string) (n int) {
	if in.query != nil {
		if v := in.query.Get(name); in.query.Has(name) {
			var err error
			if n, err = strconv.Atoi(v); err != nil {
				in.refuse("Input should be a valid integer, unable to parse string as an integer", "int_parsing", name)
			}
		}
		return n
	}
	if raw, ok := in.body[name]; ok && (string(raw) == "null" || json.Unmarshal(raw, &n) != nil) {
		in.refuse("Input should be a valid integer", "int_type", name)
	}
	return n
}

// flag returns an optional boolean of the query; the default is false.
func (in *input) flag(name string) bool {
	if !in.query.Has(name) {
		return false
	}
	b, err := strconv.ParseBool(in.query.Get(name))
	if err != nil {
		in.refuse("Input should be a valid boolean, unable to interpret input", "bool_parsing", name)
	}
	return b
}

// texts returns an optional list of strings.
func (in *input) texts(name string) (list []string) {
	raw, ok := in.body[name]
	if !ok {
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil || items == nil {
		in.refuse("Input should be a valid list", "list_type", name)
		return nil
	}
	list = make([]string, len(items))
	for i, item := range items {
		if item[0] != '"' || json.Unmarshal(item, &list[i]) != nil {
			in.refuse("Input should be a valid string", "string_type", name, i)
		}
	}
	return list
}

// object returns a field that is an object; nil if it is null or missing.
func (in *input) object(name string) *input {
	raw, ok := in.body[name]
	if !ok || string(raw) == "null" {
		return nil
	}
	o := &input{at: append(slices.Clone(in.at), name), wrong: in.wrong}
	if json.Unmarshal(raw, &o.body) != nil || o.body == nil {
		in.refuse("Input should be a valid dictionary", "dict_type", name)
		return nil
	}
	return o
}

// strings returns a map of strings; nil if it is null or missing.
func (in *input) strings(name string) map[string]string {
	o := in.object(name)
	if o == nil {
		return nil
	}
	m := make(map[string]string, len(o.body))
	for _, key := range slices.Sorted(maps.Keys(o.body)) {
		m[key] = o.text(key)
	}
	return m
}
