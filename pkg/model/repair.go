package model

import (
	"encoding/json"
	"io"
	"regexp"
	"strings"
)

// repairArguments repairs a tool call's invalid JSON arguments where the meaning is beyond doubt: it removes a code
// fence around them, commas before a closing bracket, and an empty or equal object beside the real one. It reports
// whether it did; otherwise, or if the result would not be a JSON object, it returns s. It never changes values.
func repairArguments(s string) (repaired string, ok bool) {
	if json.Valid([]byte(s)) {
		return s, false
	}
	bare := withoutCommas(withoutFence(s))
	objects, ok := objectsIn(bare)
	if !ok {
		return s, false
	}
	meant := ""
	for _, o := range objects {
		switch {
		case o == meant || isEmpty(o) && meant != "":
		case meant == "" || isEmpty(meant):
			meant = o
		default:
			return s, false // two, and no telling which
		}
	}
	return meant, true
}

// codeFence matches a code block of Markdown that contains everything.
var codeFence = regexp.MustCompile("(?s)^\\s*```[a-zA-Z0-9]*[ \t]*\r?\n?(.*?)\\s*```\\s*$")

func withoutFence(s string) string {
	if m := codeFence.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return s
}

// withoutCommas returns s without commas before a closing bracket, except in strings.
func withoutCommas(s string) string {
	var out strings.Builder
	inString, escaped := false, false
	for i := range len(s) {
		b := s[i]
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = b == '\\', b != '"'
		case b == '"':
			inString = true
		case b == ',':
			if next := strings.TrimLeft(s[i+1:], " \t\r\n"); next != "" && (next[0] == '}' || next[0] == ']') {
				continue
			}
		}
		out.WriteByte(b)
	}
	return out.String()
}

// objectsIn returns the JSON objects that s consists of; ok is false if it contains anything else, or nothing.
func objectsIn(s string) (objects []string, ok bool) {
	dec := json.NewDecoder(strings.NewReader(s))
	for {
		var o json.RawMessage
		switch err := dec.Decode(&o); {
		case err == io.EOF:
			return objects, len(objects) > 0
		case err != nil || o[0] != '{':
			return nil, false
		}
		objects = append(objects, string(o))
	}
}

func isEmpty(object string) bool {
	return strings.TrimSpace(strings.Trim(object, "{}")) == ""
}
