package v1_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// pageTypes is where the page has the types of what it sends and gets.
const pageTypes = "../web/src/api.ts"

// The page's types are made of the OpenAPI document. The page's build drops types and reports nothing;
// see TestPageFields.
func TestPageTypes(t *testing.T) {
	got := typescript(document(t, newRig(t).url))
	if *update {
		if err := os.MkdirAll("../web/src", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(pageTypes, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(pageTypes)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s does not fit the OpenAPI document; go test ./pkg/api/v1 -run PageTypes -update writes it", pageTypes)
	}
	for _, part := range []string{"export interface TaskView {", "  revision: number\n", "  waiting_for: string[] | null\n", "export interface Teams {\n  next?: string\n  teams: TeamStatus[]\n"} {
		if !strings.Contains(got, part) {
			t.Errorf("the types lack %q", part)
		}
	}
}

// A field that the page reads is in the OpenAPI document, as far as that can be seen without a
// TypeScript compiler: a word with an underscore is a field of ours, since names of the page have none.
func TestPageFields(t *testing.T) {
	types := read(t, pageTypes) + read(t, "../web/src/types.ts")
	files, err := filepath.Glob("../web/src/*.ts*")
	if err != nil {
		t.Fatal(err)
	}
	views, err := filepath.Glob("../web/src/views/*.tsx")
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	for _, file := range append(files, views...) {
		for _, m := range regexp.MustCompile(`\.([a-z]+(?:_[a-z]+)+)\b`).FindAllStringSubmatch(read(t, file), -1) {
			if fields++; !regexp.MustCompile(`\b` + m[1] + `\??:`).MatchString(types) {
				t.Errorf("%s reads the field %s, which no type of the API has", file, m[1])
			}
		}
	}
	if fields < 50 {
		t.Errorf("only %d uses of fields were found", fields)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// typescript writes an interface for each schema of the document.
func typescript(doc *openapi3.T) string {
	var b strings.Builder
	b.WriteString("// Code generated from the OpenAPI document of /v1; DO NOT EDIT.\n// go test ./pkg/api/v1 -run PageTypes -update writes it.\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		s := doc.Components.Schemas[name].Value
		if len(s.Properties) == 0 {
			fmt.Fprintf(&b, "\nexport type %s = %s\n", name, typeOf(&openapi3.SchemaRef{Value: s}))
			continue
		}
		fmt.Fprintf(&b, "\nexport interface %s {\n", name)
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			optional := "?"
			if slices.Contains(s.Required, field) {
				optional = ""
			}
			fmt.Fprintf(&b, "  %s%s: %s\n", field, optional, typeOf(s.Properties[field]))
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// typeOf is the TypeScript of a schema.
func typeOf(ref *openapi3.SchemaRef) string {
	if ref.Ref != "" {
		return ref.Ref[strings.LastIndex(ref.Ref, "/")+1:]
	}
	s := ref.Value
	if len(s.Enum) > 0 {
		var words []string
		for _, v := range s.Enum {
			word, err := json.Marshal(v)
			if err != nil {
				panic(err) // the document was read from JSON
			}
			words = append(words, string(word))
		}
		return strings.Join(words, " | ")
	}
	var types []string
	for _, t := range s.Type.Slice() {
		switch t {
		case "integer", "number":
			types = append(types, "number")
		case "array":
			item := typeOf(s.Items)
			if strings.Contains(item, " ") {
				item = "(" + item + ")"
			}
			types = append(types, item+"[]")
		case "object":
			of := "unknown"
			if s.AdditionalProperties.Schema != nil {
				of = typeOf(s.AdditionalProperties.Schema)
			}
			types = append(types, "Record<string, "+of+">")
		default: // string, boolean, null
			types = append(types, t)
		}
	}
	if len(types) == 0 {
		return "unknown"
	}
	return strings.Join(types, " | ")
}
