package v1_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

var update = flag.Bool("update", false, "write the golden files anew")

// document loads what the API says of itself.
func document(t testing.TB, url string) *openapi3.T {
	t.Helper()
	resp, err := http.Get(url + "/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v", resp.StatusCode, err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return doc
}

// The description is valid OpenAPI 3.1, and no operation goes missing unseen.
func TestOpenAPI(t *testing.T) {
	r := newRig(t)
	doc := document(t, r.url)
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("it is OpenAPI %s", doc.OpenAPI)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	var list []string
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			line := fmt.Sprintf("%-6s %s: %s", method, path, op.OperationID)
			for _, p := range op.Parameters {
				if p.Value.In != "path" {
					line += " " + p.Value.In + "." + p.Value.Name
				}
				if p.Value.Description == "" {
					t.Errorf("%s: %s has no description", op.OperationID, p.Value.Name)
				}
			}
			list = append(list, line)
			if op.Summary == "" || strings.HasSuffix(op.Summary, ".") || op.Tags == nil {
				t.Errorf("%s has no summary of a few words, or no tag", op.OperationID)
			}
			if op.RequestBody != nil {
				for _, m := range op.RequestBody.Value.Content {
					strict(t, op.OperationID, m.Schema)
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b string) int { return strings.Compare(a[7:]+a[:7], b[7:]+b[:7]) })
	golden(t, "operations", strings.Join(list, "\n")+"\n")

	resp, err := http.Get(r.url + "/v1/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if data, err := io.ReadAll(resp.Body); err != nil || !bytes.Contains(data, []byte("openapi: 3.1.0")) {
		t.Errorf("in YAML it is %d bytes, %v", len(data), err)
	}
}

// strict checks that a request's schema, and all within it, lets no unknown field through.
func strict(t *testing.T, at string, s *openapi3.SchemaRef) {
	t.Helper()
	if s.Value == nil || len(s.Value.Properties) == 0 {
		return
	}
	if has := s.Value.AdditionalProperties.Has; has == nil || *has {
		t.Errorf("%s takes unknown fields", at)
	}
	for name, p := range s.Value.Properties {
		strict(t, at+"."+name, p)
		if p.Value.Items != nil {
			strict(t, at+"."+name+"[]", p.Value.Items)
		}
	}
}

// golden compares text with the file of that name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		err := os.MkdirAll("testdata", 0o755)
		if err == nil {
			err = os.WriteFile(file, []byte(got), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("it is\n%s\nand was\n%s", got, want)
	}
}
