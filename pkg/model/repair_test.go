package model

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRepairArguments(t *testing.T) {
	for s, want := range map[string]string{
		"```json\n{\"a\":1}\n```":          `{"a":1}`,
		"```\n{\"a\":1}```":                `{"a":1}`,
		"  ```json {\"a\":1} ```\n":        `{"a":1}`,
		`{"a":1,}`:                         `{"a":1}`,
		"{\"a\":[1,2 , \n],}":              "{\"a\":[1,2  \n]}",
		`{"a":",}",}`:                      `{"a":",}"}`,
		`{"a":"\",}",}`:                    `{"a":"\",}"}`,
		`{}{"a":1}`:                        `{"a":1}`,
		"{ }\n{\"a\":1}":                   `{"a":1}`,
		`{"a":1}{}`:                        `{"a":1}`,
		`{}{}`:                             `{}`,
		`{"a":1}{"a":1}`:                   `{"a":1}`,
		"```json\n{}{\"a\":[1,],}\n```":    `{"a":[1]}`,
		"```json\n{\"a\":\"```\"}\n```\n":  "{\"a\":\"```\"}",
		`{"a":"1","b":"12.5","c":"true",}`: `{"a":"1","b":"12.5","c":"true"}`,
	} {
		if got, ok := repairArguments(s); got != want || !ok {
			t.Errorf("%s: %s, %v; want %s", s, got, ok, want)
		}
	}
	for _, s := range []string{
		"", "x", `{"a":`, `{"a":1`, `{"a":,}`, `{"a":1,,}`, `{,`, `{"a":1}{"a":2}`, `{"a":1} and more`, "```json\n```", `[1,]`, `"a",`,
		`{"a":1}`, `{"a":"1"}`, `[]`, `null`, ` {"a" : 1 } `, "{'a':1}", `{a:1}`, "{\"a\":\"```json\"}", `{"a":1}}`,
	} {
		if got, ok := repairArguments(s); got != s || ok {
			t.Errorf("%s was made into %s", s, got)
		}
	}
}

// What comes out is valid JSON, or what went in; valid JSON is never touched, and no
// value is made up.
func FuzzRepairArguments(f *testing.F) {
	for _, seed := range []string{"", `{"a":1,}`, "```json\n{}\n```", `{}{"a":[1,2,],"b":"\",}"}`, `{"a":"\\"}`, "{\"\x00\":1,}", `{"a":1}{"a":1}{}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := repairArguments(s)
		switch {
		case !ok && got != s:
			t.Fatalf("%q was not repaired, but is %q", s, got)
		case ok && json.Valid([]byte(s)):
			t.Fatalf("%q is valid and was made into %q", s, got)
		case ok && (!json.Valid([]byte(got)) || !strings.HasPrefix(got, "{")):
			t.Fatalf("%q was made into %q", s, got)
		case ok && len(got) >= len(s):
			t.Fatalf("%q grew into %q", s, got)
		}
		if again, ok := repairArguments(got); ok {
			t.Fatalf("%q was repaired twice: %q, %q", s, got, again)
		}
	})
}
