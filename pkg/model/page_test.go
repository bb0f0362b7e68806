package model

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docs/models.md shows each profile as the table has it.
func TestProfilesPage(t *testing.T) {
	const file = "../../docs/models.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("\n\n| profile | found by | protocol | limit of an answer | sent |\n|---|---|---|---|---|\n")
	quoted := func(words []string, none string) string {
		if len(words) == 0 {
			return none
		}
		return "`" + strings.Join(words, "`, `") + "`"
	}
	for _, p := range profiles {
		wire := string(p.Wire)
		if p.ResponsesModels != nil {
			wire += ", responses for models that need it"
		}
		field, none := p.LimitField, "its name"
		if p.Name == unknownEndpoint {
			none = "any other address"
		}
		if p.Wire == messages {
			field = "max_tokens"
		}
		text := ""
		for _, sent := range []struct {
			word string
			is   bool
		}{{"images", p.Images}, {"cache marks for Claude", p.CacheMarks != noMarks}, {"patches", p.Patches != nil}} {
			if sent.is {
				text += ", " + sent.word
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s`, %d | %s |\n", p.Name, quoted(p.Hosts, none), wire, field, p.MaxOutput, strings.TrimPrefix(text, ", "))
	}
	b.WriteString("\n")
	const begin, end = "<!-- made from the profiles: go test ./pkg/model -run ProfilesPage -update -->", "<!-- end -->"
	before, rest, ok := strings.Cut(string(data), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/models.md has no place for the table")
	}
	want := before + begin + b.String() + end + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(data) {
		t.Error("docs/models.md is not as the profiles are; `go test ./pkg/model -run ProfilesPage -update` writes it")
	}
}
